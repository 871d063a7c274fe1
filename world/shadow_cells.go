package world

import (
	"cmp"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// compareCells reports the cells that differ, and the cells that wait for an answer which the history does not
// have.
func (s *shadow) compareCells() {
	waits := s.compareWaits()
	var d Difference
	d.compareCells(s.was.sortedCells(nil), s.sortedCells(nil))
	var all []CellChange // a side without the cell has the zero CellView
	for _, v := range d.CellsGone {
		all = append(all, CellChange{A: v})
	}
	for _, v := range d.CellsAdded {
		all = append(all, CellChange{B: v})
	}
	all = append(all, d.CellsChanged...)
	slices.SortFunc(all, func(a, b CellChange) int { return strings.Compare(a.name(), b.name()) })
	var what []byte
	for i := range all {
		c := &all[i]
		what = append(append(canon.AppendText(what[:0], c.name()), c.A.State...), c.B.State...)
		noteDifference(s.report, &s.report.Counts.Cells, &s.report.Cells, what, func() governance.CellDifference {
			return c.report(waits[c.name()])
		})
	}
}

func (c *CellChange) name() string { return cmp.Or(c.A.Cell, c.B.Cell).String() }

func (c *CellChange) report(unknown bool) governance.CellDifference {
	x := governance.CellDifference{
		Cell: c.name(), What: "changed", StepsWas: c.A.N, StepsIs: c.B.N, HaltedWas: c.A.Halted, HaltedIs: c.B.Halted, Unknown: unknown,
	}
	switch none := (reducer.Cell{}); {
	case c.B.Cell == none:
		x.What = "gone"
		return x
	case c.A.Cell == none:
		x.What = "new"
	}
	x.State, x.More = stateChanges(c.A.State, c.B.State)
	return x
}

// stateChanges returns where two states differ, and how many places more there are.
func stateChanges(was, is journal.Data) ([]governance.Change, uint64) {
	all := canon.Changes(was, is)
	out := make([]governance.Change, 0, min(len(all), governance.MaxChanges))
	for _, c := range all[:min(len(all), governance.MaxChanges)] {
		out = append(out, governance.Change{Path: c.Path, Was: quoted(c.A), Is: quoted(c.B)})
	}
	return out, uint64(len(all) - len(out))
}

// compareWaits reports the intents that wait in the shadow and not in the history. It returns their cells.
func (s *shadow) compareWaits() map[string]bool {
	waits := make(map[string]bool)
	for _, e := range s.ledger.Select(func(e *receipt.Entry) bool { return !e.Abandoned && !e.Ended() }) {
		then := s.answerer(e)
		if then != nil && !then.Ended() {
			continue // it waits there, too
		}
		why := "the history has no answer to it"
		if then != nil && s.declaredOtherwise(e) {
			why = "the history's answer is to an effect with another adapter, config or schema"
		}
		if e.State == receipt.StateAwaitingApproval && e.Deadline != receipt.NoDeadline {
			why = "nobody has approved it in the history"
		}
		waits[e.Intent.Cell] = true
		noteDifference(s.report, &s.report.Counts.Unknown, &s.report.Unknown, e.Intent.Key.Hash[:], func() governance.Unknown {
			return governance.Unknown{Cell: e.Intent.Cell, Kind: e.Intent.Kind, Params: quoted(e.Intent.Params), Why: why}
		})
	}
	return waits
}
