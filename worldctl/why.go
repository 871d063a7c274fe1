package worldctl

import (
	"context"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

func newWhyCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "why RECORD",
		Short: "Follow a record's causes back to the input they began with",
		Long: `Follow a record's causes back to the input they began with, the record itself
first. An answer of the outside is followed to the permit of its attempt and the
intent that asked for it, a person's decision to what it was about. RECORD is 20 or
#20, or any other moment: its last record.`,
		Example: `  worldctl why 20
  worldctl why head
  worldctl why '#20' -o json`,
		Args:        args(1, 1),
		Annotations: map[string]string{takesMoments: "yes"},
		RunE: c.onWorld(func(_ context.Context, lw *local.World, args []string) error {
			t := view.Describer{Journal: recordsOf(lw), Full: c.verbose}
			e, err := t.EntryAt(args[0])
			if err != nil {
				return err
			}
			return list(c, "why", "records", t.Causes(e), columns[*view.Entry]{
				header: table.Row{"record", "tick", "kind", "what"},
				plain:  true,
				whole:  true,
				row: func(e *view.Entry) table.Row {
					what, err := t.Describe(e)
					if err != nil {
						what = err.Error()
					}
					return table.Row{fmt.Sprintf("#%d", e.ID), e.Time, e.Kind, what}
				},
			})
		}),
	}
}
