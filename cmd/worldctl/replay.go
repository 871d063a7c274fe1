package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

type replayAnswer struct {
	OK              bool              `json:"ok"`
	Records         uint64            `json:"records"`
	StateRoot       *world.Hash       `json:"state_root"`       // null where it diverged
	FirstDivergence *world.Divergence `json:"first_divergence"` // null where it did not
}

func newReplayCommand(c *cli) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Compute the world again from its inputs, and compare every record",
		Long: `Compute the world again from its inputs, without I/O, and compare every record
byte for byte.

Exit code 3 if a record differs; it is named with its cell and both values.`,
		Example: `  worldctl replay
  worldctl replay --to 1000 -o json`,
		Args: args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			var last world.Seq
			if to != "" {
				var err error
				if last, err = parseRecord(to); err != nil {
					return err
				}
			}
			return c.with(func(lw *local.World) error { return c.replay(lw, last) })
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "only up to this `RECORD` and what was written at once with it")
	return cmd
}

func (c *cli) replay(lw *local.World, to world.Seq) error {
	end := lw.Store().Head().ID
	if to > end {
		return hinted(fmt.Errorf("there is no record #%d", to), "the journal ends at #%d", end)
	}
	if to == 0 {
		to = end
	}
	report, stop := c.progress("records", uint64(to))
	done, err := lw.Replay(to, report)
	stop()
	answer := replayAnswer{OK: err == nil}
	if err == nil {
		answer.Records, answer.StateRoot = uint64(done.Head.ID), &done.StateRoot
	} else if errors.As(err, &answer.FirstDivergence) {
		answer.Records = uint64(answer.FirstDivergence.Record - 1)
	} else {
		return err
	}
	return errors.Join(c.object("replay", answer, func() {
		if answer.OK {
			c.facts([2]any{"records", fmt.Sprintf("%d, all equal", answer.Records)}, [2]any{"state root", answer.StateRoot})
		}
	}), err)
}
