package worldctl

import (
	"errors"
	"fmt"
	"iter"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// moment is one record in words.
type moment struct {
	Time   manifest.Tick `json:"time"`
	Record journal.Seq   `json:"record"`
	Kind   journal.Kind  `json:"kind"`
	What   string        `json:"what"`
}

func newTimelineCommand(c *cli) *cobra.Command {
	var s selected
	var limit uint64
	cmd := &cobra.Command{
		Use:   "timeline CELL",
		Short: "Tell what a cell did: events, steps, intents, receipts",
		Long: `Tell what a cell did and what happened to it, in the order of the journal: the
events it received, the steps it took on them, what it emitted, what it asked
for and what the gate, people and the outside answered, with every attempt. What
a person asked for is told of operator/NAME. -v prints data in full.`,
		Example: `  worldctl timeline agent/ada
  worldctl timeline agent/ada --from t100 --to t200
  worldctl timeline operator/ada
  worldctl timeline agent/ada -o jsonl`,
		Args: args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.with(func(lw *local.World) error {
				t := describer{records: recordsOf(lw), full: c.verbose}
				var err error
				if t.self, err = t.findActor(args[0]); err != nil {
					return err
				}
				s.Cell = t.self
				want, err := s.in(t.records)
				if err != nil {
					return err
				}
				return list(c, "timeline", "moments", first(t.moments(t.Select(want)), limit), columns[moment]{
					header: table.Row{"tick", "record", "what"},
					row:    func(m moment) table.Row { return table.Row{m.Time, fmt.Sprintf("#%d", m.Record), m.What} },
					plain:  true,
					none:   "nothing has happened to it",
				})
			})
		},
	}
	addRange(cmd, &s.from, &s.to)
	addLimit(cmd, &limit, "records")
	return cmd
}

// findActor returns the cell, or the operator, that a person named.
func (j records) findActor(name string) (string, error) {
	cell, err := parseCell(name)
	if err != nil {
		return "", err
	}
	err = j.Concerned(cell)
	if errors.Is(err, world.ErrNoCell) && cell.Reducer == reducer.Operator {
		err = hinted(fmt.Errorf("%s has asked for nothing", name), "worldctl tail --kind effect.submitted shows who has")
	}
	return name, err
}

// moments puts records into words.
func (t describer) moments(records iter.Seq2[*view.Entry, error]) iter.Seq2[moment, error] {
	return func(yield func(moment, error) bool) {
		for e, err := range records {
			var m moment
			if err == nil {
				m = moment{Time: e.Time, Record: e.ID, Kind: e.Kind}
				m.What, err = t.describe(e)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}
