package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
)

// Bounds of a server.
const (
	maxMessageBytes = 16 << 20         // of one message, or one response to a request
	maxTools        = 10_000           // that a server may list
	maxListBytes    = 64 << 20         // of what it says of them
	startTimeout    = 2 * time.Minute  // of the beginning of a session: the program may have to be fetched first
	pageTimeout     = 10 * time.Second // of a part of the list of tools
)

// Why there is no session.
var (
	errClosed   = errors.New("the adapter is closed")
	errTooMany  = fmt.Errorf("the server lists more than %d tools, or says more than %d bytes of them", maxTools, maxListBytes)
	errSilent   = fmt.Errorf("the server has not answered tools/list for %s", pageTimeout)
	errNoList   = errors.New("the server's answer to tools/list is no list of tools")
	errTwice    = errors.New("the server lists two tools of this name, which differ")
	errTooLarge = fmt.Errorf("the server's answer is larger than %d bytes", maxMessageBytes)
)

// pool holds the servers that are in use.
type pool struct {
	mu      sync.Mutex
	servers map[string]*server
}

// get returns the server that a config names; put gives it back.
func (p *pool) get(s host.Setup) (*server, error) {
	target, err := governance.ParseMCPConfig(s.Config)
	if err != nil {
		return nil, err
	}
	var fields map[string]canon.Raw
	if err := s.Decode(&fields); err != nil {
		return nil, err
	}
	delete(fields, "tool")
	delete(fields, "task")
	name := s.Dir + "\x00" + string(encode(fields))
	p.mu.Lock()
	defer p.mu.Unlock()
	sv := p.servers[name]
	if sv == nil {
		sv = newServer(s, target)
		sv.name = name
		p.servers[name] = sv
	}
	sv.users++
	return sv, nil
}

func (p *pool) put(sv *server) {
	p.mu.Lock()
	sv.users--
	last := sv.users == 0
	if last {
		delete(p.servers, sv.name)
	}
	p.mu.Unlock()
	if last {
		sv.close()
	}
}

// server is a server and the session with it, if there is one.
type server struct {
	target *governance.MCPTarget
	setup  host.Setup      // of the first of its effects
	life   context.Context // ends at close
	end    context.CancelFunc

	name  string // in the pool
	users int    // guarded by the pool

	mu      sync.Mutex
	current *opening       // nil: none
	ending  sync.WaitGroup // of sessions that were dropped

	asks atomic.Bool // it asks persons during calls
}

// opening is a session, or the attempt to begin one. It is bound to no call: a
// server that starts more slowly than a call may take is there for the next.
type opening struct {
	ready   chan struct{} // closed when one of the following is set
	session *session
	err     error
}

func newServer(s host.Setup, target *governance.MCPTarget) *server {
	life, end := context.WithCancel(context.Background())
	return &server{target: target, setup: s, life: life, end: end}
}

