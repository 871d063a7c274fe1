package api

import (
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/view"
)

// Cells is a page of the cells of a world, by name.
type Cells struct {
	Schema string          `json:"schema"`
	Cells  []view.CellLine `json:"cells"`
	Next   *string         `json:"next"` // the path of what comes after it; null: nothing does
}

func listCells(c *call) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	out := Cells{Schema: view.SchemaOf("cell-list"), Cells: []view.CellLine{}}
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
	return c.answer("cell")(c.world.Cell(cell, c.param("at")))
}

// ResumeRequest is which parked cell a person lets go on. Who that is the token says.
type ResumeRequest struct {
	Cell   string `json:"cell"`
	Reason string `json:"reason"` // why, for those who read the journal
}

func resumeCell(c *call) error { return c.resume(world.RetryEvent) }
func skipCell(c *call) error   { return c.resume(world.SkipEvent) }

func (c *call) resume(how world.Resumption) error {
	var req ResumeRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	cell, err := reducer.ParseCell(req.Cell)
	if err != nil {
		return badRequest("cell", err.Error())
	}
	done := view.Resumed{Cell: req.Cell, Actor: c.actor(), Reason: req.Reason}
	err = c.world.Local.Update(func(w *world.World) (err error) {
		done.Record, err = w.Resume(c.Context(), cell, how, done.Actor, done.Reason)
		return err
	})
	if err != nil {
		return err
	}
	return c.ok(object{"cell-resumed", done})
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
	if err := c.world.Concerned(cell); err != nil {
		return err
	}
	return c.pageOfRecords(s, "timeline")
}
