package main

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

func newKeysCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "keys", Short: "The keys that sign receipts"}, newKeysListCommand(c))
}

func newKeysListCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the receipt keys by id; secrets are never printed",
		Example: "  worldctl keys list",
		Args:    args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return c.with(func(lw *local.World) error {
				return list(c, "keys", "keys", all(lw.Keys().Keys()), columns[receipt.KeyStatus]{
					header: table.Row{"id", "epoch", "current", "revoked"},
					row:    func(k receipt.KeyStatus) table.Row { return table.Row{k.ID, k.Epoch, k.Current, k.Revoked} },
					none:   "no keys: this world can be read, not run",
				})
			})
		},
	}
}
