package local

import (
	"context"
	"errors"
	"iter"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// Past is a part of another world's journal, for Follow.
type Past struct {
	World *World
	After journal.Seq   // the records after this one
	Last  manifest.Tick // up to the end of this tick
}

// Followed says what became of the inputs of a Past.
type Followed struct {
	Events  uint64    // that were submitted again
	Refused uint64    // events that the rules in force do not take
	First   *Refusal  // of these; nil: none
	LeftOut []LeftOut // what persons decided, which nobody decided here; by kind
}

// Refusal is an event that was not taken a second time.
type Refusal struct {
	Record journal.Seq // of the other world
	Event  string
	Err    error // a *world.InputError
}

// LeftOut says how many inputs of a kind were not repeated.
type LeftOut struct {
	Kind    journal.Kind `json:"kind"`
	Records uint64       `json:"records"`
}

// Follow lets the world, a fork of the other one, live through what that lived
// through: its events are submitted again, each in the tick in which it came, and
// its ticks are run, with whatever this world has to do in and between them. Where
// nothing else differs the two come to the same state. What persons decided is not
// repeated: it was about effects of that world. The error is that of RunUntil.
func (lw *World) Follow(ctx context.Context, p Past) (Followed, error) {
	next, stop := iter.Pull2(p.World.store.Scan(p.After))
	defer stop()
	f := follower{lw: lw, past: p, read: next}
	if err := f.advance(); err != nil {
		return f.done, err
	}
	for f.more && f.at.Record.Time <= p.Last {
		if err := f.take(ctx); err != nil {
			return f.done, err
		}
	}
	return f.done, nil
}

// follower reads a past, one record ahead.
type follower struct {
	lw   *World
	past Past
	read func() (journal.Scanned, error, bool)
	at   journal.Scanned
	more bool
	done Followed
}

func (f *follower) advance() error {
	var err error
	f.at, err, f.more = f.read()
	if err == nil {
		err = f.at.Err
	}
	return err
}

// take repeats what the record says, or the run of events that begins with it.
func (f *follower) take(ctx context.Context) error {
	switch kind := f.at.Record.Kind; kind {
	case journal.KindSubmitted:
		return f.submit(ctx)
	case journal.KindAdvanced:
		if err := f.lw.keepUp(ctx, f.at.Record.Time); err != nil {
			return err
		}
	case journal.KindResolved, journal.KindConfirmed:
		byPerson, err := f.byPerson()
		if err != nil {
			return err
		}
		if byPerson {
			f.leaveOut(kind)
		}
	case journal.KindResumed, journal.KindOperator, journal.KindRollback, journal.KindApplied:
		f.leaveOut(kind)
	default: // it follows from the others, or is about this journal
	}
	return f.advance()
}

// keepUp runs the ticks up to one, and that one also where nothing can happen in
// it if it is the next: then the other world did the same.
func (lw *World) keepUp(ctx context.Context, to manifest.Tick) error {
	if err := lw.RunUntil(ctx, to); err != nil {
		return err
	}
	if lw.time()+1 < to || lw.time() >= to {
		return nil
	}
	return lw.Step(ctx)
}

func (lw *World) time() (now manifest.Tick) {
	lw.View(func(w *world.Moment) { now = w.Time() })
	return now
}

// submit repeats the events that come one after another. One that is refused is
// noted, and the others go on.
func (f *follower) submit(ctx context.Context) error {
	now := f.lw.time()
	for f.more && f.at.Record.Kind == journal.KindSubmitted {
		var last Refusal
		var read error
		_, taken, err := f.lw.SubmitAll(ctx, func(yield func(world.Submission, error) bool) {
			for f.more && f.at.Record.Kind == journal.KindSubmitted {
				var s world.Submission
				if s, read = f.submission(now); read == nil {
					last = Refusal{Record: f.at.ID, Event: s.Name}
					read = f.advance()
				}
				if !yield(s, read) || read != nil {
					return
				}
			}
		})
		f.done.Events += taken
		var refused *world.InputError
		if read == nil && errors.As(err, &refused) {
			last.Err = refused
			f.refuse(last)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) refuse(r Refusal) {
	f.done.Refused++
	if f.done.First == nil {
		f.done.First = &r
	}
}

// submission returns the event in the record. A world that has not come as far,
// because nothing happens in it until then, gets it with the next tick, as the
// other did.
func (f *follower) submission(now manifest.Tick) (world.Submission, error) {
	var s world.Submission
	body, err := f.body()
	if err != nil {
		return s, err
	}
	b, ok := body.(*journal.Submitted)
	if !ok {
		return s, errors.New(string(f.at.Record.Kind) + " holds something else")
	}
	s = world.Submission{Name: b.Name, Data: b.Data, When: world.When{At: b.Due}}
	if t := f.at.Record.Time; now < t {
		s.At = max(b.Due, t+1)
	}
	if b.Direct && len(b.To) > 0 {
		cell, err := reducer.ParseCell(b.To[0])
		if err != nil {
			return s, err
		}
		s.To = &cell
	}
	return s, nil
}

func (f *follower) body() (journal.Body, error) {
	rec := f.at.Record
	if err := rec.Load(f.past.World.store); err != nil {
		return nil, err
	}
	return rec.Body()
}

// byPerson reports whether a decision is a person's and not a verifier's.
func (f *follower) byPerson() (bool, error) {
	body, err := f.body()
	if err != nil {
		return false, err
	}
	actor := ""
	switch b := body.(type) {
	case *journal.Resolved:
		actor = b.Actor
	case *journal.Confirmed:
		actor = b.Actor
	}
	return !world.ByVerifier(actor), nil
}

func (f *follower) leaveOut(kind journal.Kind) {
	for i := range f.done.LeftOut {
		if f.done.LeftOut[i].Kind == kind {
			f.done.LeftOut[i].Records++
			return
		}
	}
	f.done.LeftOut = append(f.done.LeftOut, LeftOut{Kind: kind, Records: 1})
}
