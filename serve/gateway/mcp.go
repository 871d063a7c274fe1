package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/host/mcp"
)

// The way in of tools: a client of the Model Context Protocol starts worldctl mcp in the place of a server, and
// that starts the server. Each line that the two say to each other comes here first. All pass as they are but
// calls of tools: their lines pass to the server when they are permitted, and the lines that
// answer them are their receipts. So the connection to a server is that of its client, and lasts as
// long.

const (
	// Tools is where in the path of a gateway servers of tools are: /a/TOKEN/mcp/NAME.
	Tools = "mcp"
	// mcpProtocol is what a connection is upgraded to.
	mcpProtocol = "worldkernel-mcp"

	maxServers  = 64   // connections at once
	maxAsked    = 1000 // requests under way of a connection
	maxName     = 100  // bytes of a server's name
	cancelGrace = 10 * time.Second
)

// mcpServer is a connection of a client to a server.
type mcpServer struct {
	g    *Gateway
	name string
	out  *queue
	hold time.Duration   // how long a call waits for a person; 0: as its client allows
	gone context.Context // ends when the server has, or its program
	end  context.CancelCauseFunc
	work sync.WaitGroup // calls that are answered

	mu        sync.Mutex
	client    string                    // as it calls itself
	can       map[string]capabilities   // of clients, by session; "": of the last that has begun, for those without sessions
	ownTasks  bool                      // the server has tasks
	described bool                      // it has said whether it has
	asked     map[string]*mcpMessage    // by id: requests of the client that were not answered
	running   map[string]chan *mcpReply // by id of their lines to the server: calls that are made
	number    int64                     // the id of the last of them
	said      map[string]string         // what the server says of its tools: hashes by name
	listed    map[string]string         // by method and cursor: the digest of what the server said last
}

// mcpReply is the answer of a server to a call.
type mcpReply struct {
	result, fault json.RawMessage
	large         bool  // it is larger than is read
	err           error // there is none
	unmade        bool  // likewise, and the call was not made
}

// newServer returns a server that has not said anything yet, and is there until the gateway ends.
func (g *Gateway) newServer(name string) *mcpServer {
	s := &mcpServer{
		g: g, name: name, number: firstID + rand.Int64N(1<<52), // nobody guesses them
		asked: make(map[string]*mcpMessage), running: make(map[string]chan *mcpReply),
		said: make(map[string]string), listed: make(map[string]string), can: make(map[string]capabilities),
	}
	s.gone, s.end = context.WithCancelCause(g.life)
	return s
}

// serves notes that calls of a server's tools come through the gateway. It is called with mu held.
func (g *Gateway) serves(name string) {
	if len(g.hooks.servers) < maxListed {
		g.hooks.servers[serverInTools.ReplaceAllString(name, "_")] = true
	}
}

// serveMCP serves the connection of a client to a server.
func (g *Gateway) serveMCP(w http.ResponseWriter, r *http.Request, name string) {
	named := name != "" && len(name) <= maxName
	switch upgrade := r.Header.Get("Upgrade"); {
	case r.Method == http.MethodPut && named: // see ComesThrough
		g.mu.Lock()
		defer g.mu.Unlock()
		g.serves(name)
		return
	case r.Method != http.MethodPut && upgrade == "":
		g.serveWeb(w, r, name)
		return
	case upgrade != mcpProtocol || !named:
		http.Error(w, "worldctl mcp --name NAME -- COMMAND comes in here, and clients of servers over HTTP", http.StatusBadRequest)
		return
	}
	hold, err := time.ParseDuration(r.URL.Query().Get("hold"))
	if err != nil || hold < 0 {
		hold = 0
	}
	defer g.tools.servers.Add(-1)
	if g.tools.servers.Add(1) > maxServers {
		http.Error(w, "too many servers at once", http.StatusServiceUnavailable)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close() //nolint:errcheck // it was read to its end, or is of no use
	_ = conn.SetDeadline(time.Time{})
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", mcpProtocol); err != nil {
		return
	}
	s := g.newServer(name)
	s.hold = hold
	g.mu.Lock()
	g.serves(name)
	g.mu.Unlock()
	s.out = newQueue(conn, func(error) { _ = conn.Close() })
	defer context.AfterFunc(s.gone, s.out.close)()
	if !g.cfg.Offline {
		s.out.frame(frameStart, nil)
	}
	s.end(s.read(buffered.Reader))
	s.work.Wait()
}

