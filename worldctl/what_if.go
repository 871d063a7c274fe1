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
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// question is what a what-if asks.
type question struct {
	at        string
	send      string // a file of JSON lines; -: stdin
	patch     string // a file: a patch or a world file
	keep      string // the fork's directory; empty: a temporary one
	only      bool
	decisions string        // recorded, or none
	live      manifest.Live // the kinds that are performed where nothing recorded answers
	seed      *uint64       // nil: the world's
	untilIdle bool
	ticks     uint64 // 0: no bound
	limit     uint64 // of the cells that are told of
}

func newWhatIfCommand(c *cli) *cobra.Command {
	var q question
	var seed uint64
	cmd := &cobra.Command{
		Use: "what-if --at MOMENT [--send FILE] [--patch FILE] [--seed N]",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := c.timed(cmd.Context())
			defer cancel()
			if cmd.Flags().Changed("seed") {
				q.seed = &seed
			}
			if err := checkDecisions(q.decisions); err != nil {
				return err
			}
			err := c.whatIf(ctx, q)
			if errors.Is(err, context.Canceled) {
				err = hinted(err, "the world has not changed")
			}
			return trouble(err)
		},
	}
	addAt(cmd, &q.at, "fork at this")
	cmd.Flags().StringVar(&q.send, "send", "", "send the events in this `FILE` of JSON lines; - is stdin")
	addPatch(cmd, &q.patch)
	addSeed(cmd, &seed)
	addLive(cmd, &q.live)
	addDecisions(cmd, &q.decisions)
	cmd.Flags().BoolVar(&q.only, "only", false, "do not send what the world got after the moment")
	cmd.Flags().StringVar(&q.keep, "keep", "", "make the fork in this `DIR` and leave it there")
	cmd.Flags().BoolVar(&q.untilIdle, "until-idle", false, "run on until the fork is idle, also where the world is not")
	cmd.Flags().Uint64Var(&q.ticks, "ticks", 0, "compare the two `N` ticks after the moment; 0 is no bound")
	addLimit(cmd, &q.limit, "cells")
	c.addBounds(cmd)
	c.addTime(cmd)
	return cmd
}

// check refuses a question that is none.
func (q *question) check() error {
	switch {
	case q.at == "":
		return usagef("worldctl what-if --at t5 --send FILE", "it is not said when: --at MOMENT")
	case q.send == "" && q.patch == "" && q.seed == nil && !q.only:
		return usagef("--send FILE, --patch FILE, --seed N, or --only, without what came after the moment", "it is not said what would be different")
	case len(q.live) > 0 && q.keep == "":
		return usagef("--keep DIR says where", "what is performed has to stay on record")
	case q.untilIdle && q.ticks > 0:
		return usagef("type one of them", "--until-idle and --ticks do not go together")
	}
	return nil
}

// addLive adds the flag of verbs that perform effects where a world is only tried.
func addLive(cmd *cobra.Command, live *manifest.Live) {
	cmd.Flags().StringSliceVar((*[]string)(live), "live", nil, "perform effects of this `KIND`, for real; several, or a pattern such as model.*, which covers none of class destructive")
}

// decisionsNone says that nothing is decided as a person did; decisionsRecorded, that it is.
const (
	decisionsNone     = "none"
	decisionsRecorded = "recorded"
)

// addDecisions adds the flag of verbs that live a past again.
func addDecisions(cmd *cobra.Command, decisions *string) {
	cmd.Flags().StringVar(decisions, "decisions", decisionsRecorded, "`WHO` decides about what awaits approval: recorded, as a person did about the same, or none")
}

func checkDecisions(decisions string) error {
	if decisions != decisionsNone && decisions != decisionsRecorded {
		return usagef("type --decisions recorded or --decisions none", "%q does not say who decides", decisions)
	}
	return nil
}

// addPatch adds the flag of verbs that fork under other rules.
func addPatch(cmd *cobra.Command, patch *string) {
	cmd.Flags().StringVar(patch, "patch", "", "put the manifest in force that this `FILE` makes: a patch as JSON, or a world.yaml")
}

// addSeed adds the flag of verbs that fork with another seed.
func addSeed(cmd *cobra.Command, seed *uint64) {
	cmd.Flags().Uint64Var(seed, "seed", 0, "the `N` that randomness comes from; the world's if not given")
}

// unmade says what to do about a fork under other rules that names what nobody has.
func unmade(err error, amend world.Amendment) error {
	switch {
	case amend == nil:
		return err
	case errors.Is(err, journal.ErrNotFound):
		return hinted(err, "a patch names contents that the world has; --patch world.yaml brings its own along")
	}
	return noEngine(err)
}

// readAmendment reads a patch or a world file; without one nothing is amended.
func (c *cli) readAmendment(file string) (world.Amendment, error) {
	switch filepath.Ext(file) {
	case "":
		if file == "" {
			return nil, nil
		}
	case ".yaml", ".yml":
		loaded, err := c.readWorld(file)
		if err != nil {
			return nil, toCorrect(err, file)
		}
		return loaded.Amend, nil
	}
	data, err := c.readContent(file)
	if err != nil {
		return nil, err
	}
	patch, err := manifest.ParsePatchJSON(data)
	if err != nil {
		return nil, hinted(fmt.Errorf("%s: %w", file, err), `a patch is {"base_manifest_hash": ..., "ops": [{"op": "set", "path": "/...", "value": ...}]}; a world file ends in .yaml`)
	}
	return func(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
		next, err := patch.Apply(base)
		switch {
		case errors.Is(err, manifest.ErrOtherBase):
			err = hinted(fmt.Errorf("%s: %w", file, err), "make it for the manifest in force at that moment: worldctl status --at MOMENT shows its hash")
		case err != nil:
			err = hinted(fmt.Errorf("%s: %w", file, err), "correct the file")
		}
		return next, nil, err
	}, nil
}

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
