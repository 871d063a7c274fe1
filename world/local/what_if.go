package local

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
)

// Load reads a world file with all that it names, as Create would. The error is
// that of Validate.
func Load(file string, opts Options, options ...source.Option) (*source.Loaded, error) {
	return load(file, opts, options...)
}

// WhatIf says what is to be otherwise in a world after a moment of its past.
type WhatIf struct {
	At        func(past *World) (journal.Seq, error)                     // the moment; called before the fork and the copy are made
	Amend     world.Amendment                                            // makes the rules since then; nil: they are the world's
	Send      func(ctx context.Context, fork *World) (n uint64, e error) // submits events at that moment; nil: none
	Alone     bool                                                       // without what the world got after it
	Undecided bool                                                       // no decision about what awaited approval is repeated
	Seed      *uint64                                                    // where randomness comes from since then; nil: as it did

	Ticks     uint64 // so many after the moment; 0: until the fork is idle if the world is, else as far as that is
	UntilIdle bool   // until the fork is idle, also where the world is not

	// Live names the kinds of effects of which those are performed that the world has not
	// asked for, up to now; what follows from others is unknown.
	Live manifest.Live

	// Stubs has deterministic adapters answer what is theirs, whatever is recorded: their
	// answers are part of the rules.
	Stubs bool

	Opened func(fork *World) // called before anything is run in it; nil: nobody is told

	Actor string
	Dir   string // the fork's
	Copy  string // where the world is being run, a directory for a copy that stands for what it was; else empty
}

// Supposed is a what-if with its results. World and Fork are open between Run and Close: before,
// the fork reads the world's recordings.
type Supposed struct {
	WhatIf
	Forked *Forked
	Began  manifest.Tick // the fork
	Last   manifest.Tick // no later one was run in the fork

	Sent       uint64
	Followed   Followed          // what became of what the world got
	Answered   uint64            // effects, by what was recorded
	Stubbed    uint64            // effects, by deterministic adapters
	Performed  uint64            // attempts outside, of effects that nothing recorded answers
	Otherwise  map[string]uint64 // answers, by kind, that were recorded while the effect was declared otherwise, and so answer nothing
	Unanswered []*host.MissError // effects that nothing answers, which were left open
	Unknown    []UnknownCell     // what hangs on these; first who is unknown first

	World, Fork *World

	home string // the world's directory
	dir  string // to look at the world in
	came manifest.Tick
	idle bool // the world
}

// Suppose forks the world for a what-if. It does not change, and nothing outside is
// touched: what was recorded answers the fork's effects. Rules that q.Amend makes are held
// to Options.Bounds, here and in Run: what needs more ends with a *world.BoundError.
func (lw *World) Suppose(ctx context.Context, q WhatIf) (x *Supposed, err error) {
	at, err := q.At(lw)
	if err != nil {
		return nil, err
	}
	x = &Supposed{WhatIf: q, Last: math.MaxUint64, home: lw.dir, dir: cmp.Or(q.Copy, lw.dir)}
	x.Forked, err = lw.Fork(ctx, q.Dir, ForkOptions{At: at, Effects: journal.ForkRecorded, Live: q.Live, Actor: q.Actor, Amend: q.Amend, Seed: q.Seed})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // nobody is told of the fork
			err = errors.Join(err, os.RemoveAll(q.Dir))
		}
	}()
	past := lw
	if q.Copy != "" { // after the fork: all that the world had asked for then is in it
		if _, err := lw.Backup(q.Copy); err != nil {
			return nil, err
		}
		if past, err = OpenReadOnly(q.Copy, lw.opts.inDirectory().within(ctx)); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, past.Close()) }()
	}
	past.View(func(w *world.Moment) { x.came, x.idle = w.Time(), w.Idle() })
	return x, nil
}

