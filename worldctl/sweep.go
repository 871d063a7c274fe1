package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/manifest"
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
		Use:   "sweep FILE [--out DIR] [--runs N] [--jobs N]",
		Short: "Run an experiment: one world many times, with other rules, params and seeds",
		Long: `Run an experiment: one world many times, with other rules, params and seeds, in memory, on
all cores. FILE is a YAML document that says which (docs/experiments.md). All of it is
checked before the first run.

Of each run are kept its measures, seed and params, its execution hash and its state root, in
the directory of results. Ctrl-C, which waits for steps and effects under way, or a kill loses the runs under way; the same command goes on with those that are missing.
Where all have ended, the tables are the same byte for byte, however it came to that:
runs.csv and ticks.csv, .jsonl and .parquet, with dictionary.json.

Nothing outside is touched unless --live KIND says so, whatever the experiment says: then
effects of that kind that nothing has recorded are performed, for real, within the budget of
the experiment. model.* names all that begin so, but for those of class destructive, which
are named exactly.

Exit code 1 if runs have failed, each with its run, seed and tick; 6 if effects are in doubt.`,
		Example: `  worldctl sweep sir.yaml
  worldctl sweep report
  worldctl sweep run 40 --keep ../run40`,
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
	var damage *experiment.DamageError
	switch {
	case errors.Is(err, experiment.ErrOtherSpec):
		return &fault{err: err, code: exitConflict, hint: "--out DIR names another directory of results; or remove " + shellWord(dir)}
	case errors.As(err, &damage) && damage.Answers:
		return &fault{err: err, code: exitVerify, hint: "bring it back from a copy; without the lines that have its key the attempt is made, and paid for, again"}
	case errors.As(err, &damage):
		return &fault{err: err, code: exitVerify, hint: fmt.Sprintf("bring it back from a copy; or sed -i %dd %s removes the line, and then worldctl sweep FILE makes that run again", damage.Line, shellWord(damage.File))}
	case errors.Is(err, experiment.ErrPlanDamaged):
		return &fault{err: err, code: exitVerify, hint: "bring it back from a copy; or run the experiment again with --out DIR"}
	case errors.Is(err, experiment.ErrPlanFormat):
		return &fault{err: err, code: exitConflict, hint: "run the experiment again with --out DIR, or use the version of the program that has made them"}
	case errors.Is(err, experiment.ErrResultsUsed), errors.Is(err, experiment.ErrAnswersUsed):
		return &fault{err: err, code: exitConflict, hint: "wait until that process has ended, then type this again"}
	case errors.Is(err, experiment.ErrForeign):
		return usagef("--out DIR names a directory that is not there yet, is empty, or has results of this experiment", "%w", err)
	case errors.Is(err, syscall.ENOTDIR):
		return usagef("--out DIR names a directory that is there, or can be made", "%w", err)
	case errors.Is(err, experiment.ErrNoResults):
		return usagef("worldctl sweep FILE makes them; --out DIR says where they are", "%w", err)
	case errors.Is(err, context.Canceled):
		return hinted(err, "the runs that have ended are kept; type the same again for the rest")
	case errors.Is(err, syscall.ENOSPC):
		return hinted(err, "make room on the disk, and type the same again: the runs that have ended are kept")
	}
	return err
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
