package worldctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newReplayCommand(c *cli) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use: "replay",
		RunE: c.onWorld(func(ctx context.Context, lw *local.World, _ []string) error {
			first, last, err := c.replaySpan(lw, from, to)
			if err != nil {
				return err
			}
			return c.replay(ctx, lw, first, last)
		}),
	}
	addRange(cmd, &from, &to)
	c.memoryFlag(cmd)
	return cmd
}

// replaySpan returns the record of the snapshot from which to replay, 0 for all,
// and the last record to replay.
func (c *cli) replaySpan(lw *local.World, from, to string) (first, last journal.Seq, err error) {
	j := view.Journal{Local: lw}
	if first, last, err = j.Part(from, to); err != nil || from == "" {
		return 0, last, err
	}
	s, ok := j.SnapshotBefore(first)
	if !ok {
		c.note("note: no snapshot is kept of what was before %s: all is replayed", from)
		return 0, last, nil
	}
	if journal.Seq(s.Record) < first {
		c.note("note: it begins after #%d: snapshot %s is the last before %s", s.Record, s.Name, from)
	}
	return journal.Seq(s.Record), last, nil
}

func (c *cli) replay(ctx context.Context, lw *local.World, from, to journal.Seq) error {
	report, stop := c.progress("records", uint64(to))
	a, err := recordsOf(lw).Replay(ctx, from, to, int(c.memory), report)
	stop()
	switch {
	case a == nil && from != 0 && errors.Is(err, journal.ErrNotFound):
		return hinted(err, "a rollback since led to a snapshot before it that is not kept: worldctl replay computes all")
	case a == nil:
		return err
	}
	return errors.Join(c.object("replay", a, func() {
		if a.OK {
			c.facts([2]any{"records", fmt.Sprintf("%d, all equal", a.Records)}, [2]any{"state root", a.StateRoot})
		}
	}), err)
}
