package api

import (
	"iter"
	"strconv"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/view"
)

// Records is a page of a journal.
type Records struct {
	Schema  string        `json:"schema"`
	Records []view.Record `json:"records"`
	Next    *string       `json:"next"` // the path of what comes after it; null: nothing does yet
}

// selection says which records are wanted: those for which all of it holds.
type selection struct {
	after journal.Seq
	kinds []journal.Kind
	cell  string
}

func (c *call) selection() (s selection, err error) {
	after, err := c.number("after")
	if err != nil {
		return s, err
	}
	s.after, s.cell = journal.Seq(after), c.param("cell")
	for _, name := range c.URL.Query()["kind"] {
		kind := journal.Kind(name)
		if !view.Selects(kind) {
			return s, badRequest("kind", "it is no kind of record, such as cell.stepped, nor a family of them, such as intent.*")
		}
		s.kinds = append(s.kinds, kind)
	}
	if s.cell != "" {
		if _, err := reducer.ParseCell(s.cell); err != nil {
			return s, badRequest("cell", err.Error())
		}
	}
	return s, nil
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

func (c *call) pageOfRecords(s selection, schema string) error {
	out := Records{Schema: schemaOf(schema), Records: []view.Record{}}
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

// look is one record that was looked at.
type look struct {
	id    journal.Seq
	entry *view.Entry // nil: it is not wanted
}

// selected looks at the records of a selection, in order: of a cell at those that
// tell of it.
func (j records) selected(s selection) iter.Seq2[look, error] {
	return func(yield func(look, error) bool) {
		if s.cell != "" {
			for e, err := range j.OfCell(s.cell, s.after) {
				x := look{entry: e}
				if err == nil {
					if x.id = e.ID; !view.Among(s.kinds, e.Kind) {
						x.entry = nil
					}
				}
				if !yield(x, err) || err != nil {
					return
				}
			}
			return
		}
		for r, err := range j.Local.Scan(s.after) {
			if err == nil {
				err = r.Err
			}
			x := look{id: r.ID}
			if err == nil && view.Among(s.kinds, r.Record.Kind) {
				x.entry, err = j.Load(r.Record, r.Bytes)
			}
			if !yield(x, err) || err != nil {
				return
			}
		}
	}
}

// page hands over the records of a page of a list, and returns the link to the next
// page; nil: there is none yet. What it has handed over is durable.
func page(c *call, s selection, use func(*view.Entry) error) (next *string, err error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	head, looked, last, more := c.world.head(), 0, journal.Seq(0), false
	for x, err := range c.world.selected(s) {
		if err == nil {
			err = c.Context().Err()
		}
		if err != nil {
			return nil, err
		}
		looked, last = looked+1, x.id
		if x.entry != nil {
			if err := use(x.entry); err != nil {
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

func showRecord(c *call) error {
	n, err := c.segment("n")
	if err != nil {
		return err
	}
	if id := journal.Seq(n); id > c.world.head() {
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

// schemaOf names the form of an answer as worldctl does.
func schemaOf(name string) string { return "worldctl/" + name + "/v1" }