// Run runs the fork, along the world's journal and on. Nobody may have the world open
// meanwhile, unless it is looked at in a copy.
func (x *Supposed) Run(ctx context.Context, opts Options) (err error) {
	look := opts.within(ctx)
	opts.jumps, opts.stubs = true, x.Stubs // its time is that of what it lives through
	if x.Copy != "" {                      // else the fork knows whose recordings it gets, which it reads now
		if _, opts.asked, opts.live, err = readRecorded(filepath.Join(x.Dir, hiddenDir)); err != nil {
			return err
		}
		opts.Effects = x.Copy
	}
	opts = opts.inDirectory()
	if x.Copy != "" {
		look = look.inDirectory()
	}
	if opts.Secrets == nil { // the fork has no file of them
		opts.Secrets = host.Secrets(filepath.Join(x.home, hiddenDir, secretsDir))
	}
	open := world.Open
	if x.Amend != nil {
		open = world.Try // nobody has put these rules in force
	}
	if x.Fork, err = openBy(x.Dir, opts.within(ctx), open); err != nil {
		return err
	}
	if x.World, err = OpenReadOnly(x.dir, look); err != nil {
		return err
	}
	x.Began = x.Fork.time()
	if x.Opened != nil {
		x.Opened(x.Fork)
	}
	if x.Send != nil {
		if x.Sent, err = x.Send(ctx, x.Fork); err != nil {
			return err
		}
	}
	switch {
	case x.Ticks > 0 && manifest.Tick(x.Ticks) < x.Last-x.Began:
		x.Last = x.Began + manifest.Tick(x.Ticks)
	case x.Ticks == 0 && !x.UntilIdle && !x.idle:
		x.Last = x.came
	}
	past := Past{World: x.World, After: x.Forked.At, Last: x.Last, Sent: x.Sent, Alone: x.Alone, Undecided: x.Undecided}
	if x.Followed, err = x.Fork.Follow(ctx, past); err != nil {
		return err
	}
	x.Unanswered = x.Followed.Missed
	if err := x.Fork.Sync(); err != nil {
		return err
	}
	if err := x.findUnknown(); err != nil {
		return err
	}
	x.Performed = x.Fork.Missed()
	x.countOtherwise()
	return x.countAnswers()
}

// countOtherwise counts the answers that the fork's rules have no use for.
func (x *Supposed) countOtherwise() {
	outside := x.Fork.performer()
	x.Otherwise = make(map[string]uint64)
	now := make(map[string]canon.Hash)
	x.Fork.View(func(w *world.Moment) {
		for kind, e := range w.Manifest().Effects {
			now[kind] = e.Means()
		}
	})
	for _, t := range x.Fork.past.told {
		is, ok := now[t.Kind]
		if !ok || t.Unanswered || t.record <= x.Forked.At || t.Means.IsZero() || t.Means == is {
			continue
		}
		in := receipt.Intent{Cell: t.Cell, Kind: t.Kind, Params: t.Params, Occurrence: t.Occurrence}
		if outside.Recorded(&in) || outside.Live(&in) { // else an adapter that touches nothing outside answers
			x.Otherwise[t.Kind]++
		}
	}
}

// countAnswers counts the answers that the fork was told, by who gave them: one that is to
// be told later is none.
func (x *Supposed) countAnswers() error {
	outside := x.Fork.performer()
	by := make(map[receipt.Key]*uint64) // counts the answers to an intent; nil: Performed has them
	for s, err := range x.Fork.Scan(x.Forked.At) {
		if err = errors.Join(err, s.Err); err != nil {
			return err
		}
		if s.Record.Kind != journal.KindIntent && s.Record.Kind != journal.KindFinished {
			continue
		}
		body, err := s.Record.LoadBody(x.Fork)
		if err != nil {
			return err
		}
		switch b := body.(type) {
		case *journal.IntentEmitted:
			in := receipt.Intent{Key: b.Key, Cell: b.Cell, Kind: b.Kind, Params: b.Params, Occurrence: b.Occurrence}
			switch {
			case outside.Recorded(&in):
				by[b.Key] = &x.Answered
			case outside.Live(&in):
				by[b.Key] = nil
			default:
				by[b.Key] = &x.Stubbed
			}
		case *journal.Finished:
			r, err := receipt.Decode(b.Receipt)
			if err != nil {
				return err
			}
			n, ok := by[r.Key]
			if !ok { // it was under way in the world
				n = &x.Answered
			}
			if n != nil {
				*n++
			}
		}
	}
	return nil
}

// Close gives both worlds up. The fork stays in its directory.
func (x *Supposed) Close() error {
	var err error
	for _, lw := range []*World{x.World, x.Fork} {
		if lw != nil {
			err = errors.Join(err, lw.Close())
		}
	}
	return err
}

// Unanswered returns what is to be said of the effects in flight that wait for an answer
// of another world and have none, in their order.
func (lw *World) Unanswered() (all []*host.MissError) {
	lw.View(func(w *world.Moment) {
		rules := w.Manifest()
		for _, p := range w.InFlight() {
			if !lw.host.Recorded(&p.Intent) {
				continue
			}
			e := rules.Effects[p.Kind]
			if miss := lw.past.Miss(&p, &e); miss != nil {
				all = append(all, miss)
			}
		}
	})
	return all
}