// read takes what the client and the server say, until one has gone for good.
func (s *mcpServer) read(from *bufio.Reader) error {
	for {
		f, err := readFrame(from)
		if err != nil {
			return fmt.Errorf("the program between client and server has gone: %w", err)
		}
		switch f.kind {
		case frameClient:
			s.fromClient(f.data)
		case frameServer:
			s.fromServer(f.data)
		case frameClients:
			s.toClient(fault(mcp.LineID(f.data), codeRequest, fmt.Sprintf("the message is larger than %d bytes", maxLine)))
		case frameServers:
			s.tooLarge(f.data)
		case frameLeft:
			go s.stop()
		case frameEnded:
			return fmt.Errorf("the server has ended: %s", f.data)
		}
	}
}

// stop ends the server once the calls that are made have ended: their client has gone.
func (s *mcpServer) stop() {
	for s.gone.Err() == nil {
		s.mu.Lock()
		under := len(s.running)
		s.mu.Unlock()
		if under == 0 {
			break
		}
		select {
		case <-time.After(lookAgain):
		case <-s.gone.Done():
		}
	}
	s.out.frame(frameStop, nil)
}

func (s *mcpServer) toClient(line []byte) { s.out.frame(frameClient, line) }

// fromClient takes a line of the client.
func (s *mcpServer) fromClient(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	m, err := readClient(line)
	switch {
	case err != nil:
		s.toClient(fault(nil, codeParse, "worldkernel: "+err.Error()))
	case callsTool(m.method):
		s.begin(m)
	case s.cancels(m, ""), answersOffer(m):
	case m.method != "" && m.id != nil:
		if c, id := s.asksTask(m); c != nil {
			s.work.Go(func() {
				if answer := c.serveTask(id); answer != nil {
					s.toClient(answer)
				}
			})
			return
		}
		s.pass(m)
	case s.g.cfg.Offline: // there is no server
	default:
		s.out.frame(frameServer, m.line)
	}
}

// pass passes a request of the client on.
func (s *mcpServer) pass(m *mcpMessage) {
	if refused := s.take(m); refused != nil {
		s.toClient(refused)
		return
	}
	s.meet(m)
	if s.g.cfg.Offline {
		s.toClient(s.recorded(m))
		return
	}
	s.out.frame(frameServer, m.line)
}

// take has an id name a request. Where it names another one, or there are too many, it returns the answer to the request.
func (s *mcpServer) take(m *mcpMessage) (refused []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.asked[m.key] != nil || s.running[m.key] != nil:
		return fault(m.id, codeRequest, "worldkernel: the id is that of another request, which was not answered yet")
	case len(s.asked) >= maxAsked:
		return fault(m.id, codeInternal, fmt.Sprintf("worldkernel: more than %d requests at once", maxAsked))
	}
	s.asked[m.key] = m
	return nil
}

// answers returns the request that an answer of the server is to, which waits for no other; nil: it is to none.
func (s *mcpServer) answers(key string) *mcpMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.asked[key]
	if m == nil || m.call != nil {
		return nil
	}
	delete(s.asked, key)
	return m
}

// clientSays is what a client says of itself in a request.
type clientSays struct {
	Info         struct{ Name string } `json:"clientInfo"`
	Capabilities json.RawMessage       `json:"capabilities"`
	Meta         struct {
		Info         struct{ Name string } `json:"io.modelcontextprotocol/clientInfo"`
		Capabilities json.RawMessage       `json:"io.modelcontextprotocol/clientCapabilities"`
	} `json:"_meta"`
}

func (m *mcpMessage) clientSays() (said clientSays) {
	_ = json.Unmarshal(m.params, &said) // of another form: it does not say
	return said
}

// meet notes what the client says of itself.
func (s *mcpServer) meet(m *mcpMessage) {
	said := m.clientSays()
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.method == methodInitialize {
		s.can[""] = readCapabilities(said.Capabilities)
		s.begins(m, m.session)
	}
	if name := said.Info.Name + said.Meta.Info.Name; name != "" && (m.method == methodInitialize || s.client == "") {
		s.client = name
	}
}

