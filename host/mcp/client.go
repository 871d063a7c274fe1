package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/receipt"
)

// The protocol is spoken here, and not by a library: what one server answers in an odd form is an error of that call, and
// not the end of the connection and of the calls beside it.

// The methods that mean something here.
const (
	methodDiscover    = "server/discover"
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodCancelled   = "notifications/cancelled"
	methodListTools   = "tools/list"
	methodCall        = "tools/call" // the one that does something
	methodPing        = "ping"
)

const (
	withoutSessions = "2026-07-28" // the version of the protocol that has none
	withSessions    = "2025-11-25" // the last version that has them
	metaPrefix      = "io.modelcontextprotocol/"
	maxAsked        = 1000 // requests of a server at once

	// silence is how long a server may take for what it need not answer: a notification, and the request by which it is found out
	// whether it speaks the protocol without sessions. Servers of before ignore what they do not know, though JSON-RPC asks for an
	// error. A program that is slower finds both beginnings of a session in its input.
	silence = 2 * time.Second
)

// Why a request has no answer.
var (
	errEnded          = errors.New("the connection to the server has ended")
	errSessionMissing = errors.New("the server does not know the session any more")
)

// link is the way to a server.
type link interface {
	// send sends a message. x is the request that it is, and nil where nobody answers it. Over HTTP the answer comes with it: then
	// x was answered, or the error says why not.
	send(ctx context.Context, m *outgoing, x *exchange) error
	// close ends the session, and the server's program if there is one.
	close()
}

// outgoing is a message to a server.
type outgoing struct {
	line         []byte // without its end
	method, tool string // empty: it is a response, or calls none
}

// said is a message as it is sent. Members are in the order that all clients have: there are servers that look for them by it.
type said struct {
	JSONRPC string `json:"jsonrpc"`
	ID      any    `json:"id,omitempty"`
	Method  string `json:"method,omitempty"`
	Params  any    `json:"params,omitempty"`
	Result  any    `json:"result,omitempty"`
	Error   error  `json:"error,omitempty"`
}

// exchange is a request, and what is known of it.
type exchange struct {
	method string
	id     int64
	once   sync.Once
	done   chan struct{} // closed when it was answered
	reply  *message

	sent     atomic.Bool       // something of it may have left
	status   atomic.Int32      // of the HTTP response; 0: none
	missing  atomic.Bool       // the server does not know the session any more, and did nothing
	tooLarge atomic.Bool       // the answer, which is there and was not read
	headers  map[string]string // of its arguments, see headersOf
	asTask   bool              // it is a call that is to be a task

	task    string                // that it is about; empty: none
	stop    func()                // ends its wait for an answer where the server asks; nil: it goes on
	answers answers               // of a person, to what calls before it have asked
	asked   *receipt.InputRequest // what the server asks while it is under way; guarded by calls
}

func (x *exchange) answer(m *message) {
	x.once.Do(func() {
		x.reply = m
		close(x.done)
	})
}

// over reports whether a request was answered.
func (x *exchange) over() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// client speaks with a server. It is safe for concurrent use.
type client struct {
	link
	calls  *calls
	life   context.Context // ends with why nothing can be answered any more
	fail   context.CancelCauseFunc
	using  sync.RWMutex // is held by what waits for an answer
	spoken atomic.Pointer[spoken]

	mu    sync.Mutex
	last  int64                         // the id of the last request
	waits map[int64]*exchange           // by id: requests that were not answered
	asked map[string]context.CancelFunc // by id: requests of the server that were not answered
	size  int                           // of those, in bytes
}

// spoken is the protocol that a server speaks.
type spoken struct {
	version string         // empty: nobody knows yet
	meta    map[string]any // of all requests; nil: there is a session
}

func newClient(under *calls) *client {
	c := &client{calls: under, waits: make(map[int64]*exchange), asked: make(map[string]context.CancelFunc)}
	c.life, c.fail = context.WithCancelCause(context.Background())
	c.spoken.Store(new(spoken))
	return c
}

