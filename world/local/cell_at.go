package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// CellAt returns the cell of At, if the cell exists there. It costs the cell's own records since
// the image before, and what At does only where these do not tell, because of a rollback between.
// The world goes on meanwhile.
func (lw *World) CellAt(cell reducer.Cell, at journal.Seq) (v world.CellView, found bool, err error) {
	known, err := lw.landmarks(at)
	if err != nil {
		return v, false, err
	}
	if heads, err := lw.store.ImageHeads(); err == nil { // else those that the world knows of
		after := func(head journal.Seq) bool { return head > known.Head }
		known.Images = slices.DeleteFunc(heads, after)
	}
	return world.CellAt(lw.lifetime(), lw.store, known, cell, at, lw.opts.Reducers)
}

// PrintsOf returns what steps print, of the records that hold their ends, ascending: it
// takes them again, within bounds; zero: those of Options. The world goes on meanwhile.
func (lw *World) PrintsOf(ctx context.Context, steps []journal.Seq, b world.Bounds) ([]world.Printed, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	known, err := lw.landmarks(steps[len(steps)-1])
	if err != nil {
		return nil, err
	}
	return world.PrintsOf(ctx, lw.store, known, steps, lw.opts.Reducers, cmp.Or(b, lw.opts.Bounds.withDefaults().Bounds))
}

// UnitEnd returns the last record of what was written at once with a record. The
// error is journal.ErrNotFound where there is no such record.
func (lw *World) UnitEnd(at journal.Seq) (journal.Seq, error) {
	known, err := lw.landmarks(at)
	if err != nil {
		return 0, err
	}
	return journal.UnitEnd(lw.store, at, known.Head)
}

// landmarks returns the world's, if they reach as far as a record.
func (lw *World) landmarks(at journal.Seq) (world.Landmarks, error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	known := lw.w.Landmarks()
	if lw.lacks != nil && at > known.Head {
		return known, lw.lacks
	}
	if at == 0 || at > known.Head {
		return known, fmt.Errorf("record #%d of %d: %w", at, known.Head, journal.ErrNotFound)
	}
	return known, nil
}