// begins notes what the client can that has begun a session with a message. It is called with mu held.
func (s *mcpServer) begins(m *mcpMessage, session string) {
	for id := range s.can { // order cannot show: whoever is forgotten is offered neither links nor tasks
		if len(s.can) > maxListed && id != "" {
			delete(s.can, id)
		}
	}
	if session != "" {
		s.can[session] = readCapabilities(m.clientSays().Capabilities)
	}
}

// fromServer takes a line of the server.
func (s *mcpServer) fromServer(line []byte) {
	line = bytes.TrimPrefix(bytes.TrimSpace(line), []byte("\uFEFF"))
	take := func(one json.RawMessage) error {
		if m, err := readServer(one); err == nil && s.passes(m, "") { // what is no message is a log, say
			s.toClient(m.line)
		}
		return nil
	}
	if mcp.EachOf(line, take) != nil { // it is no batch
		_ = take(line)
	}
}

// passes takes a message of the server, and reports whether it goes to the client. An answer to what it was not asked goes
// nowhere: a call that waits for its permit has no answer yet. Scope is of the ids of the client's requests.
func (s *mcpServer) passes(m *mcpMessage, scope string) bool {
	if m.method != "" {
		return true
	}
	if s.reply(m.key, &mcpReply{result: m.result, fault: m.fault}) {
		return false
	}
	asked := s.answers(scope + m.key)
	if asked != nil && m.result != nil {
		s.hear(asked, m.result)
		s.addTasks(asked, m)
	}
	return asked != nil
}

// reply gives a call its answer, and reports whether there is such a call.
func (s *mcpServer) reply(key string, r *mcpReply) bool {
	s.mu.Lock()
	call := s.running[key]
	delete(s.running, key)
	s.mu.Unlock()
	if call != nil {
		call <- r
	}
	return call != nil
}

// tooLarge answers what the server has answered with more than is read.
func (s *mcpServer) tooLarge(ends []byte) {
	if answer := s.largeAnswer("", idKey(mcp.LineID(ends))); answer != nil {
		s.toClient(answer)
	}
}

// largeAnswer returns what the client is told of an answer that is larger than is read; nil: nothing.
func (s *mcpServer) largeAnswer(scope, key string) []byte {
	if s.reply(key, &mcpReply{large: true}) {
		return nil
	}
	asked := s.answers(scope + key)
	if asked == nil {
		return nil
	}
	return fault(asked.id, codeInternal, fmt.Sprintf("worldkernel: the server's answer is larger than %d bytes", maxLine))
}

// runs reports whether a call has no answer yet.
func (s *mcpServer) runs(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[key] != nil
}

// cancels takes that the client does not want an answer any more, and reports whether it is that to a call.
func (s *mcpServer) cancels(m *mcpMessage, scope string) bool {
	key := m.takenBack()
	s.mu.Lock()
	asked := s.asked[scope+key]
	s.mu.Unlock()
	if asked == nil || asked.call == nil {
		return false
	}
	asked.call.cancel()
	return true
}

// holdOf returns how long a call of a client waits for a person: with signs of life a client of Claude Code waits
// without end, Codex for five minutes in all, and others mostly a minute.
func holdOf(client string) time.Duration {
	switch name := strings.ToLower(client); {
	case strings.HasPrefix(name, "claude"):
		return 25 * time.Minute
	case strings.HasPrefix(name, "codex"):
		return 4 * time.Minute
	case name == "mcp": // the Python SDK, as the OpenAI Agents SDK has it: five seconds
		return 4 * time.Second
	}
	return 50 * time.Second
}

// closed returns why nothing can be sent to the server any more; nil: it can.
func (s *mcpServer) closed() error {
	if s.gone.Err() != nil {
		return context.Cause(s.gone)
	}
	return nil
}

// drain waits until no call of a tool is made any more, for a while: the agent has ended, and what its tools did is to be on
// record.
func (g *Gateway) drain(ctx context.Context) {
	late := time.NewTimer(lateTime)
	defer late.Stop()
	for {
		g.mu.Lock()
		running, news := g.tools.running, g.news
		g.mu.Unlock()
		if running == 0 {
			return
		}
		select {
		case <-news:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// makes counts the calls of tools that are made.
func (g *Gateway) makes(more int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tools.running += more
	ring(&g.news)
}
