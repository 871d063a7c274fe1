package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// Media types of answers.
const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// utf8BOM may begin a text, and is none of it.
const utf8BOM = "\ufeff"

// What the SDK is told in the place of an answer that is none: its own errors would end the
// calls beside this one, too.
const (
	codeNoSession = -32001 // what servers say that do not know a session
	errSession    = `{"jsonrpc":"2.0","id":"lost","error":{"code":-32001,"message":"the server does not know the session any more"}}`
	errAstray     = `{"jsonrpc":"2.0","id":%v,"error":{"code":-32603,"message":%s}}`
)

// normalize has the SDK read an answer that only looks odd: server-sent events with any line ends,
// and what is no message among them, or a text for an id. x gets what the SDK reads; it may be nil.
func normalize(resp *http.Response, x *exchange) {
	body := &bounded{ReadCloser: resp.Body, x: x}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
	}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	b := &messages{in: bufio.NewReader(body), Closer: body, x: x, accepted: resp.StatusCode/100 == 2}
	switch kind = strings.ToLower(strings.TrimSpace(kind)); kind {
	case typeEvents:
		b.next = b.event
		resp.Header.Set("Content-Type", typeEvents)
	default:
		b.next = b.whole
		if b.called() || slices.Contains([]string{"", "text/plain", "application/octet-stream", "application/json-rpc"}, kind) {
			resp.Header.Set("Content-Type", typeJSON)
		}
	}
	resp.Body = b
}

// messages are the body of an answer, as the SDK reads it.
type messages struct {
	io.Closer
	in   *bufio.Reader
	x    *exchange
	next func() error // reads on
	out  []byte       // what is to be read
	err  error

	accepted bool // the status is 2xx

	begun bool
	skip  bool // a line feed, which belongs to the carriage return before
}

// Read is for the SDK.
func (m *messages) Read(p []byte) (int, error) {
	for len(m.out) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		if !m.begun { // not before: the first bytes may be long in coming
			if begin, err := m.in.Peek(len(utf8BOM)); err == nil && string(begin) == utf8BOM {
				_, _ = m.in.Discard(len(utf8BOM))
			}
			m.begun = true
		}
		m.err = m.next()
		if m.x != nil {
			m.x.mu.Lock()
			m.x.tape = append(m.x.tape, m.out...)
			m.x.mu.Unlock()
		}
	}
	n := copy(p, m.out)
	m.out = m.out[n:]
	return n, nil
}

// called reports whether it answers a call, which alone ends with it.
func (m *messages) called() bool { return m.x != nil && m.x.request.Load() != nil }

// whole reads a body that is one message. One that does not answer its call, or broke off, is an error of that call:
// at others the SDK would give up the connection, and the calls beside it.
func (m *messages) whole() error {
	data, err := io.ReadAll(m.in)
	m.out = data
	if err != nil && (!m.called() || !m.accepted) {
		return err
	}
	messages, _ := plain(data)
	for i, text := range messages {
		if i == 0 || m.x.replyIn(m.out) == nil {
			m.out = text
		}
	}
	if text := m.x.ofNone(data); m.called() && m.accepted && m.x.replyIn(m.out) == nil && text != nil {
		m.out = text
	}
	if m.called() && (m.accepted || decodeResponse(m.out) != nil) && m.x.replyIn(m.out) == nil {
		m.x.astray.Store(true)
		why := "the server has answered another request"
		switch {
		case err != nil:
			why = "the server's answer broke off: " + err.Error()
		case decodeResponse(m.out) == nil:
			why = fmt.Sprintf("the server's answer is no message: %.200q", data)
		}
		m.out = m.x.none(why)
	}
	return io.EOF
}

// event reads up to the next event and writes it in one line, if it is a message, with what it says
// of how to go on. What comes before the end of the body is an event also where its empty line is missing.
func (m *messages) event() error {
	var data []byte
	said := make(map[string]string)
	for {
		line, err := m.line()
		if len(line) > 0 {
			field, value, _ := strings.Cut(string(line), ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case field == "data":
				data = append(append(data, value...), '\n')
			case line[0] == '{': // a message that is called an event
				data = append(append(data, line...), '\n')
			default:
				said[field] = value
			}
			if err == nil {
				continue
			}
		}
		if cmp.Or(said["event"], "message") == "message" {
			messages, _ := plain(data)
			for _, text := range messages {
				if decodeResponse(text) != nil && m.x.replyIn(text) == nil {
					continue // it answers another request
				}
				m.out = append(append(append(m.out, "data: "...), text...), "\n\n"...)
			}
		}
		for _, field := range []string{"id", "retry"} {
			if text := said[field]; text != "" && err == nil {
				m.out = append(m.out, field+": "+text+"\n\n"...)
			}
		}
		return err
	}
}

// line returns the next line without its end, which is CR, LF or both.
func (m *messages) line() ([]byte, error) {
	var line []byte
	for {
		c, err := m.in.ReadByte()
		if err != nil {
			return line, err
		}
		lf := m.skip && c == '\n'
		m.skip = c == '\r'
		switch {
		case lf:
		case c == '\n' || c == '\r':
			return line, nil
		default:
			line = append(line, c)
		}
	}
}

// refused has an answer that is no 2xx be about the request of x alone, and finds out whether it is one of a server
// that does not know the session any more: 404, as the protocol has it, unless it is an answer to just this request and
// not one that says so; or 400 with an answer to none that speaks of sessions. Nothing was done then.
func (x *exchange) refused(resp *http.Response, ofSession bool) {
	data, _ := io.ReadAll(resp.Body) // what can be read of it; a response is there only with an id
	_ = resp.Body.Close()
	r := x.replyIn(data)
	switch {
	case ofSession && resp.StatusCode == http.StatusNotFound && (r == nil || codeOf(r.Error) == codeNoSession),
		ofSession && resp.StatusCode == http.StatusBadRequest && r == nil && bytes.Contains(bytes.ToLower(data), []byte("session")):
		x.missing.Store(true)
		resp.StatusCode, data = http.StatusNotFound, []byte(errSession)
	case r == nil && x.request.Load() != nil:
		data = x.none(fmt.Sprintf("%s: %.200q", resp.Status, data))
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
}

// notResumed is the answer to who wants to read on in the answer to a call, where the server does not have that.
func (x *exchange) notResumed(why string) *http.Response {
	data := fmt.Sprintf("data: %s\n\n", x.none("the server does not go on with its answer: "+why))
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {typeEvents}}, Body: io.NopCloser(strings.NewReader(data)), ContentLength: -1,
	}
}

// ofNone returns a whole body that is a response without an id as that to x, the one request that it can answer; nil: it is none.
func (x *exchange) ofNone(data []byte) []byte {
	var said map[string]json.RawMessage
	if x == nil || x.request.Load() == nil || json.Unmarshal(data, &said) != nil || said["method"] != nil || said["jsonrpc"] == nil ||
		said["id"] != nil && string(said["id"]) != "null" || said["result"] == nil && said["error"] == nil {
		return nil
	}
	said["id"] = fmt.Append(nil, x.request.Load().ID.Raw())
	return plainResponse(said)
}

// none is the answer to a call in the place of what is none.
func (x *exchange) none(why string) []byte {
	text, _ := json.Marshal(why) // it is text
	return fmt.Appendf(nil, errAstray, x.request.Load().ID.Raw(), text)
}
