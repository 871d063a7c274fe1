package gateway

import (
	"bufio"
	"cmp"
	"io"

	"github.com/worldkernel/worldkernel/host/mcp"
)

// events are a stream of a server as its client gets it: without answers to what the client has not asked, and without what
// is no message.
type events struct {
	io.Closer
	in    *bufio.Reader
	s     *mcpServer
	scope string
	last  *mcp.Event // what the stream of a call goes on after, which its client does not see; nil: it is another stream
	out   []byte
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		said, err := mcp.ReadEvent(e.in, maxLine)
		if err != nil {
			return 0, err
		}
		var passes []byte
		if said.Large != nil {
			passes = e.s.largeAnswer(e.scope, idKey(mcp.LineID(said.Large)))
		} else if m, err := readServer(said.Data); err == nil && !said.Other && e.s.passes(m, e.scope) {
			passes = m.line
		}
		if e.last != nil {
			e.last.ID, e.last.Retry = cmp.Or(said.ID, e.last.ID), cmp.Or(said.Retry, e.last.Retry)
			said.ID, said.Retry = "", ""
		}
		e.out = said.Text(passes)
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}
