package local

import (
	"context"
	"time"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// Clock is what a world with a real clock goes by. It is safe for concurrent use.
type Clock interface {
	Now() time.Time
	// Wait returns when it is a time by Now, however that comes to be so, or with the
	// error of ctx when it ends.
	Wait(ctx context.Context, until time.Time) error
}

// wallClock is the machine's.
type wallClock struct{}

// lookAgain is how soon after it was set forward somebody who waits sees it.
const lookAgain = time.Second

// Now returns the time without what only measures how long something takes: the two
// differ when the clock is set.
func (wallClock) Now() time.Time { return time.Now().Round(0) }

// Wait looks at the clock again and again.
func (c wallClock) Wait(ctx context.Context, until time.Time) error {
	for {
		left := until.Sub(c.Now())
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(min(left, lookAgain))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// now is world.Config.Now.
func (o *Options) now() int64 {
	if o.Clock == nil {
		return wallClock{}.Now().UnixNano()
	}
	return o.Clock.Now().UnixNano()
}

// wall returns what tells a world the time; nil: its time jumps.
func (o *Options) wall() func() int64 {
	if o.jumps {
		return nil
	}
	return o.now
}

// waitsFor returns the clock and the time at which something falls due by it; false:
// nothing does.
func (lw *World) waitsFor() (c Clock, until time.Time, waits bool) {
	if c = lw.opts.Clock; c == nil {
		c = wallClock{}
	}
	lw.View(func(w *world.Moment) {
		at, due := w.NextWake()
		clock := w.Manifest().Clock
		until, waits = time.Unix(0, clock.At(at)), due && clock.Real()
	})
	return c, until, waits
}

// Wakes returns when the world goes on without anybody who asks for it.
func (lw *World) Wakes() journal.Wake {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.wake()
}

// wake returns when the world goes on without anybody who asks for it: a simulated clock goes on
// as long as it can. The world's turn is held.
func (lw *World) wake() journal.Wake {
	m := &lw.w.Moment
	clock := m.Manifest().Clock
	at, goesOn := m.NextTick()
	switch {
	case len(m.InFlight()) > 0, goesOn && !clock.Real(), goesOn && at == m.Time():
		return journal.WakeNow
	case !clock.Real():
		return journal.WakeNever
	}
	if at, goesOn = m.NextWake(); !goesOn {
		return journal.WakeNever
	}
	return journal.Wake(clock.At(at))
}

// IsReal reports whether the world's ticks come by the wall clock.
func (lw *World) IsReal() (byClock bool) {
	lw.View(func(w *world.Moment) { byClock = w.Manifest().Clock.Real() })
	return byClock
}

// Reached returns the tick that the wall clock has reached, which the next input brings the
// world to; false: its ticks do not come by the clock.
func (lw *World) Reached() (at manifest.Tick, byClock bool) {
	lw.View(func(w *world.Moment) {
		if clock := w.Manifest().Clock; clock.Real() {
			at, byClock = max(clock.Since(lw.opts.now()), w.Time()), true
		}
	})
	return at, byClock
}

// Behind returns how far the wall clock stands behind a world with a real clock, or its
// epoch: so long the world waits. It is 0 where it does not.
func (lw *World) Behind() (by time.Duration) {
	lw.View(func(w *world.Moment) {
		clock := w.Manifest().Clock
		if at, now := clock.At(w.Time()), lw.opts.now(); clock.Real() && now < at {
			by = time.Duration(at - now)
		}
	})
	return by
}
