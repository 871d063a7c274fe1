package worldctl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// diffCodes explains the exit codes of diff verbs.
const diffCodes = "Exit code 0 if they are the same, 1 if they differ, 2 if that cannot be told."

// diffAnswer says how two moments differ.
type diffAnswer struct {
	A         sideAnswer       `json:"a"`
	B         sideAnswer       `json:"b"`
	Same      bool             `json:"same"`
	Cells     []cellDifference `json:"cells"`     // that differ, by name
	Histories int              `json:"histories"` // cells that look the same, and came there by other events
	Timers    alarmDifference  `json:"timers"`
	Scheduled alarmDifference  `json:"scheduled"`
}

// sideAnswer is one of the moments that are compared.
type sideAnswer struct {
	At        journal.Seq  `json:"at"` // the last record that was looked at
	StateRoot journal.Hash `json:"state_root"`
}

// alarmDifference is a world.AlarmChange as it prints.
type alarmDifference struct {
	A    int  `json:"a"`
	B    int  `json:"b"`
	Same bool `json:"same"`
}

// cellDifference is a cell that is not the same at both moments.
type cellDifference struct {
	Cell   string         `json:"cell"`
	Change string         `json:"change"` // added, gone or changed
	A      *view.CellLine `json:"a"`      // null: it was not there
	B      *view.CellLine `json:"b"`      // likewise
	State  []change       `json:"state"`  // where the states differ
}

// stateDiffAnswer says how a cell's state differs between two moments.
type stateDiffAnswer struct {
	Cell  string      `json:"cell"`
	A     journal.Seq `json:"a"` // the records that were looked at
	B     journal.Seq `json:"b"`
	Same  bool        `json:"same"`
	State []change    `json:"state"`
}

func newStateCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "state", Short: "Compare what cells were at two moments"}, newStateDiffCommand(c))
}

func newStateDiffCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "diff CELL A B",
		Short: "Show where a cell's state differs between two moments",
		Long: `Show where a cell's state differs between two moments: a line a place, what is there
at A and what at B. A moment is a record (120), the end of a tick (t5), head, records
before it (-10), or a snapshot.

` + diffCodes,
		Example: `  worldctl state diff agent/ada t5 head
  worldctl state diff agent/ada -10 head -o json`,
		Args:        args(3, 3),
		Annotations: map[string]string{takesMoments: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			return trouble(c.with(func(lw *local.World) error { return c.stateDiff(lw, args[0], args[1], args[2]) }))
		},
	}
}

func newSnapshotDiffCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "Show which cells differ between two snapshots, and where",
		Long: `Show which cells differ between two snapshots: added, gone or changed, and where
their states differ. Any other moment will do: a record (120), the end of a tick
(t5), head, records before it (-10).

` + diffCodes,
		Example: `  worldctl snapshot diff before-lunch after-lunch
  worldctl snapshot diff before-lunch head -o json`,
		Args:        args(2, 2),
		Annotations: map[string]string{takesMoments: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			return trouble(c.with(func(lw *local.World) error { return c.momentDiff(lw, args[0], args[1]) }))
		},
	}
}

// trouble gives an error of a diff verb, that they differ aside, the exit code
// that is not taken for an answer.
func trouble(err error) error {
	code, hint := exitOK, ""
	if err != nil {
		code, hint = judge(err)
	}
	if err == nil || errors.Is(err, errDifferent) || code == exitInterrupted {
		return err
	}
	return &fault{err: err, code: exitUsage, hint: hint}
}

func (c *cli) stateDiff(lw *local.World, name, from, to string) error {
	cell, err := parseCell(name)
	if err != nil {
		return err
	}
	answer := stateDiffAnswer{Cell: name}
	var states [2]journal.Data
	found := false
	for i, x := range []struct {
		at   string
		seen *journal.Seq
	}{{from, &answer.A}, {to, &answer.B}} {
		v, seen, ok, err := cellThen(lw, cell, x.at)
		if err != nil {
			return err
		}
		states[i], *x.seen, found = v.State, seen, found || ok
	}
	if !found {
		return hinted(&world.InputError{Err: world.ErrNoCell, Field: "cell", Rule: name}, "worldctl cell list")
	}
	answer.State = changes(states[0], states[1])
	answer.Same = len(answer.State) == 0
	err = c.object("state-diff", answer, func() {
		for _, x := range answer.State {
			fmt.Fprintln(c.stdout, x.line())
		}
		if answer.Same {
			c.note("%s has the same state at #%d and #%d", name, answer.A, answer.B)
		}
	})
	if err == nil && !answer.Same {
		err = errDifferent
	}
	return err
}

