package worldctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world/local"
)

func newSnapshotShowCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show a snapshot",
		Long: `Show a snapshot: its record, the one before it (at), the tick, both roots and what
it is for. NAME is its name, or 6 digits of its hash or more. What a cell was in it is
proved by worldctl prove cell.`,
		Example: `  worldctl snapshot show before-lunch`,
		Args:    args(1, 1),
		RunE: c.onWorld(func(_ context.Context, lw *local.World, args []string) error {
			return answer(c, "snapshot", c.showSnapshot)(recordsOf(lw).Snapshot(args[0]))
		}),
	}
}

func (c *cli) showSnapshot(s snapshot.Snapshot) {
	c.facts(
		[2]any{"name", s.Name},
		[2]any{"record", fmt.Sprintf("#%d", s.Record)},
		[2]any{"at", fmt.Sprintf("#%d", s.At)},
		[2]any{"tick", s.Time},
		[2]any{"chain root", s.Root},
		[2]any{"state root", s.State},
		[2]any{"cells", s.Cells},
		[2]any{"label", s.Label},
		[2]any{"pinned", s.Pinned},
		[2]any{"hash", s.Hash},
	)
}