// begin finds out which protocol the server speaks, and begins a session where that has them.
func (c *client) begin(ctx context.Context) error {
	says := map[string]any{"clientInfo": map[string]string{"name": "worldkernel", "version": "1"}, "clientCapabilities": map[string]any{"elicitation": map[string]any{"form": map[string]any{}}}}
	if c.discover(ctx, says) {
		return nil
	}
	c.spoken.Store(new(spoken))
	r, err := c.ask(ctx, new(exchange), methodInitialize, map[string]any{
		"protocolVersion": withSessions, "clientInfo": says["clientInfo"], "capabilities": says["clientCapabilities"],
	})
	if err != nil {
		return err
	}
	var said struct {
		Version string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(r.result, &said) // of another form: it speaks none
	switch begun := slices.Contains([]string{withSessions, "2025-06-18", "2025-03-26", "2024-11-05"}, said.Version); {
	case begun:
	case c.discover(ctx, says): // it was slow to start, say, and has begun without a session
		return nil
	case r.fault != nil:
		return r.fault
	default:
		return fmt.Errorf("the server speaks no version of the protocol that is spoken here, but %.50q", said.Version)
	}
	c.spoken.Store(&spoken{version: said.Version})
	c.calls.noteTaskSupport(r.result)
	return c.notify(ctx, methodInitialized, map[string]any{})
}

// discover reports whether the server speaks the protocol without sessions.
func (c *client) discover(ctx context.Context, says map[string]any) bool {
	meta := map[string]any{metaPrefix + "protocolVersion": withoutSessions}
	for name, value := range says { // order cannot show: a map is built from a map
		meta[metaPrefix+name] = value
	}
	c.spoken.Store(&spoken{withoutSessions, meta})
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	r, err := c.ask(ctx, new(exchange), methodDiscover, nil)
	if err != nil {
		return false
	}
	var said struct {
		Versions []string `json:"supportedVersions"`
	}
	_ = json.Unmarshal(r.result, &said) // of another form: it speaks none
	return slices.Contains(said.Versions, withoutSessions)
}

// ask makes a request, and returns the answer, which may be an error of the server.
func (c *client) ask(ctx context.Context, x *exchange, method string, params map[string]any) (*message, error) {
	if !c.using.TryRLock() { // the session ends
		return nil, errEnded
	}
	defer c.using.RUnlock()
	if c.life.Err() != nil { // nothing of it leaves
		return nil, context.Cause(c.life)
	}
	c.mu.Lock()
	c.last++
	x.id, x.method, x.done = c.last, method, make(chan struct{})
	c.waits[x.id] = x
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waits, x.id)
	}()
	m, err := c.request(x, params)
	if err == nil {
		err = c.send(ctx, m, x)
	}
	if err == nil {
		select {
		case <-x.done:
		case <-ctx.Done():
			err = ctx.Err()
		case <-c.life.Done():
			err = context.Cause(c.life)
		}
	}
	if x.over() && !x.missing.Load() {
		return x.reply, nil
	}
	if ctx.Err() != nil && x.sent.Load() && method != methodDiscover && method != methodInitialize {
		go func() { _ = c.notify(c.life, methodCancelled, map[string]any{"requestId": x.id}) }() // if it cannot be said, nobody hears it
	}
	return nil, err
}

// request returns the message of a request.
func (c *client) request(x *exchange, params map[string]any) (*outgoing, error) {
	m := &outgoing{method: x.method}
	m.tool, _ = params["name"].(string) // of a call
	params = maps.Clone(params)
	if params == nil {
		params = make(map[string]any)
	}
	if meta := maps.Clone(c.spoken.Load().meta); meta != nil {
		of, _ := params["_meta"].(map[string]any) // of a call
		maps.Copy(meta, of)
		params["_meta"] = meta
	}
	var err error
	m.line, err = json.Marshal(said{JSONRPC: "2.0", ID: x.id, Method: x.method, Params: params})
	return m, err
}

// endSession ends the session, and the server's program if there is one, once no call waits for an answer. It is called once.
func (c *client) endSession() {
	c.using.Lock()
	c.fail(errEnded)
	c.close()
}

// notify sends what nobody answers.
func (c *client) notify(ctx context.Context, method string, params map[string]any) error {
	return c.tell(ctx, said{Method: method, Params: params})
}

// tell sends a message that nobody answers. A server that is silent has got it.
func (c *client) tell(ctx context.Context, m said) error {
	m.JSONRPC = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	if err = c.send(patient, &outgoing{line: line, method: m.Method}, nil); patient.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// hear takes a message of the server. Of is the request that it is to answer; nil: any.
func (c *client) hear(m *message, of *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.method == "":
		if x := c.waits[m.id]; x != nil && (of == nil || of == x) {
			x.answer(m)
		}
	case m.from != nil && (c.asked[string(m.from)] != nil || len(c.asked) >= maxAsked || c.size+m.size() > maxMessageBytes):
		// nobody needs so many answers at once
	case m.from != nil:
		ctx, cancel := context.WithCancel(c.life)
		c.size += m.size()
		c.asked[string(m.from)] = cancel
		go c.serve(ctx, m)
	case m.method == methodCancelled:
		var of struct {
			ID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.params, &of) == nil && c.asked[string(of.ID)] != nil {
			c.asked[string(of.ID)]()
		}
	}
}

// serve answers a request of the server, unless that takes it back.
func (c *client) serve(ctx context.Context, m *message) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked[string(m.from)]()
		delete(c.asked, string(m.from))
		c.size -= m.size()
	}()
	says := said{ID: m.from}
	var err error
	switch m.method {
	case methodPing:
		says.Result = struct{}{}
	case methodElicit:
		says.Result, err = c.calls.elicit(ctx, m.params)
	default:
		err = &rpcError{codeNoMethod, fmt.Sprintf("%.100q is not offered", m.method)}
	}
	if err != nil {
		says.Result, says.Error = nil, err
	}
	if ctx.Err() == nil {
		_ = c.tell(c.life, says) // if it cannot be said, the server goes on without
	}
}