// line prints a change: the path, and what is there on both sides.
func (x change) line() string {
	side := func(d *journal.Data) string {
		if d == nil {
			return "nothing"
		}
		text, err := d.MarshalJSON()
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	path := x.Path
	if path == "" {
		path = "(all)"
	}
	return fmt.Sprintf("%s: %s -> %s", path, side(x.A), side(x.B))
}

func (c *cli) momentDiff(lw *local.World, from, to string) error {
	var answer diffAnswer
	var moments [2]*world.Moment
	for i, x := range []struct {
		at   string
		side *sideAnswer
	}{{from, &answer.A}, {to, &answer.B}} {
		m, err := momentAt(lw, x.at)
		if err != nil {
			return err
		}
		moments[i] = m
		*x.side = sideAnswer{At: m.Head().ID, StateRoot: m.StateRoot()}
	}
	answer.Same = answer.A.StateRoot == answer.B.StateRoot
	d := world.Compare(moments[0], moments[1])
	answer.Cells, answer.Histories = differences(&d), d.Histories
	answer.Timers, answer.Scheduled = alarmDifference(d.Timers), alarmDifference(d.Scheduled)
	err := c.object("snapshot-diff", answer, func() { c.showDiff(&answer) })
	if err == nil && !answer.Same {
		err = errDifferent
	}
	return err
}

// differences returns the cells that differ, by name.
func differences(d *world.Difference) []cellDifference {
	out := []cellDifference{}
	for i := range d.CellsAdded {
		out = append(out, differenceOf(nil, &d.CellsAdded[i]))
	}
	for i := range d.CellsGone {
		out = append(out, differenceOf(&d.CellsGone[i], nil))
	}
	for i := range d.CellsChanged {
		out = append(out, differenceOf(&d.CellsChanged[i].A, &d.CellsChanged[i].B))
	}
	slices.SortFunc(out, func(a, b cellDifference) int { return strings.Compare(a.Cell, b.Cell) })
	return out
}

// differenceOf compares a cell at both moments; nil: it was not there.
func differenceOf(a, b *world.CellView) cellDifference {
	d := cellDifference{Change: "changed"}
	if a == nil {
		d.Change = "added"
	} else if b == nil {
		d.Change = "gone"
	}
	var states [2]journal.Data
	for i, x := range []struct {
		cell *world.CellView
		line **view.CellLine
	}{{a, &d.A}, {b, &d.B}} {
		if x.cell == nil {
			continue
		}
		line := view.LineOfCell(*x.cell)
		d.Cell, *x.line, states[i] = line.Cell, &line, x.cell.State
	}
	d.State = changes(states[0], states[1])
	return d
}

func (c *cli) showDiff(a *diffAnswer) {
	if a.Same {
		c.note("the world is the same at #%d and #%d, state root %s", a.A.At, a.B.At, a.A.StateRoot)
		return
	}
	if len(a.Cells) > 0 {
		t := c.newTable()
		t.AppendHeader(table.Row{"cell", "is", "steps", "mailbox", "parked"})
		for _, d := range a.Cells {
			left, right := d.A, d.B
			if left == nil {
				left = new(view.CellLine)
			}
			if right == nil {
				right = new(view.CellLine)
			}
			t.AppendRow(table.Row{d.Cell, d.Change, view.Arrow(left.N, right.N), view.Arrow(left.Mailbox, right.Mailbox), view.Arrow(left.Parked, right.Parked)})
		}
		t.Render()
	}
	for _, d := range a.Cells {
		for _, x := range d.State {
			fmt.Fprintln(c.stdout, d.Cell, x.line())
		}
	}
	if a.Histories > 0 {
		fmt.Fprintf(c.stdout, "cells that look the same and came there by other events: %d\n", a.Histories)
	}
	for _, x := range []struct {
		what string
		n    alarmDifference
	}{{"timers", a.Timers}, {"scheduled events", a.Scheduled}} {
		if !x.n.Same {
			fmt.Fprintf(c.stdout, "%s: %d -> %d, and not the same\n", x.what, x.n.A, x.n.B)
		}
	}
}
