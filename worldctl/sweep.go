package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// defaultResults is where the results of experiments lie where nothing else is said.
const defaultResults = "results"

// errRunsFailed is the end of an experiment some of whose runs have failed.
var errRunsFailed = errors.New("runs have failed")

func newSweepCommand(c *cli) *cobra.Command {
	var o experiment.Options
	var effects string
	var live manifest.Live
	cmd := &cobra.Command{
		Use: "sweep FILE [--out DIR] [--runs N] [--jobs N]",
		RunE: func(cmd *cobra.Command, args []string) error {
			err := c.sweep(cmd.Context(), args[0], effects, live, o)
			if like := suggested(cmd, args[0]); len(like) > 0 && errors.Is(err, fs.ErrNotExist) {
				return usagef("did you mean "+cmd.CommandPath()+" "+like[0]+"?", "%w", err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&o.Dir, "out", defaultResults, "the `DIR` of results")
	cmd.Flags().Uint64Var(&o.Runs, "runs", 0, "only the first `N` runs; 0 is all")
	cmd.Flags().IntVar(&o.Jobs, "jobs", 0, "`N` runs at once; 0 is one a core, and 32 where effects are live")
	cmd.Flags().StringSliceVar(&o.Formats, "format", experiment.Formats(), "write tables in these `FORMATS`")
	cmd.Flags().StringVar(&effects, "effects", "", "`WHO` answers effects: stub, recorded or live; what the experiment says if not given")
	addLive(cmd, &live)
	cmd.AddCommand(newSweepRunCommand(c), newSweepReportCommand(c))
	return cmd
}

// loadExperiment reads an experiment, and says what to do about its faults.
func (c *cli) loadExperiment(file, effects string, live manifest.Live) (*experiment.Spec, error) {
	if info, err := os.Stat(c.path(file)); err == nil && info.IsDir() {
		return nil, usagef("name the document in it, such as "+shellWord(filepath.Join(file, "experiment.yaml")), "%s is a directory", file)
	}
	s, err := experiment.Load(c.path(file), experiment.LoadOptions{Worlds: c.throwaway(), Effects: effects, Live: live})
	if errors.As(err, new(*source.Error)) {
		err = &fault{err: err, code: exitUsage, hint: "correct the file, then type the same again: no run was made; docs/experiments.md has every key"}
	}
	return s, err
}

func (c *cli) sweep(ctx context.Context, file, effects string, live manifest.Live, o experiment.Options) error {
	if err := checkSweep(effects, &o); err != nil {
		return err
	}
	s, err := c.loadExperiment(file, effects, live)
	if err != nil {
		return err
	}
	o.Dir, o.Worlds = c.path(o.Dir), c.throwaway()
	total := s.Runs()
	if o.Runs > 0 {
		total = min(total, o.Runs)
	}
	bar := c.newGauge("runs", total)
	o.Begun = func(done, _ uint64) { bar.report(done) }
	o.Ended = func(_ *experiment.Result, done, _ uint64) { bar.report(done) }
	o.Waiting = func(attempts int) {
		bar.stop()
		c.note("no run goes on; effects under way outside: %d, which have their timeouts to end, and %s after Ctrl-C", attempts, host.DefaultGrace)
	}
	out, err := experiment.Run(ctx, s, o)
	bar.stop()
	if out == nil {
		return sweepFault(err, o.Dir)
	}
	printed := c.object("sweep", out, func() { c.showSweep(s, o.Dir, out) })
	if err != nil {
		return errors.Join(printed, sweepFault(err, o.Dir))
	}
	return errors.Join(printed, failedRuns(out))
}

// checkSweep refuses flags that do not read.
func checkSweep(effects string, o *experiment.Options) error {
	modes := []string{"", experiment.EffectsStub, experiment.EffectsRecorded, experiment.EffectsLive}
	if !slices.Contains(modes, effects) {
		return usagef("type --effects stub, --effects recorded or --effects live", "%q does not say who answers effects", effects)
	}
	if o.Jobs < 0 {
		return usagef("worldctl sweep FILE --jobs 1", "%d is no number of runs at once", o.Jobs)
	}
	for _, format := range o.Formats {
		if !slices.Contains(experiment.Formats(), format) {
			return usagef("--format csv,jsonl,parquet", "%q is no format of tables", format)
		}
	}
	return nil
}

// sweepFault says what to do about why an experiment did not go on.
func sweepFault(err error, dir string) error {
	const copied = "bring it back from a copy; "
	if damage := (*experiment.DamageError)(nil); errors.As(err, &damage) {
		hint := fmt.Sprintf("or sed -i %dd %s removes the line, and then worldctl sweep FILE makes that run again", damage.Line, shellWord(damage.File))
		if damage.Answers {
			hint = "without the lines that have its key the attempt is made, and paid for, again"
		}
		return &fault{err: err, code: exitVerify, hint: copied + hint}
	}
	return advised(err, []advice{
		{experiment.ErrOtherSpec, exitConflict, "--out DIR names another directory of results; or remove " + shellWord(dir)},
		{experiment.ErrPlanDamaged, exitVerify, copied + "or run the experiment again with --out DIR"},
		{experiment.ErrPlanFormat, exitConflict, "run the experiment again with --out DIR, or use the version of the program that has made them"},
		{experiment.ErrResultsUsed, exitConflict, hintOwned},
		{experiment.ErrAnswersUsed, exitConflict, hintOwned},
		{experiment.ErrForeign, exitUsage, "--out DIR names a directory that is not there yet, is empty, or has results of this experiment"},
		{syscall.ENOTDIR, exitUsage, "--out DIR names a directory that is there, or can be made"},
		{experiment.ErrNoResults, exitUsage, "worldctl sweep FILE makes them; --out DIR says where they are"},
		{context.Canceled, 0, "the runs that have ended are kept; type the same again for the rest"},
		{syscall.ENOSPC, 0, "make room on the disk, and type the same again: the runs that have ended are kept"},
	}...)
}

// failedRuns is the error of runs that have failed or left effects in doubt; nil: there are none.
func failedRuns(out *experiment.Outcome) error {
	const most = 10
	if n := len(out.Failed); n > 0 {
		var text strings.Builder
		for _, f := range out.Failed[:min(n, most)] {
			fmt.Fprintf(&text, "\n%s", f.Error)
		}
		if n > most {
			fmt.Fprintf(&text, "\nand %d more: their rows in runs.csv say why", n-most)
		}
		return hinted(fmt.Errorf("%w: %d of %d%s", errRunsFailed, n, out.Runs, text.String()),
			"the results of all others are kept; worldctl sweep run N --keep DIR makes one of them again, to look at")
	}
	if out.InDoubt.All > 0 {
		return hinted(fmt.Errorf("%w: %d of them", errUndecided, out.InDoubt.All),
			"they are not performed again: the column in_doubt of runs.csv says in which runs, and the file effects which they are")
	}
	return nil
}

// noteWrong says what went wrong within runs that nobody hears of otherwise, and where to
// look.
func (c *cli) noteWrong(t *experiment.Tally, runs uint64) {
	for _, x := range []struct {
		what string
		experiment.Count
	}{
		{"cells that have halted because a step of theirs failed", t.Halted}, {"events that were dropped because the step failed", t.Skipped},
	} {
		if x.All > 0 {
			c.note("%s: %d in %d of %d runs", x.what, x.All, x.Runs, runs)
		}
	}
	if f := t.First; f != nil {
		c.note("run %d has %s; worldctl sweep run %d --keep DIR makes it again, to look at", f.Run, &f.StepFailure, f.Run)
	}
}

func (c *cli) showSweep(s *experiment.Spec, dir string, out *experiment.Outcome) {
	c.facts([2]any{"experiment", s.Experiment},
		[2]any{"runs", fmt.Sprintf("%d of %d, %d of them before", out.Done, out.Runs, out.Before)},
		[2]any{"variants", strings.Join(s.Variants, ", ")}, [2]any{"points of params", len(s.Points)}, [2]any{"seeds", len(s.Seeds)},
		[2]any{"hash", s.Hash.String()})
	if out.Spent != (experiment.Budget{}) {
		c.note("performed outside so far: %d calls, %d tokens, %d micros", out.Spent.Calls, out.Spent.Tokens, out.Spent.Micros)
	}
	c.noteWrong(&out.Tally, out.Done)
	if out.Done > 0 && out.Sent == 0 && s.Inputs() != "" {
		c.note("inputs: %s has sent no event to any run", s.Inputs())
	}
	names := make([]string, len(out.Files))
	for i, path := range out.Files {
		names[i] = filepath.Base(path)
	}
	if len(names) > 0 {
		c.note("in %s: %s; worldctl sweep report summarises them", dir, strings.Join(names, ", "))
	}
}

func newSweepRunCommand(c *cli) *cobra.Command {
	var out, keep string
	cmd := &cobra.Command{
		Use: "run N --keep DIR",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.ParseUint(args[0], 10, 64)
			switch {
			case err != nil || n == 0:
				return usagef("worldctl sweep run 1 --keep DIR", "%q is no number of a run: they are 1, 2, ...", args[0])
			case keep == "":
				return usagef("--keep DIR says where", "it is not said where the world is to be")
			}
			return c.sweepRun(cmd.Context(), experiment.RunID(n), out, keep)
		},
	}
	cmd.Flags().StringVar(&out, "out", defaultResults, "the `DIR` of results")
	cmd.Flags().StringVar(&keep, "keep", "", "make the world in this `DIR`, which is not there yet or empty")
	return cmd
}

func (c *cli) sweepRun(ctx context.Context, id experiment.RunID, out, keep string) error {
	dir := c.path(out)
	plan, err := experiment.ReadPlan(dir)
	if err != nil {
		return sweepFault(err, dir)
	}
	if uint64(id) > plan.Runs() {
		return usagef(fmt.Sprintf("it has runs 1 to %d", plan.Runs()), "the experiment %s has no run %d", plan.Experiment, id)
	}
	mode := plan.Mode
	if mode == experiment.EffectsLive { // what was recorded answers
		mode = experiment.EffectsRecorded
	}
	s, err := c.loadExperiment(plan.File, mode, nil)
	if err != nil {
		return err
	}
	kept, err := experiment.Keep(ctx, s, id, experiment.Options{Dir: dir, Worlds: c.throwaway()}, c.path(keep))
	switch {
	case errors.Is(err, experiment.ErrOtherSpec):
		return &fault{err: err, code: exitConflict, hint: "the experiment, its world or its inputs have changed since: bring them back, or run the experiment again with --out DIR"}
	case errors.Is(err, experiment.ErrOtherRun):
		return &fault{err: err, code: exitVerify, hint: "the log was changed, or another version of the program has written it: worldctl version"}
	case errors.Is(err, local.ErrNotEmpty), errors.Is(err, local.ErrExists):
		return hinted(err, "--keep names a directory that is not there yet, or is empty")
	case err != nil:
		return sweepFault(err, dir)
	}
	return c.object("sweep-run", kept, func() {
		c.facts([2]any{"run", id}, [2]any{"variant", kept.Variant}, [2]any{"seed", kept.Seed}, [2]any{"ticks", kept.Tick},
			[2]any{"execution hash", kept.ExecutionHash.String()}, [2]any{"state root", kept.StateRoot.String()}, [2]any{"recorded", map[bool]string{true: "the same", false: "the results have not this run yet"}[kept.Recorded]})
		if kept.Error != "" {
			c.note("the run has failed, and the world is as it was then: %s", kept.Error)
		}
		c.note("the world is in %s: worldctl -w %s verify", keep, shellWord(keep))
	})
}

// reportFile is the page that sweep report writes.
const reportFile = "report.html"

func newSweepReportCommand(c *cli) *cobra.Command {
	var out, html string
	cmd := &cobra.Command{
		Use:  "report",
		RunE: func(*cobra.Command, []string) error { return c.sweepReport(out, html) },
	}
	cmd.Flags().StringVar(&out, "out", defaultResults, "the `DIR` of results")
	cmd.Flags().StringVar(&html, "html", "", "write the page to this `FILE`; if not given it is "+reportFile+" in the directory of results")
	return cmd
}

func (c *cli) sweepReport(out, html string) error {
	dir := c.path(out)
	s, err := experiment.Summarise(dir)
	if err != nil {
		return sweepFault(err, dir)
	}
	path := c.path(html)
	if path == "" {
		path = filepath.Join(dir, reportFile)
	}
	if err := file.Replace(path, 0o600, func(w io.Writer) error { return experiment.WriteReport(w, dir) }); err != nil {
		return err
	}
	err = c.object("sweep-report", s, func() { err = c.showSummary(s) })
	c.flush()
	c.note("the page is %s", relative(path))
	return err
}

func (c *cli) showSummary(s *experiment.Summary) error {
	fmt.Fprintf(c.stdout, "%s: %d of %d runs, %d failed\n", s.Experiment, s.Done, s.Runs, s.Failed)
	if err := c.showWrong(s); err != nil {
		return err
	}
	header := func(names ...any) table.Row {
		row := table.Row{"measure", "variant"}
		for _, p := range s.Params {
			row = append(row, p)
		}
		return append(row, names...)
	}
	err := list(c, "sweep-report", "statistics", allItems(s.Statistics), columns[experiment.Statistic]{
		header: header("runs", "mean", "sd", "95% interval", "median"),
		row: func(x experiment.Statistic) table.Row {
			return append(append(table.Row{x.Measure, x.Variant}, x.Point...), x.N, figure(x.Mean), figure(x.SD), interval(&x.Moments), figure(x.Median))
		},
	})
	if len(s.ByVariant) == 1 {
		c.note("there is one variant, and so there are no pairs")
	}
	if err != nil || len(s.Pairs) == 0 {
		return err
	}
	fmt.Fprintf(c.stdout, "difference from %s, over equal seeds:\n", s.Pairs[0].Less)
	return list(c, "sweep-report", "pairs", allItems(s.Pairs), columns[experiment.Pair]{
		header: header("pairs", "mean", "sd", "95% interval", "without 0"),
		row: func(x experiment.Pair) table.Row {
			apart := any(x.Apart())
			if x.None != "" {
				apart = x.None
			}
			return append(append(table.Row{x.Measure, x.Variant}, x.Point...), x.N, figure(x.Mean), figure(x.SD), interval(&x.Moments), apart)
		},
	})
}

// showWrong says why runs have failed, and what went wrong within others, by variant.
func (c *cli) showWrong(s *experiment.Summary) error {
	if s.Clean() {
		return nil
	}
	if len(s.Failures) > 0 {
		fmt.Fprintln(c.stdout, "why runs have failed:")
		err := list(c, "sweep-report", "failures", allItems(s.Failures), columns[experiment.Reason]{
			header: table.Row{"runs", "such as run", "reason"},
			row:    func(x experiment.Reason) table.Row { return table.Row{x.Runs, x.Run, x.Reason} },
		})
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(c.stdout, "how runs have ended:")
	err := list(c, "sweep-report", "by_variant", allItems(s.ByVariant), columns[experiment.Ended]{
		header: table.Row{"variant", "runs", "failed", "cells halted", "events dropped", "effects in doubt", "effects failed"},
		row: func(x experiment.Ended) table.Row {
			return table.Row{x.Variant, x.Done, x.Failed, inRuns(x.Halted), inRuns(x.Skipped), inRuns(x.InDoubt), inRuns(x.FailedEffects)}
		},
	})
	if f := s.First(); f != nil {
		c.note("run %d has %s; worldctl sweep run %d --keep DIR makes it again, to look at", f.Run, &f.StepFailure, f.Run)
	}
	return err
}

func inRuns(n experiment.Count) string {
	if n.Runs == 0 {
		return "0"
	}
	return fmt.Sprintf("%d in %d runs", n.All, n.Runs)
}

func figure(f *float64) string {
	if f == nil {
		return ""
	}
	return experiment.ShowNumber(*f)
}

func interval(m *experiment.Moments) string {
	if m.Low == nil {
		return ""
	}
	return figure(m.Low) + " … " + figure(m.High)
}
