package pgtest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Fault is what a Proxy does to a request: to all messages up to that with which a client asks
// for an answer.
type Fault int

// What may happen to a request. Of all but None, Delayed and Doubled the client sees a connection
// that is lost.
const (
	None       Fault = iota
	Lost             // it does not arrive
	Torn             // a part of it arrives
	Unanswered       // it arrives, and the server's answer does not
	Late             // it arrives after a while, when the client has been told that the connection is lost
	Delayed          // it arrives after a while
	Doubled          // it arrives twice, and the second answer does not
	faults           // how many there are
)

// Faults is how many kinds of Fault there are.
const Faults = int(faults)

// late is a while.
const late = 30 * time.Millisecond

// Proxy stands between clients and a server, and does to their requests what it is told to.
type Proxy struct {
	dir    string
	server *Server
	listen net.Listener
	fault  func(request []byte) Fault
	work   sync.WaitGroup
	struck [Faults]atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  bool
}

// Proxy starts a proxy to a server. Fault is called with each request, from any goroutine, and
// says what becomes of it.
func (s *Server) Proxy(t testing.TB, fault func(request []byte) Fault) *Proxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "px") //nolint:usetesting // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{dir: dir, server: s, listen: l, fault: fault, conns: map[net.Conn]bool{}}
	p.work.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// URL leads to the database of a URL through the proxy.
func (p *Proxy) URL(direct string) string {
	return strings.Replace(direct, "host="+url.QueryEscape(p.server.Dir), "host="+url.QueryEscape(p.dir), 1)
}

// Struck is how often a fault has happened.
func (p *Proxy) Struck(f Fault) int64 { return p.struck[f].Load() }

func (p *Proxy) close() {
	_ = p.listen.Close()
	p.mu.Lock()
	p.done = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
	_ = os.RemoveAll(p.dir)
}

// keep has a connection closed with the proxy; false: that is closed already.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listen.Accept()
		if err != nil {
			return
		}
		if !p.keep(client) {
			return
		}
		p.work.Go(func() {
			defer p.drop(client)
			server, err := net.Dial("unix", filepath.Join(p.server.Dir, socketName))
			if err != nil || !p.keep(server) {
				return
			}
			defer p.drop(server)
			_ = p.serve(&wire{client, bufio.NewReader(client)}, &wire{server, bufio.NewReader(server)})
		})
	}
}

// wire is one side of a connection.
type wire struct {
	net.Conn
	in *bufio.Reader
}

var errCut = errors.New("cut")

// serve passes on what a client asks for until one side is gone, or a fault cuts them off.
func (p *Proxy) serve(client, server *wire) error {
	start, err := client.sized(nil)
	if err != nil {
		return err
	}
	if _, err := server.Write(start); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(start[4:]) == cancelRequest {
		_, err := io.Copy(client, server.in)
		return err
	}
	if err := server.answer(client); err != nil {
		return err
	}
	for {
		request, err := client.request()
		if err != nil {
			return err
		}
		f := p.fault(request)
		p.struck[f].Add(1)
		if err := f.strike(request, client, server); err != nil {
			return err
		}
	}
}

func (f Fault) strike(request []byte, client, server *wire) error {
	if f == Lost {
		return errCut
	}
	if f == Torn {
		_, _ = server.Write(request[:len(request)/2])
		return errCut
	}
	if f == Late {
		_ = client.Close()
	}
	if f == Late || f == Delayed {
		<-time.After(late)
	}
	if _, err := server.Write(request); err != nil {
		return err
	}
	if f == Unanswered || f == Late {
		_ = server.answer(nil)
		return errCut
	}
	if err := server.answer(client); err != nil || f != Doubled {
		return err
	}
	if _, err := server.Write(request); err != nil {
		return err
	}
	return server.answer(nil)
}

// Of PostgreSQL's protocol, version 3.
const (
	socketName    = ".s.PGSQL.5432"
	cancelRequest = 80877102
	query         = 'Q'
	synchronize   = 'S'
	terminate     = 'X'
	readyForQuery = 'Z'
)

// sized reads the rest of a message, which begins with its length.
func (w *wire) sized(b []byte) ([]byte, error) {
	n := len(b)
	b = append(b, 0, 0, 0, 0)
	if _, err := io.ReadFull(w.in, b[n:]); err != nil {
		return nil, err
	}
	rest := make([]byte, binary.BigEndian.Uint32(b[n:])-4)
	if _, err := io.ReadFull(w.in, rest); err != nil {
		return nil, err
	}
	return append(b, rest...), nil
}

// message reads a message.
func (w *wire) message() (byte, []byte, error) {
	kind, err := w.in.ReadByte()
	if err != nil {
		return 0, nil, err
	}
	b, err := w.sized([]byte{kind})
	return kind, b, err
}

// request reads messages up to one that is answered, or is the last.
func (w *wire) request() ([]byte, error) {
	var out []byte
	for {
		kind, b, err := w.message()
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
		if kind == query || kind == synchronize || kind == terminate {
			return out, nil
		}
	}
}

// answer passes messages on, up to that with which a server waits for the next request; nil: to
// nobody.
func (w *wire) answer(to *wire) error {
	for {
		kind, b, err := w.message()
		if err != nil {
			return err
		}
		if to != nil {
			if _, err := to.Write(b); err != nil {
				to = nil // it is gone, and the server has still to be listened to
			}
		}
		if kind == readyForQuery {
			return nil
		}
	}
}
