package worldctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

type replayAnswer struct {
	OK              bool              `json:"ok"`
	Records         uint64            `json:"records"`          // that are equal
	StateRoot       *journal.Hash     `json:"state_root"`       // null where it diverged
	FirstDivergence *world.Divergence `json:"first_divergence"` // null where it did not
}

func newReplayCommand(c *cli) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Compute the world again from its inputs, and compare every record",
		Long: `Compute the world again from its inputs, without I/O, and compare every record
byte for byte: from the first, or from a snapshot, whose image is believed.

Exit code 3 if a record differs; it is named with its cell and both values.`,
		Example: `  worldctl replay
  worldctl replay --from before-lunch --to t50
  worldctl replay --to 1000 -o json`,
		Args: args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return c.with(func(lw *local.World) error {
				first, last, err := replaySpan(lw, from, to)
				if err != nil {
					return err
				}
				return c.replay(lw, first, last)
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "only what comes after this `SNAPSHOT`")
	cmd.Flags().StringVar(&to, "to", "", "only up to this `MOMENT` (a record, t5, -10, head or a snapshot) and what was written at once with it")
	return cmd
}

// replaySpan returns the record of the snapshot from which to replay, 0 for all,
// and the last record to replay.
func replaySpan(lw *local.World, from, to string) (first, last journal.Seq, err error) {
	last = recordsOf(lw).End()
	if from != "" {
		s, err := findSnapshot(lw, from)
		if err != nil {
			return 0, 0, err
		}
		first = journal.Seq(s.Record)
	}
	if to != "" {
		if last, err = recordsOf(lw).moment(to); err != nil {
			return 0, 0, err
		}
	}
	if last < first {
		return 0, 0, usagef("the snapshot comes before the last record", "%s was made in record #%d, after #%d", from, first, last)
	}
	return first, last, nil
}

func (c *cli) replay(lw *local.World, from, to journal.Seq) error {
	report, stop := c.progress("records", uint64(to))
	done, err := lw.ReplayFrom(from, to, report)
	stop()
	answer := replayAnswer{OK: err == nil}
	if err == nil {
		answer.Records, answer.StateRoot = uint64(done.Head.ID-from), &done.StateRoot
	} else if errors.As(err, &answer.FirstDivergence) {
		answer.Records = uint64(answer.FirstDivergence.Record - 1 - from)
	} else if from != 0 && errors.Is(err, journal.ErrNotFound) {
		return hinted(err, "a rollback since led to a snapshot before it that is not kept: worldctl replay computes all")
	} else {
		return err
	}
	return errors.Join(c.object("replay", answer, func() {
		if answer.OK {
			c.facts([2]any{"records", fmt.Sprintf("%d, all equal", answer.Records)}, [2]any{"state root", answer.StateRoot})
		}
	}), err)
}
