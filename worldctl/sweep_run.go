package worldctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/world/local"
)

func newSweepRunCommand(c *cli) *cobra.Command {
	var out, keep string
	cmd := &cobra.Command{
		Use:   "run N --keep DIR",
		Short: "Make one run of an experiment again, as a world on disk",
		Long: `Make one run of an experiment again, as a whole world in DIR, to look at with every other
verb. All that was measured of it, its execution hash and its state root are those that the
results have: where they are not, that is an error which says what is another, there is no
world, and the exit code is 3. Effects are answered by what was recorded; nothing is
performed. From then on it is a world like others: stepped on, it performs its live effects,
under the budgets of its own manifest.`,
		Example: `  worldctl sweep run 40 --keep ../run40
  worldctl -w ../run40 verify`,
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
