package kit

import (
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// Every sets when an event comes to the cell next; it is to be called when it came, and
// once to begin. Like all schedules it is a timer whose tag is the event's name: so a
// cell has one of each, and what is set again is moved.
func Every(ctx *reducer.Context, ticks manifest.Tick, name string, data any) {
	ctx.TimerTagged(ticks, name, data, name)
}

// At has an event come at a tick, which is later than now.
func At(ctx *reducer.Context, tick manifest.Tick, name string, data any) error {
	if tick <= ctx.Time() {
		return fmt.Errorf("at: tick %d is not after %d", tick, ctx.Time())
	}
	ctx.TimerTagged(tick-ctx.Time(), name, data, name)
	return nil
}

// Sometime has an event come as if it came in each tick from the next on with probability
// p.
func Sometime(ctx *reducer.Context, p float64, name string, data any) {
	ctx.TimerTagged(manifest.Tick(1+Geometric(ctx, p)), name, data, name)
}

// Stages has the event come that is behind name in a list, and behind the last the first.
func Stages(ctx *reducer.Context, name string, names []string, ticks manifest.Tick) error {
	i := slices.Index(names, name)
	if i < 0 {
		return fmt.Errorf("stages: %q is none of %q", name, names)
	}
	next := names[(i+1)%len(names)]
	ctx.TimerTagged(ticks, next, nil, next)
	return nil
}
