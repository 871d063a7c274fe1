package api

import (
	"math"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
)

// Cells is a page of the cells of a world at a moment, by name.
type Cells struct {
	Schema string          `json:"schema"`
	At     journal.Seq     `json:"at"` // the record of the moment
	Cells  []view.CellLine `json:"cells"`
	Next   *string         `json:"next"` // the path of what comes after it; null: nothing does
}

// statesOfPage is about how many bytes of states a page of cells has.
const statesOfPage = 4 << 20

func listCells(c *call) error {
	states, err := c.flag("state")
	if err != nil {
		return err
	}
	selected := view.CellSelection{
		Moment: c.param("at"), Names: c.URL.Query()["select"], After: c.param("after"), Limit: c.limit(),
		State: states, Bytes: statesOfPage,
	}
	for _, name := range selected.Names {
		if _, err := reducer.ParseCell(name); err != nil && !strings.HasSuffix(name, "*") {
			return badRequest("select", err.Error())
		}
	}
	page, err := c.world.CellPage(&selected)
	if err != nil {
		return err
	}
	out := Cells{Schema: view.SchemaOf("cell-list"), At: page.At, Cells: page.Cells}
	if page.More {
		if selected.Moment != "" { // which may name another one when the next page is asked for
			query := c.URL.Query()
			query.Set("at", strconv.FormatUint(uint64(page.At), 10))
			c.URL.RawQuery = query.Encode()
		}
		out.Next = c.next(page.Cells[len(page.Cells)-1].Cell)
	}
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
	mail, due := math.MaxInt, usualPage
	if c.param("mail") != "" {
		mail = int(min(c.number("mail"), uint64(c.server.cfg.Limits.Page)))
		due = mail
	}
	v, err := c.world.Cell(cell, c.param("at"))
	v.Shorten(mail, due)
	return c.answer("cell")(v, err)
}

// showCellDiff tells how the state of a cell differs between two moments or, where none is
// named, what its last step changed.
func showCellDiff(c *call) error {
	cell, err := c.cell()
	if err != nil {
		return err
	}
	a, b, at := c.param("a"), c.param("b"), c.param("at")
	switch {
	case a == "" && b == "":
		return c.answer("state-diff")(c.world.CellStep(cell, at))
	case a == "":
		return badRequest("a", "of two moments both are needed")
	case b == "":
		return badRequest("b", "of two moments both are needed")
	case at != "":
		return badRequest("at", "it is for the last step by a moment, and two moments are named")
	}
	return c.answer("state-diff")(c.world.CompareCell(cell, a, b))
}

// ResumeRequest is which halted cell a person lets go on. Who that is the token says.
type ResumeRequest struct {
	Cell   string `json:"cell"`
	Reason string `json:"reason"` // why, for those who read the journal
}

// resumeCell is the answer to requests that a halted cell goes on.
func resumeCell(how world.Resumption) func(*call) error {
	return withBody(func(c *call, req *ResumeRequest) error {
		cell, err := reducer.ParseCell(req.Cell)
		if err != nil {
			return badRequest("cell", err.Error())
		}
		done := view.Resumed{Cell: req.Cell, Actor: c.actor(), Reason: req.Reason}
		err = c.world.Local.Update(func(w *world.World) (err error) {
			done.Record, err = w.Resume(c.Context(), cell, how, done.Actor, done.Reason)
			return err
		})
		return c.answer("cell-resumed")(done, err)
	})
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
