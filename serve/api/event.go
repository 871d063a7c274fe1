package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// EventRequest is an event from outside, also as a line of many.
type EventRequest struct {
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`         // nil: null
	To    string          `json:"to"`           // a cell; empty: where the routes send it
	At    any             `json:"at"`           // the tick at which it falls due, or a time; nil: see In
	In    string          `json:"in,omitempty"` // how long from now; empty: at once
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
	text, err := c.body(int64(c.eventBytes()))
	if err != nil {
		return err
	}
	if len(text) > 0 && c.mediaType() != jsonType {
		return errMediaType()
	}
	if err := c.takeTurn(); err != nil {
		return err
	}
	event, _, err := readEvent(text)
	c.yield() // it waits for the disk
	if err != nil {
		return err
	}
	key, err := c.submitKey()
	if err != nil {
		return err
	}
	event.Horizon = c.token.horizon()
	if key != "" {
		event = world.Keyed(event, key)
	}
	sent, err := c.world.Local.SubmitEvent(c.Context(), event)
	if err != nil {
		return err
	}
	return c.created(c.link("records", strconv.FormatUint(uint64(sent.ID), 10)),
		Submitted{ID: sent.ID, Event: event.Name, Due: sent.Due, To: sent.To})
}

// submitKeyHeader is in a request that is made again until it is answered, and submits once.
const submitKeyHeader = "Idempotency-Key"

// submitKey returns the key under which the call submits, with or without the quotes of a
// structured header; "": under none.
func (c *call) submitKey() (string, error) {
	values := c.Header.Values(submitKeyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if len(key) > 1 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	if len(values) > 1 || strings.ContainsAny(key, `"\\`) {
		return "", badRequest(submitKeyHeader, "it has to be one text, without quotes and backslashes in it")
	}
	return key, (&world.SubmitKey{Name: key}).Check()
}

// readEvent reads an EventRequest, of which no text at all is one without fields.
func readEvent(text []byte) (event world.Submission, item canon.Raw, err error) {
	if len(text) == 0 {
		return event, nil, badRequest("event", "an event has a name")
	}
	if item, err = canon.FromJSON(text); err != nil {
		return event, nil, badRequest("", err.Error())
	}
	var wrong *world.NotEventError
	if err = event.Decode(item); errors.As(err, &wrong) {
		err = badRequest(wrong.Field, err.Error())
	}
	return event, item, err
}

// submitLines takes many events. Of lines that cannot be read it takes none; at the
// first that the world refuses it stops, and those before it stay. The world is asked
// when all lines are there: it would wait for slow ones.
func submitLines(c *call) (err error) {
	if err := c.takeTurn(); err != nil {
		return err
	}
	key, err := c.submitKey()
	if err != nil {
		return err
	}
	events := c.world.Local.NewSpool()
	defer func() { err = errors.Join(err, events.Close()) }()
	events.Horizon = c.token.horizon()
	if key != "" {
		if err := events.Under(key); err != nil {
			return err
		}
	}
	if line, err := c.readLines(events); err != nil {
		return c.stopped(err, line, nil)
	}
	taken, line, err := events.Submit(c.Context())
	done := &Bulk{Accepted: taken.Count, First: taken.First, Last: taken.Last}
	if err != nil && line > 0 && failureOf(err) != nil {
		return c.stopped(err, line, done)
	}
	if err != nil {
		return c.brokenOff(err, done)
	}
	return c.respond(http.StatusCreated, jsonType, done)
}

// readLines puts the events of a body, a line each, into a spool. An error is about the
// line that it returns, or about the whole body where that is 0.
func (c *call) readLines(events *local.Spool) (line uint64, err error) {
	lines := bufio.NewScanner(http.MaxBytesReader(c.out, c.Body, c.server.cfg.Limits.BulkBytes))
	most := c.eventBytes()
	lines.Buffer(nil, most)
	for lines.Scan() && lines.Err() == nil { // which is known before what was read then
		line++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		_, item, err := readEvent(text)
		if err != nil {
			return line, err
		}
		if err := errors.Join(c.Context().Err(), events.Add(line, item)); err != nil {
			return 0, err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return line + 1, failed(http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("it is longer than %d bytes", most))
	}
	return 0, unread(lines.Err())
}

// eventBytes bounds an event, as a body or as a line of many: by what other bodies have,
// and the widest form of the largest data that an event can have.
func (c *call) eventBytes() int {
	m, _ := c.world.Local.InForce()
	return int(c.bytesWith(m.Limits.Payload))
}

// bytesWith bounds a body that holds data of so many bytes as JSON, in its widest form.
func (c *call) bytesWith(data uint64) int64 {
	const widest = int64(len(`\u0000`))
	limits := c.server.cfg.Limits
	return min(limits.BodyBytes+widest*int64(min(data, uint64(limits.BulkBytes))), limits.BulkBytes)
}

// brokenOff is the failure of many events that is about none of them, as of a disk that is full, with what was
// accepted before.
func (c *call) brokenOff(err error, done *Bulk) error {
	f := failureOf(err)
	if done.Accepted == 0 {
		return err
	}
	if f == nil {
		c.server.cfg.Log.Error("events broken off", "error", err)
		f = failed(http.StatusInternalServerError, "internal", "the server's log says more")
	}
	f.Bulk = done
	f.Detail = fmt.Sprintf("after %d accepted events, durable: %s", done.Accepted, f.Detail)
	return f
}

// stopped adds to an error at which line it came, and what was accepted before.
func (c *call) stopped(err error, line uint64, done *Bulk) error {
	f := failureOf(err)
	if f == nil || line == 0 {
		return err
	}
	f.Line, f.Bulk = line, done
	if !errors.As(err, new(*world.InputError)) {
		f.Detail = fmt.Sprintf("line %d: %s", line, f.Detail)
	}
	return f
}
