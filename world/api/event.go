package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// EventRequest is an event from outside, also as a line of many.
type EventRequest struct {
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"` // nil: null
	To    string          `json:"to"`   // a cell; empty: where the routes send it
	At    manifest.Tick   `json:"at"`   // the tick at which it falls due; 0: at once
}

// Submitted says that an event was accepted. It is durable.
type Submitted struct {
	ID    journal.Seq   `json:"id"` // of its record
	Event string        `json:"event"`
	Due   manifest.Tick `json:"due"` // 0: at once
	To    []string      `json:"to"`
}

// Bulk says how many events were accepted, the ones that came first, and the ids of
// their records, which have no gap between them. They are durable.
type Bulk struct {
	Accepted uint64      `json:"accepted"`
	First    journal.Seq `json:"first"` // 0 where none was
	Last     journal.Seq `json:"last"`  // likewise
}

// submit takes an event, or many, a line each.
func submit(c *call) error {
	if c.mediaType() == linesType {
		return submitLines(c)
	}
	var req EventRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	event, err := req.submission()
	if err != nil {
		return err
	}
	id, err := c.world.Local.SubmitEvent(c.Context(), event)
	if err != nil {
		return err
	}
	e, err := c.world.Entry(id)
	if err != nil {
		return err
	}
	out := Submitted{ID: id, Event: event.Name, To: []string{}}
	if b, ok := e.Body.(*journal.Submitted); ok {
		out.Due, out.To = b.Due, append(out.To, b.To...)
	}
	return c.created(c.link("records", strconv.FormatUint(uint64(id), 10)), out)
}

func (r *EventRequest) submission() (world.Submission, error) {
	s := world.Submission{Name: r.Event, At: r.At}
	if r.Event == "" {
		return s, badRequest("event", "an event has a name")
	}
	if r.To != "" {
		cell, err := reducer.ParseCell(r.To)
		if err != nil {
			return s, badRequest("to", err.Error())
		}
		s.To = &cell
	}
	var err error
	s.Data, err = dataOf("data", r.Data)
	return s, err
}

// submitLines takes many events. Of lines that cannot be read it takes none; at the
// first that the world refuses it stops, and those before it stay.
func submitLines(c *call) error {
	body, err := c.body(c.server.cfg.Limits.BulkBytes)
	if err != nil {
		return err
	}
	var events []world.Submission // before the world is asked, which would wait for slow lines
	var lines []uint64            // theirs
	n := uint64(0)
	for line := range bytes.Lines(body) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var req EventRequest
		err := decodeJSON(line, &req)
		var event world.Submission
		if err == nil {
			event, err = req.submission()
		}
		if err != nil {
			return c.stopped(err, n, nil)
		}
		events, lines = append(events, event), append(lines, n)
	}
	first, taken, err := c.world.Local.SubmitAll(c.Context(), func(yield func(world.Submission, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	})
	done := &Bulk{Accepted: taken, First: first}
	if taken > 0 {
		done.Last = first + journal.Seq(taken) - 1
	}
	if err != nil && done.Accepted < uint64(len(lines)) {
		return c.stopped(err, lines[done.Accepted], done)
	}
	if err != nil {
		return err
	}
	return c.respond(http.StatusCreated, jsonType, done)
}

// stopped adds to an error at which line it came, and what was accepted before.
func (c *call) stopped(err error, line uint64, done *Bulk) error {
	f := failureOf(err)
	if f == nil {
		return err
	}
	f.Line, f.Bulk = line, done
	var input *world.InputError
	if !errors.As(err, &input) {
		f.Detail = fmt.Sprintf("line %d: %s", line, f.Detail)
	}
	return f
}
