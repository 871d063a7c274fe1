package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
)

// Media types of bodies.
const (
	jsonType   = "application/json"
	linesType  = "application/x-ndjson"
	streamType = "text/event-stream"
	binaryType = "application/octet-stream"
)

// call is a request that is being answered.
type call struct {
	*http.Request
	server *Server
	out    *answerWriter
	route  *route          // nil: none was found
	bearer *token          // that the caller shows; nil: none that is known
	token  *token          // that counts: nil where the route is open to everybody
	world  *hosted         // nil: the route names none
	exit   func()          // lets the world go; nil: it does not wait for the call
	follow context.Context // what a follower lives in: without the deadline of an answer
	err    error           // of the route
	passed string          // the process that answers, for the log; "": this one

	holds sync.Mutex  // guards what follows
	free  func()      // gives the slot back; nil: there is none
	give  func()      // gives the turn back; nil: there is none
	look  *time.Timer // at whether the call has a turn and waits for its world; nil: it never had one
}

func (c *call) pattern() string {
	if c.route == nil {
		return ""
	}
	return c.route.path
}

// actor is whom the journal names.
func (c *call) actor() string { return c.token.name }

// deadline bounds how long the answer may take to reach the caller.
func (c *call) deadline(limit time.Duration) {
	// What cannot be bounded so, in tests, is not the net's.
	_ = http.NewResponseController(c.out).SetWriteDeadline(now().Add(limit))
}

// listen says until when the server listens to the caller: it takes one whom it
// cannot listen to any more for gone, and ends the call.
func (c *call) listen(until time.Time) {
	_ = http.NewResponseController(c.out).SetReadDeadline(until) // see deadline
}

// ok answers with JSON.
func (c *call) ok(v any) error { return c.respond(http.StatusOK, jsonType, v) }

// object is an answer that worldctl -o json gives too: a form of package view, under the
// name of its schema.
type object struct {
	schema string
	of     any
}

func (o object) MarshalJSON() ([]byte, error) { return view.MarshalObject(o.schema, o.of) }

// answer answers with an object, or returns why there is none.
func (c *call) answer(schema string) func(any, error) error {
	return func(v any, err error) error {
		if err != nil {
			return err
		}
		return c.ok(object{schema, v})
	}
}

// listing is a page of a list: its items under a name, and the path of what comes after them; nil: nothing does yet.
type listing struct {
	schema, name string
	items        any
	next         *string
}

func (l listing) MarshalJSON() ([]byte, error) {
	items, err := view.Marshal(l.items)
	next, _ := view.Marshal(l.next) // text
	return fmt.Appendf(nil, `{"schema":%q,%q:%s,"next":%s}`, view.SchemaOf(l.schema), l.name, items, next), err
}

// list answers with a page of a list, or returns why there is none.
func (c *call) list(schema, name string, items any, next *string, err error) error {
	if err != nil {
		return err
	}
	return c.ok(listing{schema, name, items, next})
}

// created answers with JSON, and says where it is.
func (c *call) created(at string, v any) error {
	if at != "" {
		c.out.Header().Set("Location", at)
	}
	return c.respond(http.StatusCreated, jsonType, v)
}

func (c *call) respond(status int, mediaType string, v any) error {
	body, err := view.Marshal(v)
	if err != nil {
		return err
	}
	return c.send(status, mediaType, append(body, '\n'))
}

func (c *call) send(status int, mediaType string, body []byte) error {
	h := c.out.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	c.yield() // the caller may be slow
	c.out.WriteHeader(status)
	_, err := c.out.Write(body)
	if err != nil {
		return errGone
	}
	return nil
}

// errGone says that the caller does not listen any more.
var errGone = failed(http.StatusRequestTimeout, "gone", "the caller does not listen any more")

// fail answers with a Problem.
func (c *call) fail(err error) {
	f := failureOf(err)
	if f == nil {
		f = failed(http.StatusInternalServerError, "internal", "the server's log says more")
	}
	for name, values := range f.header { // order cannot show: each is a header of its own
		c.out.Header()[name] = values
	}
	p := f.Problem
	p.Detail, p.Field, p.Rule = view.Bounded(p.Detail), view.Bounded(p.Field), view.Bounded(p.Rule)
	_ = c.respond(p.Status, problemType, p)
}

// mediaType returns the type of the body.
func (c *call) mediaType() string {
	text := c.Header.Get("Content-Type")
	if text == jsonType {
		return text // the common case, without an allocation
	}
	name, _, err := mime.ParseMediaType(text)
	if err != nil {
		return ""
	}
	return name
}

// follows reports whether the caller accepts a stream by its name.
func (c *call) follows() bool {
	for _, line := range c.Header.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			if name, _, err := mime.ParseMediaType(part); err == nil && name == streamType {
				return true
			}
		}
	}
	return false
}

