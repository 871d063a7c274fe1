package worldctl

import (
	"cmp"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
)

// summary is a whole comparison in one line.
func summary(x *view.Comparison, unknown int) string {
	if x.Same && unknown > 0 {
		return fmt.Sprintf("what is known is the same, and %s unknown", cellsAre(unknown))
	}
	if x.Same {
		return "the same: cells, intents, timers and scheduled events"
	}
	d := &x.Found
	line := fmt.Sprintf("cells: %d added, %d gone, %d changed; intents: %d added, %d gone, %d changed",
		len(d.CellsAdded), len(d.CellsGone), len(d.CellsChanged), len(d.IntentsAdded), len(d.IntentsGone), len(d.IntentsChanged))
	return line + "; cost: " + view.Arrow(view.Cost(x.Cost.A), view.Cost(x.Cost.B))
}

func (c *cli) showComparison(x *view.Comparison, a, b *view.Side, unknown int) {
	fmt.Fprintln(c.stdout, summary(x, unknown))
	c.facts([2]any{"a", x.A}, [2]any{"b", x.B}, [2]any{"state root", view.Arrow(x.A.StateRoot, x.B.StateRoot)},
		[2]any{"parted", fmt.Sprintf("after #%d", x.Parted.Common)},
		[2]any{"a goes on", c.tellRecord(a.Journal, x.Parted.A)}, [2]any{"b goes on", c.tellRecord(b.Journal, x.Parted.B)},
		[2]any{"cost since", view.Arrow(view.Cost(x.Cost.A), view.Cost(x.Cost.B))})
	if x.Same {
		return
	}
	c.showCells(x)
	c.showIntents(&x.Intents)
}

// tellRecord says what a record records; 0: there is none.
func (c *cli) tellRecord(j view.Journal, id journal.Seq) string {
	if id == 0 {
		return "no further"
	}
	e, err := j.Entry(id)
	if err != nil {
		return err.Error()
	}
	text, err := view.Describer{Journal: j, Full: c.verbose}.Describe(e)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("with #%d %s", id, text)
}

func (c *cli) showIntents(x *view.Differing[view.IntentDifference]) {
	var rows []table.Row
	for _, some := range []struct {
		is  string
		all []view.IntentDifference
	}{{"added", x.Added}, {"gone", x.Gone}, {"changed", x.Changed}} {
		for i := range some.all {
			d := &some.all[i]
			params := view.Describer{Full: c.verbose}.Data(d.Params)
			rows = append(rows, table.Row{d.Cell, d.Kind, params, some.is, standsAs(d.A) + " -> " + standsAs(d.B)})
		}
	}
	tabulate(c, table.Row{"cell", "asks for", "params", "is", "stands"}, rows, func(row *table.Row) table.Row { return *row })
}

// standsAs prints where an intent stands, and why where it came to nothing.
func standsAs(s *view.IntentSide) string {
	switch {
	case s == nil:
		return "not asked"
	case s.Reason != "":
		return string(s.State) + " (" + visible(s.Reason, "") + ")"
	}
	return string(s.State)
}

func (c *cli) showCells(a *view.Comparison) {
	cells := a.Cells.ByName()
	tabulate(c, table.Row{"cell", "is", "steps", "mailbox", "halted"}, cells, func(d *view.CellDifference) table.Row {
		left, right := cmp.Or(d.A, new(view.CellLine)), cmp.Or(d.B, new(view.CellLine))
		return table.Row{d.Cell, d.Change, view.Arrow(left.N, right.N), view.Arrow(left.Mailbox, right.Mailbox), view.Arrow(left.Halted, right.Halted)}
	})
	for _, d := range cells {
		for _, x := range d.State {
			fmt.Fprintln(c.stdout, d.Cell, c.lineOf(&x))
		}
	}
	if a.Cells.Histories > 0 {
		fmt.Fprintf(c.stdout, "cells that look the same and came there by other events: %d\n", a.Cells.Histories)
	}
	for _, x := range []struct {
		what string
		n    world.AlarmChange
	}{{"timers", a.Timers}, {"scheduled events", a.Scheduled}} {
		if !x.n.Same {
			fmt.Fprintf(c.stdout, "%s: %d -> %d, and not the same\n", x.what, x.n.A, x.n.B)
		}
	}
}

// lineOf prints a change: the path, and what is there on both sides.
func (c *cli) lineOf(x *view.StateChange) string {
	side := func(d *journal.Data) string {
		if d == nil {
			return "nothing"
		}
		text, err := d.MarshalJSON()
		if err != nil {
			return err.Error()
		}
		if c.brief {
			return view.Brief(string(text))
		}
		return string(text)
	}
	path := x.Path
	if path == "" {
		path = "(all)"
	}
	return fmt.Sprintf("%s: %s -> %s", path, side(x.A), side(x.B))
}
