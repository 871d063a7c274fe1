package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Connections bound how many callers are connected at once.
type Connections struct {
	All     int // but for the first of a token; 0: 512, or a quarter of the descriptors that the process may have
	Token   int // that have shown one token; 0: a quarter of All
	Unknown int // that have shown no token that is known, which none of the others takes; 0: half of All
}

// connections holds callers to how many may be connected. Where one more comes that
// has shown no token, the one of these goes that is there longest. Where one more shows
// a token, the one goes that is longest without a request: of that token, where it has
// as many as one may, and otherwise of the token that has most. It is safe for
// concurrent use.
type connections struct {
	most Connections

	mu   sync.Mutex
	open map[net.Conn]*connection
}

type connection struct {
	net.Conn

	since time.Time // it waits, or has come
	token string    // the name of the last one that it has shown, of those that are known; "": none
	busy  bool      // a request with such a token is being answered
}

// connKey is the key of a connection in the context of its requests.
type connKey struct{}

func newConnections(most Connections) *connections {
	return &connections{most: most, open: make(map[net.Conn]*connection)}
}

// state is for http.Server.ConnState.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[conn] = &connection{Conn: conn, since: now()}
		if held, first := c.held(""); held > c.most.Unknown {
			c.drop(first)
		}
	case http.StateActive: // see admit
	case http.StateIdle:
		if x := c.open[conn]; x != nil {
			x.since, x.busy = now(), false
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// held counts the connections that have shown a token, or none where that is empty, and returns the one that is
// longest without a request; nil: each has one.
func (c *connections) held(token string) (held int, first *connection) {
	return c.longest(func(x string) bool { return x == token })
}

// longest counts the connections that have shown one of some tokens, and returns the one that is longest without a
// request of the token that has most; nil: each has one.
func (c *connections) longest(among func(token string) bool) (held int, first *connection) {
	of := make(map[string]int)
	for _, x := range c.open { // order cannot show: it is counted
		if among(x.token) {
			held++
			of[x.token]++
		}
	}
	for _, x := range c.open { // order cannot show: the first is the first in any order
		switch {
		case x.busy || !among(x.token):
		case first == nil, of[x.token] > of[first.token],
			of[x.token] == of[first.token] && x.since.Before(first.since):
			first = x
		}
	}
	return held, first
}

func (c *connections) drop(x *connection) {
	delete(c.open, x.Conn)
	_ = x.Close() // whoever serves it finds out
}

// admit takes note that a request with a known token is being answered, or refuses it
// where too many are connected.
func (c *connections) admit(ctx context.Context, token string) error {
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.open[conn]
	if x == nil {
		return nil // it was dropped, or is not counted here
	}
	if x.token == token {
		x.busy = true
		return nil
	}
	refusal := overLimit(http.StatusTooManyRequests, "connections.token", c.most.Token, "of this token")
	held, first := c.held(token)
	full := held >= c.most.Token
	if !full && held > 0 && x.token == "" {
		refusal = overLimit(http.StatusServiceUnavailable, "connections", c.most.All, "of all callers")
		held, first = c.longest(func(token string) bool { return token != "" })
		full = held >= c.most.All-c.most.Unknown
	}
	switch {
	case !full:
	case first != nil:
		c.drop(first)
	default:
		refusal.header.Set("Connection", "close")
		return refusal
	}
	x.token, x.busy = token, true
	return nil
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
	works := p.call.yield()
	n, err := p.ReadCloser.Read(b)
	p.bytes += int64(n)
	if works {
		if over := p.call.awaitTurn(p.call.Context()); over != nil {
			return n, over
		}
	}
	if err == io.EOF {
		p.call.listen(p.until)
	}
	return n, err
}