// body reads the body, which may be absent.
func (c *call) body(limit int64) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(c.out, c.Body, limit))
	return data, unread(err)
}

// unread says that a body was too large, or not read to its end.
func unread(err error) error {
	switch {
	case err == nil || errors.As(err, new(*http.MaxBytesError)):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return failed(http.StatusRequestTimeout, "slow-body", "the body came too slowly: the server does not wait for the rest of it")
	}
	return badRequest("", "the body was not read to its end")
}

// decode reads the body, one JSON object, into a struct that has all its fields.
// Where there is none the struct stays as it is.
func (c *call) decode(into any) error { return c.decodeWithin(c.server.cfg.Limits.BodyBytes, into) }

// withBody is the answer to requests with a body.
func withBody[T any](answer func(c *call, req *T) error) func(*call) error {
	return func(c *call) error {
		var req T
		if err := c.decode(&req); err != nil {
			return err
		}
		return answer(c, &req)
	}
}

// unhurried is how many bytes a body may have at most whose parsing takes no turn.
const unhurried = 4 << 10

// decodeWithin is decode with another limit. Large bodies are parsed in turns, which end
// before what is asked for begins.
func (c *call) decodeWithin(limit int64, into any) error {
	data, err := c.body(limit)
	if err != nil || len(data) == 0 {
		return err
	}
	if c.mediaType() != jsonType {
		return errMediaType()
	}
	if limit > unhurried {
		if err := c.takeTurn(); err != nil {
			return err
		}
		defer c.yield()
	}
	if _, err := canon.FromJSON(data); err != nil { // which names the place, and knows duplicate keys
		return badRequest("", err.Error())
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var wrong *json.UnmarshalTypeError
	switch err := dec.Decode(into); {
	case errors.As(err, &wrong):
		return badRequest(wrong.Field, "it cannot be a JSON "+wrong.Value)
	case err != nil:
		return badRequest("", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

func errMediaType() error {
	return failed(http.StatusUnsupportedMediaType, "media-type", "the body has to be "+jsonType)
}

// dataOf returns the canonical bytes of a JSON value; nil: there is none.
func dataOf(field string, value json.RawMessage) (journal.Data, error) {
	if len(value) == 0 {
		return nil, nil
	}
	data, err := canon.FromJSON(value)
	if err != nil {
		return nil, badRequest(field, err.Error())
	}
	return data, nil
}

// param returns a parameter of the query; "": there is none.
func (c *call) param(name string) string { return c.URL.Query().Get(name) }

// number returns a parameter that is a number, as checkQuery has seen; 0: there is none.
func (c *call) number(name string) uint64 {
	n, _ := strconv.ParseUint(c.param(name), 10, 64)
	return min(n, mostOfNumber)
}

// mostOfNumber is more than any number of a record or a tick. What is counted on from there
// does not wrap.
const mostOfNumber = 1 << 62

// flag returns a parameter that is true or false, or absent.
func (c *call) flag(name string) (bool, error) {
	switch c.param(name) {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	}
	return false, badRequest(name, "it has to be true or false")
}

// segment returns a number in the path.
func (c *call) segment(name string) (uint64, error) {
	n, err := strconv.ParseUint(c.PathValue(name), 10, 64)
	if err != nil || n == 0 {
		return 0, notFound("there is none with that number")
	}
	return n, nil
}

// limit returns how many items of a list are wanted, which checkQuery bounds.
func (c *call) limit() int {
	return int(cmp.Or(c.number("limit"), uint64(min(usualPage, c.server.cfg.Limits.Page))))
}

// pageOf returns a page of a list that is there whole, in the order of the numbers of
// its items, each by its place, and the link to the next one; nil: there is none.
func pageOf[T any](c *call, all []T, number func(i int) uint64) (page []T, next *string) {
	after, limit := c.number("after"), c.limit()
	page = []T{}
	for i := range all {
		switch {
		case number(i) <= after:
		case len(page) == limit:
			return page, c.next(strconv.FormatUint(number(i-1), 10))
		default:
			page = append(page, all[i])
		}
	}
	return page, nil
}

// next returns the link to what of a list comes after something.
func (c *call) next(after string) *string { return c.linkTo("after", after) }

// linkTo returns the link to the same with another parameter.
func (c *call) linkTo(name, value string) *string {
	query := c.URL.Query()
	query.Set(name, value)
	link := (&url.URL{Path: c.URL.Path, RawPath: c.URL.RawPath, RawQuery: query.Encode()}).String()
	return &link
}

// link returns the path of something of the call's world.
func (c *call) link(parts ...string) string {
	path := append([]byte("/api/worlds/"), url.PathEscape(c.world.id)...)
	for _, p := range parts {
		path = append(append(path, '/'), url.PathEscape(p)...)
	}
	return string(path)
}