// session returns the session, or begins one.
func (sv *server) session(ctx context.Context) (*session, error) {
	sv.mu.Lock()
	o := sv.current
	if o == nil || o.failed() {
		o = &opening{ready: make(chan struct{})}
		sv.current = o
		go func() {
			defer close(o.ready)
			if o.session, o.err = sv.connect(); o.err == nil {
				o.session.opening = o
			}
		}()
	}
	sv.mu.Unlock()
	select {
	case <-o.ready:
		return o.session, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// failed reports whether o came to nothing.
func (o *opening) failed() bool {
	select {
	case <-o.ready:
		return o.err != nil
	default:
		return false
	}
}

// drop forgets a session that is of no use any more.
func (sv *server) drop(s *session) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	if sv.current == s.opening && sv.life.Err() == nil { // else close ends it, or has
		sv.current = nil
		sv.ending.Go(s.endSession)
	}
}

func (sv *server) close() {
	sv.end()
	sv.mu.Lock()
	o := sv.current
	sv.mu.Unlock()
	if o != nil {
		<-o.ready
		if o.session != nil {
			o.session.endSession()
		}
	}
	sv.ending.Wait()
}

func (sv *server) connect() (*session, error) {
	if sv.life.Err() != nil {
		return nil, errClosed
	}
	if err := sv.target.CheckHeaders(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(sv.life, startTimeout)
	defer cancel()
	c := newClient(&calls{asks: &sv.asks})
	if sv.target.URL != nil {
		c.link = sv.web(c)
		return open(ctx, c, func(err error) error { return err })
	}
	p, err := sv.start()
	if err != nil {
		return nil, err
	}
	c.link = p
	go p.hear(c)
	return open(ctx, c, p.explain)
}

// session is a session with a server. It is safe for concurrent use.
type session struct {
	*client
	opening *opening

	mu      sync.Mutex
	tools   map[string]*Tool
	unnamed []Tool // that nobody can call
}

func open(ctx context.Context, c *client, explain func(error) error) (*session, error) {
	s := &session{client: c}
	err := c.begin(ctx)
	if err == nil {
		err = s.list(ctx)
	}
	if err != nil {
		s.endSession()
		return nil, explain(err)
	}
	return s, nil
}

// tool returns what the server says of a tool, asking it again where it did not
// know the tool before; nil: there is none.
func (s *session) tool(ctx context.Context, name string) (*Tool, error) {
	for again := true; ; again = false {
		s.mu.Lock()
		tool := s.tools[name]
		s.mu.Unlock()
		if tool != nil || !again {
			return tool, nil
		}
		if err := s.list(ctx); err != nil {
			return nil, err
		}
	}
}

func (s *session) list(ctx context.Context) error {
	tools, unnamed := map[string]*Tool{}, []Tool(nil)
	came := map[string]bool{}
	size := 0
	take := func(data json.RawMessage) error {
		switch tool := readTool(data); {
		case errors.Is(tool.Fault, errNoName):
			unnamed = append(unnamed, *tool)
		case tools[tool.Name] == nil:
			tools[tool.Name] = tool
		case !bytes.Equal(tools[tool.Name].Schema, tool.Schema):
			tools[tool.Name].Fault = errTwice
		}
		if size += len(data); size > maxListBytes || len(tools)+len(unnamed) > maxTools {
			return errTooMany
		}
		return nil
	}
	for cursor := ""; !came[cursor]; { // one that came before leads in a circle
		came[cursor] = true
		next, err := s.page(ctx, cursor, take)
		if err != nil {
			return err
		}
		if size += len(next); size > maxListBytes || len(came) > maxTools {
			return errTooMany
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	s.mu.Lock()
	s.tools, s.unnamed = tools, unnamed
	s.mu.Unlock()
	return nil
}

// page asks for a part of the list of tools, each of which it has taken, and where the next begins. Who has begun a
// session answers it at once. It is read from its bytes: see readTool.
func (s *session) page(ctx context.Context, cursor string, take func(tool json.RawMessage) error) (next string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pageTimeout, errSilent)
	defer cancel()
	params := make(map[string]any)
	if cursor != "" {
		params["cursor"] = cursor
	}
	r, err := s.ask(ctx, new(exchange), methodListTools, params)
	switch cause := context.Cause(ctx); {
	case err != nil && errors.Is(cause, errSilent):
		return "", cause
	case err != nil:
		return "", err
	case r.fault != nil:
		return "", r.fault
	}
	var said struct {
		Tools      json.RawMessage `json:"tools"`
		NextCursor json.RawMessage `json:"nextCursor"`
	}
	if err := json.Unmarshal(r.result, &said); err != nil {
		return "", fmt.Errorf("%w: %w", errNoList, err)
	}
	if err := EachOf(said.Tools, take); errors.Is(err, errTooMany) {
		return "", err
	} else if err != nil {
		return "", fmt.Errorf("%w: %w", errNoList, err)
	}
	_ = json.Unmarshal(said.NextCursor, &next) // what is no text leads nowhere
	return next, nil
}
