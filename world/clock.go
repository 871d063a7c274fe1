package world

import (
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/manifest"
)

// ErrRealClock says that the ticks of a world come by the wall clock, and not when
// somebody asks for one.
var ErrRealClock = errors.New("the world's clock is real: its ticks come by themselves")

// ErrClock says that rules would count the time of a real clock in another way.
var ErrClock = errors.New("a real clock keeps its epoch and its tick")

// checkClock refuses rules that would move the deadlines of a world, or end its time.
func checkClock(is, next manifest.Clock, now manifest.Tick) error {
	switch last := next.Last(); {
	case now > last && is != next:
		return refuse(ErrNoTick, "clock", "the world is at tick %d, and that clock ends at tick %d", now, last)
	case !is.Real() || !next.Real():
		return nil
	case is.Tick != next.Tick:
		return refuse(ErrClock, "clock.tick", "all that the world waits for is counted in it")
	case is.Epoch != next.Epoch:
		return refuse(ErrClock, "clock.epoch", "all that the world waits for is counted from it")
	}
	return nil
}

// wall returns the tick that the wall clock has reached, or the world's where that is
// later: time never goes back. False: ticks do not come by a clock.
func (w *World) wall() (manifest.Tick, bool) {
	clock := w.k.rules.manifest.Clock
	if w.cfg.Now == nil || !clock.Real() {
		return 0, false
	}
	return max(clock.Since(w.cfg.Now()), w.k.now), true
}

// atNow readies the world for an input: what was begun is ended, and what has fallen
// due by the wall clock until now comes first. What that asks of the outside is permitted
// by who drives the world: whoever brings an input may be gone at once.
func (w *World) atNow(ctx context.Context) error {
	if err := w.finishTick(ctx); err != nil {
		return err
	}
	now, byClock := w.wall()
	for byClock && w.k.now < now {
		if err := w.tickOf(ctx, w.until(now), now, true); err != nil {
			return err
		}
	}
	return nil
}

// until returns the next tick on the way to now: those in which nothing falls due are
// jumped over.
func (w *World) until(now manifest.Tick) manifest.Tick {
	if due, ok := w.NextDue(); ok {
		return max(min(now, due), w.k.now)
	}
	return now
}

// tickOf runs a tick on the way to now. In one that has passed live effects have no
// answers: what comes from outside comes now. still has it permit nothing.
func (w *World) tickOf(ctx context.Context, at, now manifest.Tick, still bool) error {
	if err := w.k.advance(at, still); err != nil {
		return err
	}
	w.passing = at < now
	err := w.finishRounds(ctx, false)
	w.passing = false
	return err
}

// nextReal is what Next does first in a world whose ticks come by the wall clock: it
// runs the next tick in which something is due, or that of now if there is something
// to do in it. What is due comes before what has come from outside since.
func (w *World) nextReal(ctx context.Context, now manifest.Tick) (Progress, error) {
	at := w.until(now)
	if due, ok := w.NextDue(); ok && due <= now {
		return Ticked, w.tickOf(ctx, at, now, false)
	}
	if at > w.k.now {
		if err := w.gather(); err != nil {
			return Idle, err
		}
	}
	wake, waits := w.k.wake(true)
	if w.k.canGoOn() || at > w.k.now && (len(w.came) > 0 || waits && wake <= now) {
		return Ticked, w.tickOf(ctx, at, now, false)
	}
	return Waiting, nil
}

// gather takes the answers that have come, to be looked at later.
func (w *World) gather() error {
	if w.host == nil {
		return nil
	}
	answers, err := w.host.Answers()
	if err != nil {
		return w.syncAfter(err)
	}
	w.came = append(w.came, answers...)
	return nil
}
