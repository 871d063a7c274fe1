package local

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// Past is a part of another world's journal, for Follow.
type Past struct {
	World *World
	After journal.Seq   // the records after this one
	Last  manifest.Tick // up to the end of this tick
	Sent  uint64        // events that the world got before, and the other one did not

	Alone     bool // nothing of it is lived through: it only answers
	Undecided bool // what persons decided about what awaited approval is not repeated
}

// Followed says what became of the inputs of a Past.
type Followed struct {
	Events  uint64            // that were submitted again
	Refused uint64            // events that the rules in force do not take
	First   *Refusal          // of these; nil: none
	Decided uint64            // intents, as a person decided there about the same
	LeftOut []LeftOut         // what persons decided, which nobody decided here; by kind
	Missed  []*host.MissError // effects that nothing answers, which are left open
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
// through, up to the end of a tick: its events are submitted again, each in the tick in
// which it came, its ticks are run, with whatever this world has to do in and between
// them, and what came of its effects is told where it was told there. Where nothing else
// differs the two come to the same state. What a person decided there about what awaited approval is
// decided here about one that asks for the same, in the same cell, and that a person is asked about
// under the same effect, capability and policies. What persons decided besides is not repeated: it was
// about effects of that world. What that world has no answer to yet is waited for as long
// as it is. An effect that nothing answers is left open, and all else goes on. Nothing goes on
// after it, see Course.Last. Other errors are those of Drive.
func (lw *World) Follow(ctx context.Context, p Past) (done Followed, err error) {
	defer lw.endAfter(ctx)()
	f := follower{lw: lw, past: p, answers: newArrivals(lw.past, lw.host.Live)}
	next, stop := iter.Pull2(p.World.store.Scan(p.After))
	defer stop()
	f.read = next
	lw.View(f.decisions.beginDecisions)
	lw.tellBy(f.answers.next)
	defer lw.tellBy(nil)
	if !p.Alone {
		if err := f.advance(); err != nil {
			return f.done, err
		}
	}
	if err := f.resumeTick(ctx); err != nil {
		return f.done, err
	}
	for f.more && f.at.Record.Time <= p.Last {
		if err := f.takeRecord(ctx); err != nil {
			return f.done, err
		}
	}
	if err = f.goOn(ctx); err == nil {
		f.done.Missed = f.missed()
	}
	for range f.decisions.taken {
		f.leaveOut(journal.KindResolved)
	}
	return f.done, err
}

func (lw *World) tellBy(next world.AnswerOrder) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.w.TellBy(next)
}

// follower reads a past, one record ahead.
type follower struct {
	lw        *World
	past      Past
	answers   *arrivals
	decisions decisions
	read      func() (journal.Scanned, error, bool)
	at        journal.Scanned
	more      bool
	over      bool // it is not followed any more
	done      Followed
}

func (f *follower) advance() error {
	var err error
	f.at, err, f.more = f.read()
	if err == nil {
		err = f.at.Err
	}
	return err
}

// takeRecord repeats what the record says, or the run of events that begins with it.
func (f *follower) takeRecord(ctx context.Context) error {
	switch kind := f.at.Record.Kind; kind {
	case journal.KindSubmitted:
		if err := f.reach(ctx); err != nil {
			return err
		}
		return f.submit(ctx)
	case journal.KindAdvanced:
		if err := f.tick(ctx); err != nil {
			return err
		}
	case journal.KindAwaitingApproval, journal.KindResolved, journal.KindConfirmed:
		if err := f.decide(ctx); err != nil {
			return err
		}
	case journal.KindResumed, journal.KindOperator, journal.KindRollback, journal.KindApplied:
		f.leaveOut(kind)
	default: // it follows from the others, or is about this journal
	}
	return f.advance()
}

// reach has the world told all that was told before the record.
func (f *follower) reach(ctx context.Context) error {
	f.answers.upTo = f.at.ID - 1
	return f.settle(ctx)
}

func (f *follower) settle(ctx context.Context) error {
	for {
		err := f.lw.Update(func(w *world.World) error { return w.Settle(ctx) })
		if f.answers.pass(err) {
			continue
		}
		if err != nil {
			return err
		}
		var head journal.Seq
		var retries bool
		f.lw.View(func(m *world.Moment) {
			head = m.Head().ID
			retries = slices.ContainsFunc(m.Waiting(), func(in receipt.Intent) bool { return f.lw.host.Recorded(&in) || f.lw.host.Live(&in) })
		})
		if !retries {
			return f.repeat(ctx)
		}
		if err := f.lw.awaitNews(ctx, head); err != nil {
			return err
		}
	}
}

