package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
)

// event is one of the server-sent events of a stream, or a comment.
type event struct {
	data      []byte // nil: there is none
	large     []byte // both ends of data that is larger than is read; nil: it is not
	id, retry string
	named     bool // it is not of the type message, and so no message
}

// errEvents says that a stream cannot be judged, since others may read it in another way.
var errEvents = errors.New("gateway: the server's stream has a line that some would read as two, or that is too long")

// readEvent returns the next event of a stream. What is not ended is none.
func readEvent(r *bufio.Reader) (*event, error) {
	e := new(event)
	for fields := 0; ; fields++ {
		line, whole, err := readLine(r, maxLine)
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) == 0 || line[0] == ':' && fields == 0 {
			return e, nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		large := !whole || len(e.data)+len(value) >= maxLine
		switch {
		case whole && bytes.IndexByte(line, '\r') >= 0, !whole && string(field) != "data":
			return nil, errEvents
		case string(field) == "data" && (large || e.large != nil):
			e.large, e.data = append(bytes.Clone(value), '\n'), nil
		case string(field) == "data" && e.data != nil:
			e.data = append(append(e.data, '\n'), value...)
		case string(field) == "data":
			e.data = value
		case string(field) == "id":
			e.id = string(value)
		case string(field) == "retry":
			e.retry = string(value)
		case string(field) == "event":
			e.named = len(value) > 0 && string(value) != "message"
		}
	}
}

// text returns the event as it is written, with other data; nil: with none.
func (e *event) text(data []byte) (out []byte) {
	if e.id != "" {
		out = append(out, "id: "+e.id+"\n"...)
	}
	if e.retry != "" {
		out = append(out, "retry: "+e.retry+"\n"...)
	}
	if data != nil || e.id != "" {
		out = append(append(append(out, "data: "...), data...), '\n')
	}
	if out == nil {
		out = []byte(":\n") // a sign of life
	}
	return append(out, '\n')
}

// events are a stream of a server as its client gets it: without answers to what the client has not asked, and without what
// is no message.
type events struct {
	io.Closer
	in    *bufio.Reader
	s     *mcpServer
	scope string
	last  *event // what the stream of a call goes on after, which its client does not see; nil: it is another stream
	out   []byte
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		said, err := readEvent(e.in)
		if err != nil {
			return 0, err
		}
		var passes []byte
		if said.large != nil {
			passes = e.s.largeAnswer(e.scope, idKey(lineID(said.large)))
		} else if m, err := readServer(said.data); err == nil && !said.named && e.s.passes(m, e.scope) {
			passes = m.line
		}
		if e.last != nil {
			e.last.id, e.last.retry = cmp.Or(said.id, e.last.id), cmp.Or(said.retry, e.last.retry)
			said.id, said.retry = "", ""
		}
		e.out = said.text(passes)
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}
