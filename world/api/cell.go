package api

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
)

// Cells is a page of the cells of a world, by name.
type Cells struct {
	Schema string     `json:"schema"`
	Cells  []CellLine `json:"cells"`
	Next   *string    `json:"next"` // the path of what comes after it; null: nothing does
}

// CellLine is a cell in a list.
type CellLine struct {
	Cell      string      `json:"cell"`
	N         uint64      `json:"n"`          // steps taken
	StateHash *world.Hash `json:"state_hash"` // null where the cell has no state
	Mailbox   int         `json:"mailbox"`
	Parked    bool        `json:"parked"`
}

// Cell is a cell at a moment.
type Cell struct {
	Schema  string           `json:"schema"`
	Cell    string           `json:"cell"`
	N       uint64           `json:"n"` // steps taken
	State   world.Data       `json:"state"`
	Mailbox []world.MailView `json:"mailbox"`
	Parked  bool             `json:"parked"`
	At      world.Seq        `json:"at"` // the record of the moment
}

func listCells(c *call) error {
	limit, err := c.limit()
	if err != nil {
		return err
	}
	out := Cells{Schema: schemaOf("cell-list"), Cells: []CellLine{}}
	after := c.param("after")
	err = c.world.lw.View(func(w *world.World) error {
		cells := w.Cells()
		from, found := slices.BinarySearchFunc(cells, after, func(v world.CellView, name string) int {
			return strings.Compare(v.Cell.String(), name)
		})
		if found {
			from++
		}
		cells = cells[from:]
		for _, v := range cells[:min(limit, len(cells))] {
			out.Cells = append(out.Cells, lineOfCell(v))
		}
		if len(cells) > limit {
			out.Next = c.next(out.Cells[limit-1].Cell)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.ok(out)
}

func lineOfCell(v world.CellView) CellLine {
	line := CellLine{Cell: v.Cell.String(), N: v.N, Mailbox: len(v.Mail), Parked: v.Parked}
	if len(v.State) > 0 {
		sum := canon.Sum(v.State)
		line.StateHash = &sum
	}
	return line
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
	var at world.Seq
	var found bool
	if c.param("at") == "" {
		err = c.world.lw.View(func(w *world.World) error {
			v, found = w.Cell(cell)
			at = w.Head().ID
			return nil
		})
	} else if at, err = c.moment(); err == nil {
		v, found, err = c.world.lw.CellAt(cell, at)
	}
	switch {
	case errors.Is(err, world.ErrNotFound) && !errors.Is(err, world.ErrRedacted):
		return notFound("there is no such moment")
	case err != nil:
		return err
	case !found:
		return notFound("there is no such cell")
	}
	out := Cell{
		Schema: schemaOf("cell"), Cell: v.Cell.String(), N: v.N, State: v.State, Mailbox: v.Mail, Parked: v.Parked, At: at,
	}
	if out.Mailbox == nil {
		out.Mailbox = []world.MailView{}
	}
	return c.ok(out)
}

// moment returns the record that at names: by its number, or that of a snapshot by
// its name or the beginning of its hash.
func (c *call) moment() (world.Seq, error) {
	name := c.param("at")
	if id, err := strconv.ParseUint(name, 10, 64); err == nil {
		if id == 0 || world.Seq(id) > c.world.head() {
			return 0, notFound("there is no such record")
		}
		return world.Seq(id), nil
	}
	var s snapshot.Snapshot
	err := c.world.lw.View(func(w *world.World) (err error) {
		s, err = w.FindSnapshot(name)
		return err
	})
	return world.Seq(s.Record), err
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
	err = c.world.lw.View(func(w *world.World) error {
		_, known = w.Cell(cell)
		return nil
	})
	for _, failed := range c.world.lw.Store().CellRecords(s.cell, 0) { // also of one that a rollback undid
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
