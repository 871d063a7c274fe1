package view

import (
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// CellSelection says which cells are wanted, and when. The zero value wants all, now.
type CellSelection struct {
	Moment string   // that a person named; empty: now
	Names  []string // or with a * behind all that begin so; none: all
	After  string   // only those whose names come after this one
	Limit  int      // at most so many; 0: all
	State  bool     // with their states
	Bytes  int      // of states about at most, and one cell at least; 0: all
}

// CellPage is a part of the cells that are wanted, by name.
type CellPage struct {
	At    journal.Seq // the record of the moment
	Cells []CellLine
	More  bool // there are others after them
}

// CellPage returns the first of the cells of a selection. Where whole names are asked for
// it costs as much as these cells do, else as much as the world at that moment. The error
// is that of At.
func (j Journal) CellPage(s *CellSelection) (page CellPage, err error) {
	var views []world.CellView
	one := func(name string) bool { return !strings.HasSuffix(name, "*") }
	switch {
	case s.Moment == "":
		j.Local.View(func(w *world.Moment) { views, page.At = w.Cells(), w.Head().ID })
	case len(s.Names) > 0 && !slices.ContainsFunc(s.Names, func(name string) bool { return !one(name) }):
		page.At, views, err = j.cellsNamed(s)
	default:
		if page.At, err = j.At(s.Moment); err == nil {
			var w *world.Moment
			if w, err = j.Local.At(page.At); err == nil {
				views = w.Cells()
			}
		}
	}
	if err != nil {
		return page, err
	}
	page.Cells = []CellLine{}
	bytes := 0
	for _, v := range views {
		name := v.Cell.String()
		wanted := func(pattern string) bool { return manifest.Match(pattern, name) }
		switch {
		case name <= s.After || len(s.Names) > 0 && !slices.ContainsFunc(s.Names, wanted):
		case s.Limit > 0 && len(page.Cells) == s.Limit, s.Bytes > 0 && bytes >= s.Bytes:
			page.More = true
			return page, nil
		default:
			line := LineOfCell(v)
			if s.State {
				line.State = &v.State
				bytes += len(v.State)
			}
			page.Cells = append(page.Cells, line)
		}
	}
	return page, nil
}

// cellsNamed returns the cells of whole names that were there, by name.
func (j Journal) cellsNamed(s *CellSelection) (at journal.Seq, views []world.CellView, err error) {
	if at, err = j.At(s.Moment); err != nil {
		return at, nil, err
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(s.Names))) {
		cell, err := reducer.ParseCell(name)
		if err != nil {
			return at, nil, err
		}
		if name <= s.After {
			continue
		}
		v, found, err := j.Local.CellAt(cell, at)
		if err != nil {
			return at, nil, err
		}
		if found {
			views = append(views, v)
		}
		if s.Limit > 0 && len(views) > s.Limit {
			break
		}
	}
	return at, views, nil
}
