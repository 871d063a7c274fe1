package worldctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newCellCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "cell"},
		newCellListCommand(c), newCellShowCommand(c),
		newCellResumeCommand(c, "resume", world.RetryEvent),
		newCellResumeCommand(c, "skip", world.SkipEvent))
}

func newCellListCommand(c *cli) *cobra.Command {
	var limit uint64
	var at string
	var state bool
	cmd := &cobra.Command{
		Use: "list [CELL...]",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, args []string) error {
			for _, name := range args {
				if _, err := parseCell(name); err != nil && !strings.HasSuffix(name, "*") {
					return err
				}
			}
			page, err := recordsOf(lw).CellPage(&view.CellSelection{Moment: at, Names: args, Limit: int(min(limit, math.MaxInt)), State: state})
			if err != nil {
				return err
			}
			none := "no cells yet: worldctl send NAME DATA, then worldctl run"
			if len(args) > 0 || at != "" {
				none = "no such cells"
			}
			d := view.Describer{Journal: recordsOf(lw), Full: c.verbose}
			return list(c, "cell-list", "cells", allItems(page.Cells), columns[view.CellLine]{
				header: table.Row{"cell", "steps", "state", "mailbox", "halted"},
				row:    func(l view.CellLine) table.Row { return cellRow(l, d) },
				none:   none,
			})
		}),
	}
	addLimit(cmd, &limit, "cells")
	addAt(cmd, &at, "as they were at this")
	cmd.Flags().BoolVar(&state, "state", false, "with their states")
	return cmd
}

func cellRow(l view.CellLine, d view.Describer) table.Row {
	state, halted := "", ""
	if l.StateHash != nil {
		state = l.StateHash.String()[:12]
	}
	if l.State != nil && len(*l.State) > 0 {
		state = d.Data(*l.State)
	}
	if l.Halted {
		halted = "halted"
	}
	return table.Row{l.Cell, l.N, state, l.Mailbox, halted}
}

func newCellShowCommand(c *cli) *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use: "show CELL",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, args []string) error {
			return answer(c, "cell", func(a view.Cell) {
				c.showCell(lw, &a)
				if a.Halted && at == "" {
					c.noteHalted(&a)
				}
			})(findCell(lw, args[0], at))
		}),
	}
	addAt(cmd, &at, "as it was at this")
	return cmd
}

func (c *cli) showCell(lw *local.World, a *view.Cell) {
	state, err := indented(a.State)
	if err != nil {
		state = err.Error()
	}
	why := ""
	if f := a.Failure; f != nil {
		why = fmt.Sprintf("#%d, on #%d: %s", f.Record, f.Event, visible(f.Error, ""))
	}
	c.facts([][2]any{
		{"cell", a.Cell}, {"steps", a.N}, {"halted", a.Halted}, when(why != "", "why", why), {"at", fmt.Sprintf("#%d", a.At)}, {"state", state},
	}...)
	d := view.Describer{Journal: recordsOf(lw), Full: c.verbose}
	tabulate(c, table.Row{"record", "waits in the mailbox", "data"}, a.Mailbox, func(m *world.MailView) table.Row {
		return table.Row{fmt.Sprintf("#%d", m.Record), m.Name, d.Data(m.Data)}
	})
	c.showDue(a, d)
}

// mostDue is how many of what falls due for a cell are shown.
const mostDue = 20

// showDue shows what falls due for a cell, the next first.
func (c *cli) showDue(a *view.Cell, d view.Describer) {
	all := slices.Concat(a.Scheduled, a.Timers)
	slices.SortStableFunc(all, func(x, y world.AlarmView) int { return cmp.Compare(x.At, y.At) })
	byClock := d.Local.IsReal()
	at := "at tick"
	if byClock {
		at = "at"
	}
	tabulate(c, table.Row{"record", "falls due", at, "data"}, all[:min(mostDue, len(all))], func(x *world.AlarmView) table.Row {
		var when any = x.At
		if byClock {
			when = calendar(d.Local, x.At)
		}
		return table.Row{fmt.Sprintf("#%d", x.Record), x.Name, when, d.Data(x.Data)}
	})
	if more := len(all) - mostDue; more > 0 {
		c.note("%d more fall due later: -o json has all", more)
	}
}

// noteHalted says what a person can do about a halted cell.
func (c *cli) noteHalted(a *view.Cell) {
	if a.Failure != nil {
		c.note("worldctl why %d -v tells what led to it, and what the step printed", a.Failure.Record)
	}
	c.hintNext("mend what failed, then worldctl cell resume %[1]s; or worldctl cell skip %[1]s drops the event", visible(shellWord(a.Cell), ""))
}

func newCellResumeCommand(c *cli, verb string, how world.Resumption) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: verb + " CELL",
		RunE: c.onWorld(func(ctx context.Context, lw *local.World, args []string) error {
			return c.resume(ctx, lw, args[0], how, reason)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who read the journal: `TEXT`")
	addActor(cmd, "decides")
	return cmd
}

func (c *cli) resume(ctx context.Context, lw *local.World, name string, how world.Resumption, reason string) error {
	cell, err := parseCell(name)
	if err != nil {
		return err
	}
	halted, err := recordsOf(lw).Cell(cell, "")
	if err != nil {
		return err
	}
	resumed := view.Resumed{Cell: name, Actor: c.by, Reason: reason}
	err = lw.Update(func(w *world.World) (err error) {
		resumed.Record, err = w.Resume(ctx, cell, how, c.by, reason)
		return err
	})
	switch {
	case errors.Is(err, world.ErrNotHalted):
		return hinted(err, "worldctl cell list shows which cells are halted")
	case err != nil:
		return err
	}
	return c.object("cell-resumed", resumed, func() {
		what := "goes on with the event that failed"
		if how == world.SkipEvent {
			what = "goes on without the event that failed"
		}
		if f := halted.Failure; f != nil {
			what += fmt.Sprintf(", #%d", f.Event)
		}
		fmt.Fprintf(c.stdout, "#%d %s %s, says %s\n", resumed.Record, name, what, c.by)
		c.nextRun()
	})
}

func parseCell(name string) (reducer.Cell, error) {
	cell, err := reducer.ParseCell(name)
	if err != nil {
		return cell, usagef("worldctl cell list", "%w", err)
	}
	return cell, nil
}

// findCell returns the cell that a person named, as it is or was at a moment.
func findCell(lw *local.World, name, at string) (view.Cell, error) {
	cell, err := parseCell(name)
	if err != nil {
		return view.Cell{}, err
	}
	return recordsOf(lw).Cell(cell, at)
}
