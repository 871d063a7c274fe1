package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections bounds how many callers are connected. Where one more comes, one goes
// that has not shown a token which is known: the one that is there longest; and where
// all have, the one that is longest without a request. It is safe for concurrent use.
type connections struct {
	limit int

	mu   sync.Mutex
	open map[net.Conn]*connection
}

type connection struct {
	since time.Time // it waits, or has come
	known bool      // it has shown a token that is
	busy  bool      // a request with such a token is being answered
}

// goesBefore reports whether x has to go rather than y.
func (x *connection) goesBefore(y *connection) bool {
	switch {
	case x.busy || y.busy:
		return !x.busy
	case x.known != y.known:
		return !x.known
	}
	return x.since.Before(y.since)
}

// connKey is the key of a connection in the context of its requests.
type connKey struct{}

func newConnections(limit int) *connections {
	return &connections{limit: limit, open: make(map[net.Conn]*connection)}
}

// state is for http.Server.ConnState.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[conn] = &connection{since: now()}
		if len(c.open) > c.limit {
			c.drop(conn)
		}
	case http.StateActive: // see active
	case http.StateIdle:
		if x := c.open[conn]; x != nil {
			x.since, x.busy = now(), false
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// drop closes a connection, the newest where it may be no other.
func (c *connections) drop(newest net.Conn) {
	first := newest
	for conn, x := range c.open { // order cannot show: the first to go is the first in any order
		if x.goesBefore(c.open[first]) {
			first = conn
		}
	}
	delete(c.open, first)
	_ = first.Close() // whoever serves it finds out
}

// admit takes note that a request with a known token is being answered.
func (c *connections) admit(ctx context.Context) {
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.open[conn]; x != nil {
		x.known, x.busy = true, true
	}
}

// paced is a body that has to come at a rate: a caller that is slower holds a slot
// that others wait for.
type paced struct {
	io.ReadCloser

	call  *call
	began time.Time
	until time.Time // for all of it; the server listens so long afterwards, too
	bytes int64
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	l := &p.call.server.cfg.Limits
	due := p.began.Add(l.BodyGrace + time.Duration(float64(p.bytes)/float64(l.BodyRate)*float64(time.Second)))
	if due.After(p.until) {
		due = p.until
	}
	p.call.listen(due)
	n, err := p.ReadCloser.Read(b)
	p.bytes += int64(n)
	if err == io.EOF {
		p.call.listen(p.until)
	}
	return n, err
}
