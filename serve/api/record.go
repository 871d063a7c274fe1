package api

import (
	"errors"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
)

// form is how a record is shown: as view.Record, or as view.RecordView where the query says raw=false.
type form func(*view.Entry) (any, error)

func stored(e *view.Entry) (any, error) { return e.View(), nil }

// form returns how the query wants records, and the schema of a page of them.
func (c *call) form(schema string) (form, string, error) {
	switch c.param("raw") {
	case "", "true":
		return stored, schema, nil
	case "false":
		return func(e *view.Entry) (any, error) { return c.world.View(e) }, "told", nil
	}
	return nil, "", badRequest("raw", "it has to be true or false")
}

// selection reads what records the query wants.
func (c *call) selection() (view.Selection, error) {
	s, err := c.selectionOf(c.param("cell"))
	if err != nil {
		return s, err
	}
	if s.Kinds, err = view.ParseKinds(c.URL.Query()["kind"]); err != nil {
		return s, badRequest("kind", err.Error())
	}
	return s, nil
}

// selectionOf reads which part of the journal the query wants, and of it what tells of a
// cell, which the query names, too; empty: all.
func (c *call) selectionOf(cell string) (s view.Selection, err error) {
	s.After, s.Cell = journal.Seq(c.number("after")), cell
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
	if c.param("ids") != "" {
		return c.recordsByID()
	}
	s, err := c.selection()
	if err != nil {
		return err
	}
	if s.CausedBy = journal.Seq(c.number("caused_by")); s.CausedBy > 0 {
		if _, err := c.record(s.CausedBy); err != nil {
			return err
		}
	}
	back := c.param("before") != ""
	switch {
	case !c.follows() && back:
		return c.recordsBefore(s)
	case !c.follows():
		return c.pageOfRecords(s, "tail")
	case back || s.CausedBy > 0:
		return badRequest("before", "neither this nor caused_by can be followed: ask for a page")
	}
	show, _, err := c.form("")
	if err != nil {
		return err
	}
	return c.stream(s.After, (&recordStream{want: s, form: show}).catchUp)
}

func (c *call) pageOfRecords(s view.Selection, schema string) error {
	show, schema, err := c.form(schema)
	if err != nil {
		return err
	}
	records := []any{}
	next, err := page(c, s, func(e *view.Entry) (bool, error) {
		shown, err := show(e)
		records = append(records, shown)
		return true, err
	})
	return c.list(schema, "records", records, next, err)
}

// recordsBefore answers with the last records before one, in their order. The next page is
// that of what is before them.
func (c *call) recordsBefore(s view.Selection) error {
	if s.After > 0 {
		return badRequest("before", "not with after: a page is either")
	}
	before := c.number("before")
	var found []*view.Entry
	from := journal.Seq(1)
	if s.Until = journal.Seq(before) - 1; before > 1 {
		var err error
		l := &c.server.cfg.Limits
		if found, from, err = c.world.LastOf(c.Context(), s, c.limit(), l.PageBytes, l.Scan); err != nil {
			return err
		}
	}
	var next *string
	if from > 1 {
		next = c.linkTo("before", strconv.FormatUint(uint64(from), 10))
	}
	return c.records(found, next)
}

// recordsByID answers with the records whose numbers the query lists, in that order.
func (c *call) recordsByID() error {
	for _, other := range []string{"after", "before", "from", "to", "kind", "cell", "caused_by", "limit"} {
		if c.param(other) != "" {
			return badRequest(other, "not with ids, which name all records that are wanted")
		}
	}
	if c.follows() {
		return badRequest("ids", "these cannot be followed: ask for a page")
	}
	names := strings.Split(c.param("ids"), ",")
	if most := c.server.cfg.Limits.Page; len(names) > most {
		return badRequest("ids", "more than "+strconv.Itoa(most))
	}
	var found []*view.Entry
	room := c.room()
	var next *string
	for i, name := range names {
		id, err := strconv.ParseUint(name, 10, 64)
		if err != nil {
			return badRequest("ids", "it has to be numbers of records, with commas between them")
		}
		e, err := c.record(journal.Seq(id))
		if err == nil {
			err = c.Context().Err()
		}
		if err != nil {
			return err
		}
		if !room.takeRoom(len(e.Raw)) {
			next = c.linkTo("ids", strings.Join(names[i:], ","))
			break
		}
		found = append(found, e)
	}
	return c.records(found, next)
}

// records answers with a page of records that were found.
func (c *call) records(found []*view.Entry, next *string) error {
	show, schema, err := c.form("tail")
	if err != nil {
		return err
	}
	records := []any{}
	for _, e := range found {
		shown, err := show(e)
		if err == nil {
			err = c.Context().Err()
		}
		if err != nil {
			return err
		}
		records = append(records, shown)
	}
	return c.list(schema, "records", records, next, nil)
}

// page hands over the records of a page of a list, which counts those that use keeps, and
// returns the link to the next page; nil: there is none yet. What it has handed over is
// durable.
func page(c *call, s view.Selection, use func(*view.Entry) (keep bool, err error)) (next *string, err error) {
	limit := c.limit()
	head, looked, last, more := c.world.Local.Head().ID, 0, journal.Seq(0), false
	room := c.room()
	for x, err := range c.world.Candidates(c.Context(), &s) {
		if err == nil {
			err = c.Context().Err()
		}
		if err != nil {
			return nil, err
		}
		if x.Entry != nil && !room.takeRoom(len(x.Entry.Raw)) {
			more = true
			break
		}
		looked, last = looked+1, x.ID
		if x.Entry != nil {
			keep, err := use(x.Entry)
			if err != nil {
				return nil, err
			}
			if keep {
				limit--
			}
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

// takeRoom reports whether the page has room for another item: for the first in any case.
func (r *room) takeRoom(bytes int) bool {
	if r.taken && bytes > r.left {
		return false
	}
	r.left, r.taken = r.left-bytes, true
	return true
}

// record reads a record, once it is durable.
func (c *call) record(id journal.Seq) (*view.Entry, error) {
	if id == 0 || id > c.world.Local.Head().ID {
		return nil, notFound("there is no such record")
	}
	if err := c.world.Local.Await(c.Context(), id-1); err != nil {
		return nil, err
	}
	return c.world.Entry(id)
}

// pathRecord reads the record that the path names.
func (c *call) pathRecord() (*view.Entry, error) {
	n, err := c.segment("n")
	if err != nil {
		return nil, err
	}
	return c.record(journal.Seq(n))
}

func showRecord(c *call) error {
	e, err := c.pathRecord()
	if err != nil {
		return err
	}
	show, _, err := c.form("")
	if err != nil {
		return err
	}
	shown, err := show(e)
	if err != nil {
		return err
	}
	return c.ok(shown)
}

// showGraph answers with what a record followed from, and what follows from it.
func showGraph(c *call) error {
	e, err := c.pathRecord()
	if err != nil {
		return err
	}
	return c.answer("graph")(c.world.Graph(c.Context(), e, c.number("depth"), uint64(c.limit())))
}
