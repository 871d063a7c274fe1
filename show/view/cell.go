package view

import (
	"errors"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// CellLine is a cell in a list.
type CellLine struct {
	Cell      string        `json:"cell"`
	N         uint64        `json:"n"`          // steps taken
	StateHash *journal.Hash `json:"state_hash"` // null where the cell has no state
	Mailbox   int           `json:"mailbox"`
	Halted    bool          `json:"halted"`

	State *journal.Data `json:"state,omitempty"` // where states are asked for; of a cell without one it is null
}

// Cell is a cell at a moment.
type Cell struct {
	Cell    string           `json:"cell"`
	N       uint64           `json:"n"` // steps taken
	State   journal.Data     `json:"state"`
	Mailbox []world.MailView `json:"mailbox"`
	Halted  bool             `json:"halted"`
	Failure *CellFailure     `json:"failure"` // why it is halted; null where it is not, or nobody can tell

	// What falls due for it later, in that order.
	Scheduled []world.AlarmView `json:"scheduled"` // events
	Timers    []world.AlarmView `json:"timers"`

	// How many there are: of a list there may be only the first.
	MailboxLen   int `json:"mailbox_len"`
	ScheduledLen int `json:"scheduled_len"`
	TimersLen    int `json:"timers_len"`

	At journal.Seq `json:"at"` // the record of the moment
}

// Shorten leaves of the mailbox the first so many, and of what falls due.
func (c *Cell) Shorten(mailbox, due int) {
	c.Mailbox = c.Mailbox[:min(mailbox, len(c.Mailbox))]
	c.Scheduled = c.Scheduled[:min(due, len(c.Scheduled))]
	c.Timers = c.Timers[:min(due, len(c.Timers))]
}

// CellFailure is the failed step that halted a cell, which waits there for a person.
type CellFailure struct {
	Record journal.Seq `json:"record"` // that says so
	Event  journal.Seq `json:"event"`  // the record of what the step was on: the first of the mailbox
	Error  string      `json:"error"`  // with the place in the code and the calls that led there
}

// Resumed is a halted cell that a person lets go on.
type Resumed struct {
	Cell   string      `json:"cell"`
	Record journal.Seq `json:"record"`
	Actor  string      `json:"actor"`
	Reason string      `json:"reason"` // empty: none was given
}

// HaltedCells returns the names of the cells that wait for a person, by name, no more than so
// many.
func (j Journal) HaltedCells(most int) (names []string) {
	j.Local.View(func(w *world.Moment) {
		for _, v := range w.HaltedCells() {
			if len(names) < most {
				names = append(names, v.Cell.String())
			}
		}
	})
	return names
}

// LineOfCell returns a cell as lists have it.
func LineOfCell(v world.CellView) CellLine {
	line := CellLine{Cell: v.Cell.String(), N: v.N, Mailbox: len(v.Mail), Halted: v.Halted}
	if len(v.State) > 0 {
		line.StateHash = new(canon.Sum(v.State))
	}
	return line
}

// CellAt returns a cell as it is shown, at the record of a moment.
func CellAt(v world.CellView, at journal.Seq) Cell {
	return Cell{
		Cell: v.Cell.String(), N: v.N, State: v.State, Halted: v.Halted, At: at,
		Mailbox: append([]world.MailView{}, v.Mail...), MailboxLen: len(v.Mail),
		Scheduled: append([]world.AlarmView{}, v.Scheduled...), ScheduledLen: len(v.Scheduled),
		Timers: append([]world.AlarmView{}, v.Timers...), TimersLen: len(v.Timers),
	}
}

// Cell returns a cell as it is or, where a person named a moment, as it was then. The
// error is that of Moment, or world.ErrNoCell.
func (j Journal) Cell(cell reducer.Cell, moment string) (Cell, error) {
	var v world.CellView
	var found bool
	var at journal.Seq
	var err error
	if moment == "" {
		j.Local.View(func(w *world.Moment) {
			v, found = w.Cell(cell)
			at = w.Head().ID
		})
	} else if at, err = j.At(moment); err == nil {
		v, found, err = j.Local.CellAt(cell, at)
	}
	if err == nil && !found {
		err = &world.InputError{Err: world.ErrNoCell, Field: "cell", Rule: cell.String()}
	}
	if err != nil {
		return CellAt(v, at), err
	}
	return j.CellIn(v, at)
}

// CellIn returns a cell of a moment as it is shown, with why it is halted.
func (j Journal) CellIn(v world.CellView, at journal.Seq) (c Cell, err error) {
	if c = CellAt(v, at); c.Halted {
		c.Failure, err = j.failure(&c)
	}
	return c, err
}

// failure returns the last failure of a halted cell on the first event of its mailbox, nil
// where it is in an archive that is not at hand. After a rollback to a moment at which the
// cell was halted by this event that may be one that the rollback undid.
func (j Journal) failure(c *Cell) (last *CellFailure, err error) {
	if len(c.Mailbox) == 0 {
		return nil, nil
	}
	event := c.Mailbox[0].Record
	for id, err := range j.Local.CellRecords(c.Cell, event) {
		if err != nil {
			return nil, err
		}
		if id > c.At {
			break
		}
		e, err := j.Entry(id)
		switch {
		case errors.Is(err, journal.ErrArchived):
			continue
		case err != nil:
			return nil, err
		}
		if b, ok := e.Body.(*journal.Failed); ok && e.CausedBy == event {
			last = &CellFailure{Record: id, Event: event, Error: b.Error}
		}
	}
	return last, nil
}
