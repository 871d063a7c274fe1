package api

import (
	"errors"
	"strconv"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/view"
)

// Records is a page of a journal.
type Records struct {
	Schema  string        `json:"schema"`
	Records []view.Record `json:"records"`
	Next    *string       `json:"next"` // the path of what comes after it; null: nothing does yet
}

// selection reads what records the query wants.
func (c *call) selection() (s view.Selection, err error) {
	after, err := c.number("after")
	if err != nil {
		return s, err
	}
	s.After, s.Cell = journal.Seq(after), c.param("cell")
	if s.Kinds, err = view.ParseKinds(c.URL.Query()["kind"]); err != nil {
		return s, badRequest("kind", err.Error())
	}
	if s.Cell != "" {
		if _, err = c.cell(); err != nil {
			return s, err
		}
	}
	if err = s.Range(c.world.Journal, c.param("from"), c.param("to")); errors.Is(err, view.ErrOrder) {
		return s, badRequest("to", err.Error())
	}
	return s, err
}

// listRecords answers with a page, or to who asks for that with a stream.
func listRecords(c *call) error {
	s, err := c.selection()
	if err != nil {
		return err
	}
	if c.wants(streamType) {
		return c.stream(s)
	}
	return c.pageOfRecords(s, "tail")
}

func (c *call) pageOfRecords(s view.Selection, schema string) error {
	out := Records{Schema: view.SchemaOf(schema), Records: []view.Record{}}
	next, err := page(c, s, func(e *view.Entry) error {
		out.Records = append(out.Records, e.View())
		return nil
	})
	if err != nil {
		return err
	}
	out.Next = next
	return c.ok(out)
}

// page hands over the records of a page of a list, and returns the link to the next
// page; nil: there is none yet. What it has handed over is durable.
func page(c *call, s view.Selection, use func(*view.Entry) error) (next *string, err error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	head, looked, last, more := c.world.Local.Head().ID, 0, journal.Seq(0), false
	room := c.room()
	for x, err := range c.world.Look(&s) {
		if err == nil {
			err = c.Context().Err()
		}
		if err != nil {
			return nil, err
		}
		if x.Entry != nil && !room.take(len(x.Entry.Raw)) {
			more = true
			break
		}
		looked, last = looked+1, x.ID
		if x.Entry != nil {
			if err := use(x.Entry); err != nil {
				return nil, err
			}
			limit--
		}
		if limit == 0 || looked == c.server.cfg.Limits.Scan {
			more = last < head
			break
		}
	}
	if last > 0 {
		if err := c.world.Local.Await(c.Context(), last-1); err != nil {
			return nil, err
		}
	}
	if !more {
		return nil, nil
	}
	return c.next(strconv.FormatUint(uint64(last), 10)), nil
}

// room is what is left of the bytes of a page.
type room struct {
	left  int
	taken bool
}

func (c *call) room() *room { return &room{left: c.server.cfg.Limits.PageBytes} }

// take reports whether the page has room for another item: for the first in any case.
func (r *room) take(bytes int) bool {
	if r.taken && bytes > r.left {
		return false
	}
	r.left, r.taken = r.left-bytes, true
	return true
}

func showRecord(c *call) error {
	n, err := c.segment("n")
	if err != nil {
		return err
	}
	if id := journal.Seq(n); id > c.world.Local.Head().ID {
		return notFound("there is no such record")
	} else if err := c.world.Local.Await(c.Context(), id-1); err != nil {
		return err
	}
	e, err := c.world.Entry(journal.Seq(n))
	if err != nil {
		return err
	}
	return c.ok(e.View())
}
