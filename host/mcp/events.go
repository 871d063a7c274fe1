package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
)

// endBytes are read of each end of a line that is too long.
const endBytes = 2 << 10

// ReadLine returns the next line, without its end. Of a line that is longer than most bytes it returns both ends, with a line
// feed between them, and that it is not whole. What is not ended comes with the error.
func ReadLine(r *bufio.Reader, most int) (line []byte, whole bool, err error) {
	var tail []byte
	for large := false; ; {
		part, err := r.ReadSlice('\n')
		if !large && len(line)+len(part) <= most+1 {
			line = append(line, part...)
		} else {
			if !large {
				large, tail = true, line
				line = bytes.Clone(line[:min(len(line), endBytes)])
			}
			line = append(line, part[:min(len(part), endBytes-len(line))]...)
			tail = append(tail, part...)
			tail = bytes.Clone(tail[max(0, len(tail)-endBytes):])
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // there is more of it
		case large:
			return append(append(line, '\n'), bytes.TrimSuffix(tail, []byte("\n"))...), false, err
		default:
			return bytes.TrimSuffix(line, []byte("\n")), true, err
		}
	}
}

// ReadBody reads a body of at most so many bytes. Of a longer one it returns both ends, as ReadLine does.
func ReadBody(r io.Reader, most int) (data []byte, whole bool, err error) {
	data, err = io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err != nil || len(data) <= most {
		return data, true, err
	}
	head, tail := bytes.ReplaceAll(data[:endBytes], []byte("\n"), []byte(" ")), bytes.Clone(data[len(data)-endBytes:])
	for part := make([]byte, 32<<10); err == nil; {
		var n int
		n, err = r.Read(part)
		tail = append(tail, part[:n]...)
		tail = append(tail[:0], tail[max(0, len(tail)-endBytes):]...)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return append(append(head, '\n'), tail...), false, err
}

// The id of a message that begins with it, or ends.
var (
	idAtBegin = regexp.MustCompile(`^\s*{(?:\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,)*\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)\s*,`)
	idAtEnd   = regexp.MustCompile(`"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)\s*}?\s*$`)
)

// LineID returns the id of a message of which only both ends are there; nil: it is in neither.
func LineID(ends []byte) json.RawMessage {
	head, tail, _ := bytes.Cut(ends, []byte("\n"))
	for _, found := range [][][]byte{idAtBegin.FindSubmatch(head), idAtEnd.FindSubmatch(tail)} {
		if found != nil {
			return found[1]
		}
	}
	return nil
}

// Event is a server-sent event, or a comment.
type Event struct {
	Data      []byte // nil: there is none
	Large     []byte // both ends of data that is larger than is read; nil: it is not
	ID, Retry string
	Other     bool // it is not of the type message, and so holds none
}

// NewEvents returns a reader for ReadEvent.
func NewEvents(from io.Reader) *bufio.Reader { return bufio.NewReader(&lineFeeds{Reader: from}) }

// lineFeeds are text whose lines end in CR, LF or both, with LF.
type lineFeeds struct {
	io.Reader
	skip bool // a line feed, which belongs to the carriage return before
}

// Read implements io.Reader.
func (l *lineFeeds) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	out := p[:0]
	for _, c := range p[:n] {
		belongs := l.skip && c == '\n'
		if l.skip = c == '\r'; l.skip {
			c = '\n'
		}
		if !belongs {
			out = append(out, c)
		}
	}
	return len(out), err
}

// ReadEvent returns the next event, of which most bytes of data are read. A message that is called an event is its data. What
// is not ended comes with the error.
func ReadEvent(r *bufio.Reader, most int) (*Event, error) {
	e := new(Event)
	for fields := 0; ; fields++ {
		line, whole, err := ReadLine(r, most)
		line = bytes.TrimPrefix(line, []byte(utf8BOM))
		if len(line) == 0 || line[0] == ':' && fields == 0 {
			return e, err
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		if value = bytes.TrimPrefix(value, []byte(" ")); line[0] == '{' {
			field, value = []byte("data"), line
		}
		switch string(field) {
		case "data":
			e.add(value, whole && len(e.Data)+len(value) < most)
		case "id":
			e.ID = string(value)
		case "retry":
			e.Retry = string(value)
		case "event":
			e.Other = len(value) > 0 && string(value) != "message"
		}
		if err != nil {
			return e, err
		}
	}
}

// add adds a line of data, which fits or not.
func (e *Event) add(line []byte, fits bool) {
	switch {
	case !fits || e.Large != nil:
		e.Large, e.Data = append(bytes.Clone(line), '\n'), nil
	case e.Data != nil:
		e.Data = append(append(e.Data, '\n'), line...)
	default:
		e.Data = line
	}
}

// Text returns the event as it is written, with other data; nil: with none.
func (e *Event) Text(data []byte) (out []byte) {
	if e.ID != "" {
		out = append(out, "id: "+e.ID+"\n"...)
	}
	if e.Retry != "" {
		out = append(out, "retry: "+e.Retry+"\n"...)
	}
	if data != nil || e.ID != "" {
		out = append(append(append(out, "data: "...), data...), '\n')
	}
	if out == nil {
		out = []byte(":\n") // a sign of life
	}
	return append(out, '\n')
}
