package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// The forms of a shadow's text.
const (
	formatText     = "text"
	formatMarkdown = "markdown"
)

// shadowing is what a person asks to be shadowed, and how.
type shadowing struct {
	what   string // a proposal, or a file that makes a manifest
	patch  string // such a file
	from   string // a moment
	last   uint64
	format string
}

func newShadowCommand(c *cli) *cobra.Command {
	var s shadowing
	cmd := &cobra.Command{
		Use:  "shadow PROPOSAL|FILE",
		Args: args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.what = strings.Join(args, "")
			ctx, cancel := c.timed(cmd.Context())
			defer cancel()
			err := c.shadow(ctx, &s)
			if errors.Is(err, context.Canceled) {
				err = hinted(err, "the world has not changed")
			}
			return shadowTrouble(err, &s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.patch, "patch", "", "the `FILE` that makes a manifest of the one in force, as the argument does")
	f.StringVar(&s.from, "from", "", "begin with the last snapshot that is not after this `MOMENT`, or with the first record")
	f.Uint64Var(&s.last, "last", 0, "begin with the last snapshot that `N` records follow, or with the first record")
	f.StringVar(&s.format, "format", formatText, "`FORMAT` of the text: text, or markdown for a pull request")
	addActor(cmd, "does it")
	c.addBounds(cmd)
	c.addTime(cmd)
	return cmd
}

// check refuses what nothing can be shadowed by.
func (s *shadowing) check() error {
	switch {
	case s.what != "" && s.patch != "":
		return usagef("type one of them", "%s and --patch %s are two candidates", s.what, s.patch)
	case s.what == "" && s.patch == "":
		return usagef("worldctl shadow p1; worldctl proposal list shows those that there are", "it is not said what to shadow: a proposal or a file")
	case s.from != "" && s.last != 0:
		return usagef("type one of them", "--from and --last do not go together")
	case s.format != formatText && s.format != formatMarkdown:
		return usagef("type --format text or --format markdown", "%q is not a format of reports", s.format)
	}
	return nil
}

func (c *cli) shadow(ctx context.Context, s *shadowing) error {
	if err := s.check(); err != nil {
		return err
	}
	if _, err := view.ParseProposal(s.what); err == nil {
		return c.onProposal(s.what, func(lw *local.World, n uint64) error {
			var id journal.Seq
			r, err := c.shadowed(lw, s, func(cfg world.ShadowConfig) (r *governance.Report, err error) {
				id, r, err = lw.Shadow(ctx, n, cfg, c.by)
				return r, err
			})
			if err != nil {
				return err
			}
			name := view.ProposalName(n)
			migration, err := recordsOf(lw).MigrationOf(ctx, r.Candidate)
			if err != nil {
				return err
			}
			return c.showRun(&shadowRun{n, id, r, name, "worldctl approve " + name + " --key FILE", inForceSince(lw), migration}, s.format)
		})
	}
	file := s.what + s.patch
	change, err := c.readAmendment(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = hinted(err, "proposals are p1, p2 and so on: worldctl proposal list; a file is a world.yaml or a patch")
	}
	if err != nil {
		return err
	}
	return c.with(func(lw *local.World) error {
		next, contents, err := change(inForce(lw))
		if err != nil {
			return err
		}
		r, err := c.shadowed(lw, s, func(cfg world.ShadowConfig) (*governance.Report, error) {
			r, err := lw.Rehearse(ctx, next, contents, cfg)
			return r, hintContents(err)
		})
		if err != nil {
			return err
		}
		migration := recordsOf(lw).Migration(ctx, next, contents)
		return c.showRun(&shadowRun{0, 0, r, file, "worldctl propose " + file, inForceSince(lw), migration}, s.format)
	})
}

// shadowed says how much of the history run is to go through, and shows on a terminal
// how far that has come.
func (c *cli) shadowed(lw *local.World, s *shadowing, run func(world.ShadowConfig) (*governance.Report, error)) (*governance.Report, error) {
	cfg, err := recordsOf(lw).ShadowFrom(s.from, journal.Seq(s.last))
	if err != nil {
		return nil, err
	}
	cfg.Bounds = c.bounds.Bounds
	report, stop := c.progress("records", uint64(lw.Head().ID))
	defer stop()
	cfg.Progress = func(at journal.Seq) { report(uint64(at)) }
	return run(cfg)
}

// hintContents says of a candidate whose contents are nowhere where they come from, and of
// one whose engine this program does not have which there are.
func hintContents(err error) error {
	if errors.Is(err, journal.ErrNotFound) && !errors.Is(err, journal.ErrRedacted) {
		return hinted(err, "a patch names contents that the world has; a world.yaml brings its own along")
	}
	return noEngine(err)
}

// inForce returns the manifest that a world runs.
func inForce(lw *local.World) (m *manifest.Manifest) {
	lw.View(func(w *world.Moment) { m = w.Manifest() })
	return m
}

// inForceSince returns the record that put the manifest in force.
func inForceSince(lw *local.World) (record uint64) {
	lw.View(func(w *world.Moment) {
		_, f := w.Proposals()
		record = f.Since
	})
	return record
}

// shadowRun is what a shadow came to.
type shadowRun struct {
	proposal uint64      // 0: nobody has proposed it
	record   journal.Seq // that holds the report; 0: none does
	report   *governance.Report
	of, next string
	since    uint64 // the record that put the manifest in force

	migration *view.Migration
}

func (c *cli) showRun(x *shadowRun, format string) error {
	a, err := view.ShadowOf(x.proposal, x.record, x.report, x.migration)
	if err != nil {
		return err
	}
	err = c.object("shadow", a, func() {
		most := markdownLines
		if c.verbose {
			most = 0
		}
		if format == formatMarkdown {
			view.WriteMarkdown(c.stdout, x.of, a.Report, a.Migration, most, c.inWorld(x.next))
		} else {
			c.showShadow(x.of, a.Report, a.Migration)
		}
	})
	if err != nil {
		return err
	}
	c.flush()
	if a.From < x.since {
		c.note("the history begins before #%d, which put the manifest in force: what that has changed is told with the rest", x.since)
	}
	if a.Events == 0 {
		c.note("note: no event has come since %s: --last N or --from SNAPSHOT shadow more of the history", view.BeganAt(a.Report))
	}
	if x.proposal == 0 {
		c.note("nobody has proposed this, and no record tells of it")
	}
	if a.Base != a.Candidate {
		c.hintNext("%s", x.next)
	}
	if !a.Same {
		return errDifferent
	}
	return nil
}

// shadowTrouble gives an error of shadow the exit code that is not taken for an
// answer. What conflicts with the world as it is keeps its own.
func shadowTrouble(err error, s *shadowing) error {
	switch {
	case errors.Is(err, world.ErrLeftPart):
		err = hinted(err, "worldctl snapshot list shows others; without --from it begins where it can")
	case errors.Is(err, journal.ErrRedacted):
		err = hinted(err, "nobody can tell what would have followed from it: worldctl shadow %s --from SNAPSHOT begins after that record, and worldctl snapshot list shows with what",
			s.what+s.patch)
	}
	if err != nil {
		if code, _ := judge(err); code == exitConflict {
			return err
		}
	}
	return trouble(err)
}

// How many lines of a section of a report are shown; --verbose shows all that it
// lists.
const (
	reportLines   = 10
	markdownLines = 20
)

// showShadow prints a report about what is called of: what a reviewer has to
// know, the verdict first, and what an apply would migrate now.
func (c *cli) showShadow(of string, r *governance.Report, m *view.Migration) {
	fmt.Fprintln(c.stdout, visible(view.Headline(of, r, m), ""))
	most := reportLines
	if c.verbose {
		most = 0
	}
	for _, s := range append(view.Sections(r, most), m.Section(most), m.Stops(most)) {
		if s.Total > 0 {
			c.showSection(&s)
		}
	}
	fmt.Fprintln(c.stdout)
	if d := r.Divergence; d != nil {
		record, cell, recorded, computed := view.FirstOther(d)
		fmt.Fprintf(c.stdout, "the first record that would be another is %s%s\n  recorded  %s\n  now       %s\n\n",
			record, visible(cell, ""), visible(recorded, ""), visible(computed, ""))
	}
	var facts [][2]any
	for _, f := range view.ReportFacts(r) {
		facts = append(facts, [2]any{f[0], visible(f[1], "")})
	}
	c.facts(facts...)
}

// showSection prints a section as plain lines, which nothing is cut off: data is
// short enough for a line or two.
func (c *cli) showSection(s *view.Section) {
	fmt.Fprintf(c.stdout, "\n%s: %s\n", s.Title, view.Thousands(s.Total))
	t := c.plainTable(columnGap, "")
	t.AppendHeader(rowOf(s.Header))
	for _, row := range s.Rows {
		t.AppendRow(rowOf(row))
	}
	t.Render()
	if more := s.More(); more != "" {
		fmt.Fprintf(c.stdout, "  %s\n", more)
	}
}

// rowOf makes a row of a table, in which nothing can hide the rest.
func rowOf(texts []string) table.Row {
	var row table.Row
	for _, text := range texts {
		row = append(row, visible(text, ""))
	}
	return row
}
