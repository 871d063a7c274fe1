package main

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newWhyCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "why RECORD",
		Short: "Follow a record's causes back to the input they began with",
		Long: `Follow a record's causes back to the input they began with, the record itself
first. The answer of the outside is followed to the permit and the intent that
asked for it.`,
		Example: `  worldctl why 20
  worldctl why '#20' -o json`,
		Args: args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.with(func(lw *local.World) error {
				t := teller{journal: journal{lw}, full: c.verbose}
				e, err := t.find(args[0])
				if err != nil {
					return err
				}
				chain, err := t.causes(e)
				if err != nil {
					return err
				}
				return list(c, "why", "records", all(chain), columns[*entry]{
					header: table.Row{"record", "tick", "kind", "what"},
					plain:  true,
					row: func(e *entry) table.Row {
						what, err := t.tell(e)
						if err != nil {
							what = err.Error()
						}
						return table.Row{fmt.Sprintf("#%d", e.ID), e.Time, e.Kind, what}
					},
				})
			})
		},
	}
}

// causes returns a record and what caused it, up to an input.
func (j journal) causes(e *entry) ([]*entry, error) {
	chain := []*entry{e}
	for {
		cause, err := j.causeOf(e)
		if err != nil || cause == 0 {
			return chain, err
		}
		if cause >= e.ID {
			return nil, fmt.Errorf("record #%d says that #%d caused it, which comes later", e.ID, cause)
		}
		if e, err = j.entry(cause); err != nil {
			return nil, err
		}
		chain = append(chain, e)
	}
}

// causeOf returns the record that caused e, 0 for none. An answer is an input,
// but someone asked: its cause is the permit.
func (j journal) causeOf(e *entry) (world.Seq, error) {
	b, ok := e.body.(*world.Finished)
	if !ok {
		return e.CausedBy, nil
	}
	r, err := receipt.Decode(b.Receipt)
	if err != nil {
		return 0, fmt.Errorf("record #%d: %w", e.ID, err)
	}
	for _, asked := range ledger(j.lw) {
		if asked.Intent.Key == r.Key {
			return world.Seq(asked.Started), nil
		}
	}
	return 0, nil
}