// tick runs the tick that the record begins, after those in which only this world has
// something to do.
func (f *follower) tick(ctx context.Context) error {
	body, err := f.at.Record.Body()
	if err != nil {
		return err
	}
	begins, ok := body.(*journal.Advanced)
	if !ok {
		return fmt.Errorf("record #%d begins no tick", f.at.ID)
	}
	f.answers.upTo = f.at.ID - 1
	if err := f.own(ctx, begins.To); err != nil {
		return err
	}
	f.answers.upTo = f.at.ID
	return f.run(ctx, begins.To, begins.Still)
}

func (f *follower) run(ctx context.Context, at manifest.Tick, still bool) error {
	err := f.lw.Update(func(w *world.World) error { return w.RunTick(ctx, at, still) })
	if err != nil && !f.answers.pass(err) {
		return err
	}
	return f.settle(ctx)
}

// resumeTick has the tick of a real clock go on, for what only this world has to do in it: it
// got events, or has to permit again what was under way in the other.
func (f *follower) resumeTick(ctx context.Context) error {
	var now manifest.Tick
	var goes bool
	f.lw.View(func(m *world.Moment) {
		now = m.Time()
		at, ok := m.NextTick()
		waits := func(c world.CellView) bool { return len(c.Mail) > 0 && !c.Halted }
		goes = ok && at == now && (f.past.Sent > 0 || !slices.ContainsFunc(m.Cells(), waits))
	})
	if !goes {
		return nil
	}
	return f.run(ctx, now, false)
}

// own runs the ticks before one in which something falls due, or is told of what is performed.
func (f *follower) own(ctx context.Context, before manifest.Tick) error {
	for {
		if err := f.settle(ctx); err != nil {
			return err
		}
		var at manifest.Tick
		var due bool
		f.lw.View(func(m *world.Moment) {
			// A mailbox waits for the tick in which somebody drove the other world.
			if at, due = m.NextTick(); m.Manifest().Clock.Real() && !f.over {
				at, due = m.NextDue()
			}
		})
		if e := f.answers.nextOutside(); e != nil && (!due || f.answers.told[e.Intent.Key] < at) {
			at, due = f.answers.told[e.Intent.Key], true
		}
		if !due || at >= before {
			return nil
		}
		if err := f.run(ctx, at, false); err != nil {
			return err
		}
	}
}

// goOn runs the world from where the past ends, or is not followed any more, up to the
// last tick, and has it told there what is performed.
func (f *follower) goOn(ctx context.Context) error {
	if !f.more {
		f.answers.upTo = never - 1
		f.over = f.past.Alone || f.past.Last > f.past.World.time()
	}
	for {
		if err := f.own(ctx, f.past.Last.Plus(1)); err != nil {
			return err
		}
		for e := f.answers.nextOutside(); e != nil; e = f.answers.nextOutside() {
			f.answers.told[e.Intent.Key] = 0
			if err := f.settle(ctx); err != nil {
				return err
			}
		}
		if found, err := f.find(ctx); !found || err != nil {
			return err
		}
	}
}

// find waits for what verifiers find, and reports whether they were asked anything.
func (f *follower) find(ctx context.Context) (bool, error) {
	asked := false
	if err := f.lw.Update(func(w *world.World) error {
		if !f.over {
			return nil
		}
		err := w.Sync() // only then are they asked
		asked = w.Asking()
		return err
	}); err != nil || !asked {
		return false, err
	}
	if err := f.lw.Wait(ctx); err != nil {
		return false, err
	}
	return true, f.settle(ctx)
}

// missed returns the effects that nothing answers, as they were found; what the past has no
// answer to is one of them where it was gone beyond.
func (f *follower) missed() []*host.MissError {
	all := f.answers.misses
	if !f.over {
		return all
	}
	for _, miss := range f.lw.Unanswered() {
		if !slices.ContainsFunc(all, func(m *host.MissError) bool { return m.Step == miss.Step }) {
			all = append(all, miss)
		}
	}
	return all
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

// leaveOutPersons leaves a decision out, unless a verifier made it.
func (f *follower) leaveOutPersons(kind journal.Kind, actor string) {
	if !world.ByVerifier(actor) {
		f.leaveOut(kind)
	}
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
