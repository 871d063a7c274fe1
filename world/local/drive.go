package local

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Course says how a world is driven. The zero value drives it until it is idle.
type Course struct {
	Ticks  uint64                   // at most; 0: no bound
	Every  bool                     // also those in which nothing can happen, each to its end: see Step
	Stay   bool                     // wait for others where the world is idle
	Last   bool                     // nothing goes on after it: once ctx has ended a step has stepPatience left, then the world in memory ends amid it
	Until  time.Time                // no longer than this; zero: no bound
	Stop   func(*world.Moment) bool // asked before each step whether it is the end; nil: never
	Ticked func(done uint64)        // told of each tick; nil: nobody is
	Waits  func(*world.Moment)      // told before each wait for the outside or for others; nil: nobody is
	Behind func(by time.Duration)   // told when the wall clock is found behind the world, which waits; nil: nobody is
}

// Driven says what came of driving a world.
type Driven struct {
	Ticks     uint64
	Records   uint64
	Status    world.Status
	Undecided int    // effects in doubt that need a person's decision
	Committed int    // intents that ended well meanwhile
	Denied    int    // intents that were denied meanwhile
	Cancelled int    // intents that were cancelled meanwhile, before anything of them was attempted
	Failed    int    // intents that failed meanwhile
	Missed    uint64 // attempts that were made because nothing recorded answers them
}

// Drive runs ticks as far as the course says or until ctx ends, which is an error;
// what was done is durable then, too. Where nothing can happen it waits for the
// outside and for what others bring about: other calls may be made meanwhile. An
// effect that a recording has no answer for ends it with the *host.MissError of the
// first in the order of their permits, whichever the host came upon first: so the
// world stands the same wherever it is run.
func (lw *World) Drive(ctx context.Context, c Course) (Driven, error) {
	from, missed := lw.store.Head().ID, lw.Missed()
	var before world.Status
	lw.View(func(w *world.Moment) { before = w.Status() })
	ticks, idle, err := lw.drive(ctx, &c)
	d := Driven{Ticks: ticks}
	lw.View(func(w *world.Moment) {
		d.Status = w.Status()
		var asked int
		if d.Undecided, asked = w.InDoubt(); idle {
			d.Undecided += asked // their verifiers have said that they cannot tell
		}
	})
	since := func(s receipt.State) int { return max(d.Status.Intents[s]-before.Intents[s], 0) } // rollbacks may come meanwhile
	d.Committed, d.Failed, d.Denied = since(receipt.StateCommitted), since(receipt.StateFailed), since(receipt.StateDenied)
	d.Cancelled = since(receipt.StateCancelled)
	d.Missed = lw.Missed() - missed
	d.Records = uint64(d.Status.Head.ID - from)
	return d, err
}

// drive is Drive; idle says that it ended because nothing more could happen.
func (lw *World) drive(ctx context.Context, c *Course) (ticks uint64, idle bool, err error) {
	within, end := ctx, func() {}
	if !c.Until.IsZero() {
		within, end = context.WithDeadline(ctx, c.Until)
	}
	defer end()
	if c.Last {
		defer lw.endAfter(ctx)()
	}
	sync := lw.Sync
	if c.Stay {
		sync = lw.startDriver()
	}
	behind := false
	for err == nil && !idle && (c.Ticks == 0 || ticks < c.Ticks) && !lw.stops(c) {
		if err = within.Err(); err != nil {
			break
		}
		behind = lw.tellBehind(c, behind)
		before := lw.store.Head().ID
		var p world.Progress
		p, err = lw.advance(within, c)
		switch {
		case lw.missedLater(err):
			err = nil
		case err != nil || p == world.Handled:
		case p == world.Ticked:
			ticks++
			if c.Ticked != nil {
				c.Ticked(ticks)
			}
		case p == world.Idle && !c.Stay:
			idle = true
		default: // a late answer comes to an idle world, too; and the end of a wait for approval
			if c.Waits != nil {
				lw.View(c.Waits)
			}
			err = lw.awaitNews(within, before)
		}
	}
	if failed := sync(); failed != nil && (err == nil || within.Err() != nil) {
		err = failed
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil
	}
	return ticks, idle, err
}

// startDriver has events wait for the driver to make them durable, until what it returns is called: that
// makes all durable that has happened.
func (lw *World) startDriver() (end func() error) {
	driver, ended := context.WithCancel(context.Background())
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.submitted.driver = driver
	return func() error {
		defer ended()
		return lw.Update(func(w *world.World) error {
			lw.submitted.driver = nil
			return w.Sync()
		})
	}
}

// stepPatience is how long a step that nobody waits for any more has to end. What is thrown away then
// was told to nobody.
const stepPatience = 2 * time.Second

