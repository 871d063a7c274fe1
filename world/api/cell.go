package api

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/view"
)

// Cells is a page of the cells of a world, by name.
type Cells struct {
	Schema string          `json:"schema"`
	Cells  []view.CellLine `json:"cells"`
	Next   *string         `json:"next"` // the path of what comes after it; null: nothing does
}

// Cell is a cell at a moment.
type Cell struct {
	Schema string `json:"schema"`
	view.Cell
}

func listCells(c *call) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	out := Cells{Schema: schemaOf("cell-list"), Cells: []view.CellLine{}}
	after := c.param("after")
	c.world.Local.View(func(w *world.Moment) {
		cells := w.Cells()
		from, found := slices.BinarySearchFunc(cells, after, func(v world.CellView, name string) int {
			return strings.Compare(v.Cell.String(), name)
		})
		if found {
			from++
		}
		cells = cells[from:]
		for _, v := range cells[:min(limit, len(cells))] {
			out.Cells = append(out.Cells, view.LineOfCell(v))
		}
		if len(cells) > limit {
			out.Next = c.next(out.Cells[limit-1].Cell)
		}
	})
	return c.ok(out)
}

// cell returns the cell that the query names.
func (c *call) cell() (reducer.Cell, error) {
	cell, err := reducer.ParseCell(c.param("cell"))
	if err != nil {
		return cell, badRequest("cell", err.Error())
	}
	return cell, nil
}

func showCell(c *call) error {
	cell, err := c.cell()
	if err != nil {
		return err
	}
	var v world.CellView
	var at journal.Seq
	var found bool
	if c.param("at") == "" {
		c.world.Local.View(func(w *world.Moment) {
			v, found = w.Cell(cell)
			at = w.Head().ID
		})
	} else if at, err = c.moment(); err == nil {
		v, found, err = c.world.Local.CellAt(cell, at)
	}
	switch {
	case errors.Is(err, journal.ErrNotFound) && !errors.Is(err, journal.ErrRedacted):
		return notFound("there is no such moment")
	case err != nil:
		return err
	case !found:
		return notFound("there is no such cell")
	}
	return c.ok(Cell{schemaOf("cell"), view.CellAt(v, at)})
}

// moment returns the record that at names: by its number, or that of a snapshot by
// its name or the beginning of its hash.
func (c *call) moment() (journal.Seq, error) {
	name := c.param("at")
	if id, err := strconv.ParseUint(name, 10, 64); err == nil {
		if id == 0 || journal.Seq(id) > c.world.head() {
			return 0, notFound("there is no such record")
		}
		return journal.Seq(id), nil
	}
	var s snapshot.Snapshot
	var err error
	c.world.Local.View(func(w *world.Moment) { s, err = w.FindSnapshot(name) })
	return journal.Seq(s.Record), err
}

// showTimeline tells what a cell, or an operator, did and what happened to it.
func showTimeline(c *call) error {
	cell, err := c.cell()
	if err != nil {
		return err
	}
	s, err := c.selection()
	if err != nil {
		return err
	}
	known := false
	c.world.Local.View(func(w *world.Moment) { _, known = w.Cell(cell) })
	for _, failed := range c.world.Local.CellRecords(s.cell, 0) { // also of one that a rollback undid
		known, err = true, failed
		break
	}
	if err != nil {
		return err
	}
	if !known {
		return notFound("there is no such cell")
	}
	return c.pageOfRecords(s, "timeline")
}
