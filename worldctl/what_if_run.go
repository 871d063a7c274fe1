package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// whatIfOf makes a what-if of a question, with a directory of its own for what does
// not stay.
func (c *cli) whatIfOf(q *question, temporary string) (w local.WhatIf, closeEvents func(), err error) {
	w = local.WhatIf{
		At:    func(past *local.World) (journal.Seq, error) { return recordsOf(past).At(q.at) },
		Alone: q.only, Ticks: q.ticks, UntilIdle: q.untilIdle, Dir: c.path(q.keep),
	}
	if q.keep == "" {
		w.Dir = filepath.Join(temporary, "fork")
	}
	dir, err := c.dir()
	if err != nil {
		return w, nil, err
	}
	if c.owns(dir) {
		w.Copy = filepath.Join(temporary, "past")
	}
	if w.Actor, err = c.actor(""); err != nil {
		return w, nil, err
	}
	if w.Amend, err = c.readAmendment(q.patch); err != nil {
		return w, nil, err
	}
	events, closeEvents, err := c.openEvents(q.send)
	if events != nil {
		w.Send = func(ctx context.Context, fork *local.World) (uint64, error) { return sendTo(ctx, fork, events) }
	}
	return w, closeEvents, err
}

func (c *cli) whatIf(ctx context.Context, q question) (err error) {
	if err := q.check(); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "worldctl-what-if-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	w, closeEvents, err := c.whatIfOf(&q, temporary)
	if err != nil {
		return err
	}
	defer closeEvents()
	var x *local.Supposed
	err = c.with(func(lw *local.World) (err error) {
		x, err = lw.Suppose(w)
		return err
	})
	switch {
	case errors.Is(err, local.ErrNotEmpty):
		return hinted(err, "--keep names a directory that is not there yet, or is empty")
	case w.Amend != nil && errors.Is(err, journal.ErrNotFound):
		return hinted(err, "a patch names contents that the world has; --patch world.yaml brings its own along")
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := x.Run(ctx, c.options()); err != nil {
		return err
	}
	return c.concludeWhatIf(&q, x)
}

// concludeWhatIf compares the two worlds, and says what came of it.
func (c *cli) concludeWhatIf(q *question, x *local.Supposed) error {
	dir, err := c.dir()
	if err != nil {
		return err
	}
	a := whatIfOf(q, x)
	was, is, err := sides(x, a.Unknown)
	if err != nil {
		return err
	}
	if a.Difference, err = view.Compare(was, is, q.limit); err != nil {
		return err
	}
	a.Difference.A.Dir, a.Difference.B.Dir = dir, q.keep
	a.Same = a.Difference.Same && a.Unknown == nil
	if err := c.object("what-if", a, func() { c.showWhatIf(a, was, is) }); err != nil {
		return err
	}
	if !a.Same {
		return errDifferent
	}
	return nil
}

// sendTo submits the events that are asked about.
func sendTo(ctx context.Context, fork *local.World, events io.Reader) (uint64, error) {
	n, err := fork.SubmitLines(ctx, events, nil, 0, nil)
	var at *local.LineError
	if !errors.As(err, &at) {
		return n, err
	}
	if err = refusedLine(at, fork); errors.Is(err, world.ErrBadTick) {
		err = hinted(at.Err, "the fork begins at tick %d", fork.Status().Time)
	}
	return n, fmt.Errorf("line %d: %w", at.Line, err)
}

// sides returns the moments to compare: where the fork has come to, or the end of
// the tick before what is unknown, and the world as it was then.
func sides(x *local.Supposed, unknown *unknownAnswer) (was, is *view.Side, err error) {
	last := x.Last
	if unknown != nil {
		last = unknown.Tick - 1
		is, err = sideAfter(x.Fork, last)
	} else {
		is, err = sideAfter(x.Fork, math.MaxUint64)
	}
	if err == nil {
		was, err = sideAfter(x.World, last)
	}
	return was, is, err
}

// sideAfter returns a world as it was before the first tick after one.
func sideAfter(lw *local.World, tick manifest.Tick) (*view.Side, error) {
	at, err := recordsOf(lw).EndOf(tick, lw.Head().ID)
	if err != nil {
		return nil, err
	}
	m, err := lw.At(at)
	if err != nil {
		return nil, err
	}
	return sideOf(lw, m), nil
}