// lifetime returns what the world in memory lives within, as does what is lived again of its past.
func (lw *World) lifetime() context.Context {
	switch {
	case lw.life != nil:
		return lw.life
	case lw.opts.Life != nil:
		return lw.opts.Life
	}
	return context.Background()
}

// Changing returns for how long the change has been going on that is under way: a step, say. Whoever
// looks at the world meanwhile waits. 0: there is none.
func (lw *World) Changing() time.Duration {
	if since := lw.changing.Load(); since != 0 {
		return time.Since(time.Unix(0, since))
	}
	return 0
}

// endAfter ends the world in memory where it is at work for longer than stepPatience after ctx has
// ended, until what is returned is called.
func (lw *World) endAfter(ctx context.Context) (until func()) {
	if lw.endLife == nil {
		return func() {}
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		patience := time.NewTimer(stepPatience)
		defer patience.Stop()
		select {
		case <-patience.C:
			lw.endLife()
		case <-done:
		}
	})
	return func() {
		stop()
		close(done)
	}
}

// tellBehind tells whoever wants to know that the wall clock is behind, unless it was.
func (lw *World) tellBehind(c *Course, was bool) bool {
	if c.Behind == nil {
		return false
	}
	by := lw.Behind()
	if by > 0 && !was {
		c.Behind(by)
	}
	return by > 0
}

func (lw *World) advance(ctx context.Context, c *Course) (world.Progress, error) {
	if c.Every {
		return world.Ticked, lw.Step(ctx)
	}
	return lw.Next(ctx)
}

// stops asks whether the course is at its end.
func (lw *World) stops(c *Course) (end bool) {
	if c.Stop == nil {
		return false
	}
	lw.View(func(w *world.Moment) {
		end = c.Stop(w)
	})
	return end
}

// Run runs ticks until the world is idle or ctx ends. Other calls may be made
// while it waits.
func (lw *World) Run(ctx context.Context) error {
	_, _, err := lw.drive(ctx, &Course{})
	return err
}

// RunUntil runs, as Run does, until what comes next is in a tick after one, or
// nothing does.
func (lw *World) RunUntil(ctx context.Context, last manifest.Tick) error {
	_, _, err := lw.drive(ctx, &Course{Stop: func(m *world.Moment) bool {
		at, ok := m.NextTick()
		return ok && at > last
	}})
	return err
}

// RunIntent runs, as Run does, until an intent gets on only by an input, or not at
// all.
func (lw *World) RunIntent(ctx context.Context, key receipt.Key) error {
	_, _, err := lw.drive(ctx, &Course{Stop: func(m *world.Moment) bool {
		e, ok := m.Intent(key)
		return !ok || e.Resting()
	}})
	return err
}

// awaitNews blocks until the outside has an answer, something falls due by the wall
// clock, or the journal has a record after one: another call may have brought it about.
func (lw *World) awaitNews(ctx context.Context, after journal.Seq) error {
	due := make(chan struct{})
	if clock, until, waits := lw.waitsFor(); waits {
		timed, stop := context.WithCancel(ctx)
		var timing sync.WaitGroup
		defer timing.Wait()
		defer stop()
		timing.Go(func() {
			if clock.Wait(timed, until) == nil {
				close(due)
			}
		})
	}
	for {
		grown, err := lw.store.News(after)
		if grown == nil {
			return cmp.Or(err, ctx.Err())
		}
		news, err := lw.outsideNews()
		if news == nil {
			return cmp.Or(err, ctx.Err())
		}
		select {
		case <-grown:
		case <-news:
		case <-due:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Wait blocks until the outside has brought an answer, or ctx ends. Other calls
// may be made meanwhile.
func (lw *World) Wait(ctx context.Context) error {
	for {
		news, err := lw.outsideNews()
		if news == nil {
			return cmp.Or(err, ctx.Err())
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// outsideNews is News of the host that performs now.
func (lw *World) outsideNews() (<-chan struct{}, error) {
	if err := lw.canRun(); err != nil {
		return nil, err
	}
	performs := lw.edition.Load().host
	news, err := performs.News()
	if errors.Is(err, host.ErrClosed) && lw.performer() != performs {
		return nil, nil // Apply has put another in its place
	}
	return news, err
}

func (lw *World) performer() *host.Host {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.host
}

// missedLater reports whether an error says that an effect has no answer while
// another one, which was permitted before, may still get one.
func (lw *World) missedLater(err error) bool {
	var miss *host.MissError
	if !errors.As(err, &miss) {
		return false
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	flight := lw.w.InFlight()
	return len(flight) > 0 && flight[0].Step != miss.Step
}
