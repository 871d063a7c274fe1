package world

import (
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/manifest"
)

// Failure is a step that has failed.
type Failure struct {
	Cell   string
	Tick   manifest.Tick
	Halted bool // the cell waits for a person; else its event was dropped
	Error  string
}

// TellFailures has hear told of each step that fails from now on, of a world of which nothing
// is kept, too; nil: nobody is told.
func (w *World) TellFailures(hear func(Failure)) { w.k.onFailure = hear }

// turn gives a cell its turn.
func (w *World) turn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return w.syncAfter(err)
	}
	whole := false
	defer func() {
		if !whole {
			_ = w.fail(errTorn)
		}
	}()
	w.k.next()
	whole = true
	return w.appendFull()
}

// errTorn says that a panic, or the end of its goroutine, came amid a step.
var errTorn = errors.New("a step was broken off")
