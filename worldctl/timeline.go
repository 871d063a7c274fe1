package worldctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newTimelineCommand(c *cli) *cobra.Command {
	var s selected
	var limit uint64
	cmd := &cobra.Command{
		Use: "timeline CELL",
		RunE: c.onWorld(func(ctx context.Context, lw *local.World, args []string) error {
			t := view.Describer{Journal: recordsOf(lw), Full: c.verbose}
			var err error
			if t.Self, err = findActor(t.Journal, args[0]); err != nil {
				return err
			}
			s.Cell = t.Self
			want, err := s.in(t.Journal)
			if err != nil {
				return err
			}
			none := "nothing has happened to it"
			if s.from != "" || s.to != "" || len(s.kinds) > 0 {
				none = "no such records"
			}
			came := func(l view.Line) any { return l.Time }
			header := table.Row{"tick", "record", "what"}
			if lw.IsReal() {
				came = func(l view.Line) any { return calendar(lw, l.Time) }
				header[0] = "time"
			}
			return list(c, "timeline", "moments", first(t.Lines(t.Select(ctx, want)), limit), columns[view.Line]{
				header: header,
				row:    func(l view.Line) table.Row { return table.Row{came(l), fmt.Sprintf("#%d", l.Record), l.What} },
				plain:  true,
				none:   none,
			})
		}),
	}
	addRange(cmd, &s.from, &s.to)
	addLimit(cmd, &limit, "records")
	return cmd
}

// findActor returns the cell, or the operator, that a person named.
func findActor(j view.Journal, name string) (string, error) {
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
