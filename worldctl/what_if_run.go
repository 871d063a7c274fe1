package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// whatIfOf makes a what-if of a question, with a directory of its own for what does
// not stay.
func (c *cli) whatIfOf(q *question, temporary string) (w local.WhatIf, closeEvents func(), err error) {
	w = local.WhatIf{
		At:    func(past *local.World) (journal.Seq, error) { return recordsOf(past).At(q.at) },
		Alone: q.only, Undecided: q.decisions == decisionsNone, Seed: q.seed, Live: q.live, Ticks: q.ticks, UntilIdle: q.untilIdle, Dir: c.path(q.keep),
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
	temporary, remove, err := c.opts.interrupts.temporary("worldctl-what-if-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
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
	x.Opened = c.noteLive
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
	switch {
	case !a.Difference.Same:
		return errDifferent
	case len(a.Unknown) > 0:
		return fmt.Errorf("it cannot be told whether they differ: what is known is the same, and %s unknown", cellsAre(len(a.Unknown)+a.UnknownMore))
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
	c.showComparison(a.Difference, a.Was, a.Is, len(a.Unknown)+a.UnknownMore)
	fmt.Fprintf(c.stdout, "events sent: %d, sent again: %d; effects answered by what was recorded: %d, without an answer: %d\n",
		a.Sent, a.Again.Events, a.Answered, a.Unanswered)
	c.noteOtherwise(a.Otherwise)
	c.notePerformed(a.Performed)
	c.noteAgain(&a.Again)
	if a.Forked.Dir != "" {
		c.note("the fork is in %s", a.Forked.Dir)
	}
}

// noteOtherwise says how many recorded answers answer nothing, for the rules are others.
func (c *cli) noteOtherwise(by map[string]uint64) {
	for _, kind := range slices.Sorted(maps.Keys(by)) {
		c.note("%s recorded under another config of %s, and no answer under this one; --live %s asks anew", wereRecorded(by[kind]), kind, kind)
	}
}

func wereRecorded(n uint64) string {
	if n == 1 {
		return "1 answer was"
	}
	return fmt.Sprintf("%d answers were", n)
}

// cellsAre counts cells, before what they are.
func cellsAre(n int) string {
	if n == 1 {
		return "1 cell is"
	}
	return fmt.Sprintf("%d cells are", n)
}

// showUnknown says which cells are unknown, from where on and why.
func (c *cli) showUnknown(a *view.WhatIf) {
	if len(a.Unknown) == 0 {
		return
	}
	fmt.Fprintf(c.stdout, "%s unknown, and left out of what is compared:\n", cellsAre(len(a.Unknown)+a.UnknownMore))
	tabulate(c, table.Row{"cell", "after", "tick", "because"}, a.Unknown, func(x *view.UnknownCell) table.Row {
		return table.Row{x.Cell, fmt.Sprintf("#%d", x.Since), x.Tick, c.because(x)}
	})
	if a.UnknownMore > 0 {
		c.note("unknown cells besides these: %d", a.UnknownMore)
	}
	first := &a.Unknown[0].Effect
	c.note("%s", visible(first.Nearest, ""))
	if first.Differs != "" {
		c.note("they differ first %s", visible(first.Differs, ""))
	}
}

// because says why a cell is unknown.
func (c *cli) because(x *view.UnknownCell) string {
	switch x.Why {
	case local.WhyTold:
		return x.Of + " tells it something"
	case local.WhyWaits:
		return "it waits for " + x.Of
	case local.WhyRoom:
		return "what it asks for has no room beside what " + x.Of + " asks for"
	default:
		e := &x.Effect
		return fmt.Sprintf("nothing recorded answers %s %s (occurrence %d)", e.Kind, view.Describer{Full: c.verbose}.Data(e.Params), e.Occurrence)
	}
}

// noteAgain says what of the world's inputs was not repeated.
func (c *cli) noteAgain(a *view.Again) {
	if f := a.FirstRefused; f != nil {
		c.note("events that the fork did not take: %d, the first is #%d %s: %s", a.Refused, f.Record, f.Event, f.Reason)
	}
	if a.Decided > 0 {
		c.note("decided as a person did about the same: %s", view.Number(a.Decided, "intent"))
	}
	if len(a.LeftOut) > 0 {
		var kinds []string
		for _, x := range a.LeftOut {
			kinds = append(kinds, fmt.Sprintf("%d %s", x.Records, x.Kind))
		}
		c.note("what persons decided and is not repeated: %s", strings.Join(kinds, ", "))
	}
}
