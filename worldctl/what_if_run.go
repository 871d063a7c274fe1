package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// whatIfOf makes a what-if of a question, with a directory of its own for what does
// not stay.
func (c *cli) whatIfOf(q *question, temporary string) (w local.WhatIf, closeEvents func(), err error) {
	w = local.WhatIf{
		At:    func(past *local.World) (journal.Seq, error) { return recordsOf(past).At(q.at) },
		Alone: q.only, Seed: q.seed, OrLive: q.effects == string(journal.ForkRecordedOrLive), Ticks: q.ticks, UntilIdle: q.untilIdle, Dir: c.path(q.keep),
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
	if q.send == "" {
		return w, func() {}, nil
	}
	events, err := c.open(q.send)
	if err != nil {
		return w, nil, err
	}
	w.Send = func(ctx context.Context, fork *local.World) (uint64, error) { return sendTo(ctx, fork, events) }
	return w, func() { _ = events.Close() }, nil // only read
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
		x, err = lw.Suppose(ctx, w)
		return err
	})
	switch {
	case errors.Is(err, local.ErrNotEmpty):
		return hinted(err, "--keep names a directory that is not there yet, or is empty")
	case err != nil:
		return unmade(err, w.Amend)
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	x.Opened = c.noteOrLive
	opts := c.options()
	if c.placed != nil {
		opts = c.in(c.placed.Dir, opts)
	}
	if err := x.Run(ctx, opts); err != nil {
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
	a, err := view.WhatIfOf(x, view.Most{Cells: q.limit})
	if err != nil {
		return err
	}
	a.Forked.Dir, a.Difference.A.Dir, a.Difference.B.Dir = q.keep, dir, q.keep
	if err := c.object("what-if", a, func() { c.showWhatIf(a) }); err != nil {
		return err
	}
	if !a.Same {
		return errDifferent
	}
	return nil
}

// sendTo submits the events that are asked about.
func sendTo(ctx context.Context, fork *local.World, events io.Reader) (uint64, error) {
	n, err := fork.SubmitLines(ctx, events, nil, world.When{}, nil)
	var at *local.LineError
	if !errors.As(err, &at) {
		return n, err
	}
	if err = refusedLine(at, fork); errors.Is(err, world.ErrBadTick) {
		err = hinted(at.Err, "the fork begins at tick %d", fork.Status().Time)
	}
	return n, fmt.Errorf("line %d: %w", at.Line, err)
}

func (c *cli) showWhatIf(a *view.WhatIf) {
	c.showUnknown(a)
	c.showComparison(a.Difference, a.Was, a.Is)
	fmt.Fprintf(c.stdout, "events sent: %d, sent again: %d; effects answered by what was recorded: %d, without an answer: %d\n",
		a.Sent, a.Again.Events, a.Answered, a.Unanswered)
	c.notePerformed(a.Performed)
	c.noteAgain(&a.Again)
	if a.Forked.Dir != "" {
		c.note("the fork is in %s", a.Forked.Dir)
	}
}

// showUnknown says which effect is the first that nothing answers, if one is.
func (c *cli) showUnknown(a *view.WhatIf) {
	u := a.Unknown
	if u == nil {
		return
	}
	fmt.Fprintf(c.stdout, "unknown beyond tick %d: in tick %d %s asks for %s %s (occurrence %d), and nothing recorded answers it\n",
		u.Tick-1, u.Tick, u.Cell, u.Kind, view.Describer{Full: c.verbose}.Data(u.Params), u.Occurrence)
	c.note("%s", visible(u.Nearest, ""))
	if u.Differs != "" {
		c.note("they differ first %s", visible(u.Differs, ""))
	}
}

// noteAgain says what of the world's inputs was not repeated.
func (c *cli) noteAgain(a *view.Again) {
	if f := a.FirstRefused; f != nil {
		c.note("events that the fork did not take: %d, the first is #%d %s: %s", a.Refused, f.Record, f.Event, f.Reason)
	}
	if len(a.LeftOut) > 0 {
		var kinds []string
		for _, x := range a.LeftOut {
			kinds = append(kinds, fmt.Sprintf("%d %s", x.Records, x.Kind))
		}
		c.note("what persons decided is not repeated: %s", strings.Join(kinds, ", "))
	}
}
