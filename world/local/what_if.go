package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
)

// Load reads a world file with all that it names, as Create would. The error is
// that of Validate.
func Load(file string, opts Options) (*source.Loaded, error) { return load(file, opts) }

// RunUntil runs, as Run does, until what comes next is in a tick after one, or
// nothing does. An effect that a recording has no answer for ends it with the
// *host.MissError of the first in the order of their permits, whichever the host
// came upon first: so the world stands the same wherever it is run.
func (lw *World) RunUntil(ctx context.Context, last manifest.Tick) error {
	for {
		at, ok := lw.nextTick()
		if ok && at > last {
			return nil
		}
		p, err := lw.Next(ctx)
		if lw.missedLater(err) {
			continue
		}
		if err == nil && p == world.Waiting {
			err = lw.Wait(ctx)
		}
		if err != nil || p == world.Idle {
			return err
		}
	}
}

func (lw *World) nextTick() (at manifest.Tick, ok bool) {
	lw.View(func(w *world.Moment) { at, ok = w.NextTick() })
	return at, ok
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

// Unanswered returns the permits of the effects in flight that no receipt of
// another world answers, in their order.
func (lw *World) Unanswered(other *World) ([]receipt.Permit, error) {
	lw.mu.Lock()
	asked := lw.w.InFlight()
	lw.mu.Unlock()
	for answer, err := range other.recorded() {
		if err != nil {
			return nil, fmt.Errorf("recorded effects: %w", err)
		}
		asked = slices.DeleteFunc(asked, func(p receipt.Permit) bool {
			return p.Occurrence == answer.Occurrence && p.Cell == answer.Cell && p.Kind == answer.Kind &&
				bytes.Equal(p.Params, answer.Params)
		})
	}
	return asked, nil
}
