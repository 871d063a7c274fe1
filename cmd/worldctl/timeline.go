package main

import (
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// moment is one record in words.
type moment struct {
	Time   manifest.Tick `json:"time"`
	Record world.Seq     `json:"record"`
	Kind   world.Kind    `json:"kind"`
	What   string        `json:"what"`
}

func newTimelineCommand(c *cli) *cobra.Command {
	var limit uint64
	cmd := &cobra.Command{
		Use:   "timeline CELL",
		Short: "Tell what a cell did: events, steps, intents, receipts",
		Long: `Tell what a cell did and what happened to it, in the order of the journal: the
events it received, the steps it took on them, what it emitted, what it asked
for and what the gate, people and the outside answered, with every attempt. What
a person asked for is told of operator/NAME. -v prints data in full.`,
		Example: `  worldctl timeline agent/ada
  worldctl timeline operator/ada
  worldctl timeline agent/ada -o jsonl`,
		Args: args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.with(func(lw *local.World) error {
				cell, err := findActor(lw, args[0])
				if err != nil {
					return err
				}
				t := teller{journal: journal{lw}, self: cell, full: c.verbose}
				ids, err := t.ofCell(t.self)
				if err != nil {
					return err
				}
				return list(c, "timeline", "moments", first(each(ids, t.moment), limit), columns[moment]{
					header: table.Row{"tick", "record", "what"},
					row:    func(m moment) table.Row { return table.Row{m.Time, fmt.Sprintf("#%d", m.Record), m.What} },
					plain:  true,
					none:   "nothing has happened to it",
				})
			})
		},
	}
	cmd.Flags().Uint64Var(&limit, "limit", 0, "only the first `N` records")
	return cmd
}

// findActor returns the cell, or the operator, that a person named.
func findActor(lw *local.World, name string) (string, error) {
	cell, err := parseCell(name)
	if err != nil {
		return "", err
	}
	if cell.Reducer != reducer.Operator {
		_, err := findCell(lw, name)
		return name, err
	}
	if !slices.ContainsFunc(ledger(lw), func(e receipt.Entry) bool { return e.Intent.Cell == name }) {
		return "", hinted(fmt.Errorf("%s has asked for nothing", name), "worldctl tail --kind effect.submitted shows who has")
	}
	return name, nil
}

func (t teller) moment(id world.Seq) (moment, error) {
	e, err := t.entry(id)
	if err != nil {
		return moment{}, err
	}
	what, err := t.tell(e)
	return moment{Time: e.Time, Record: id, Kind: e.Kind, What: what}, err
}
