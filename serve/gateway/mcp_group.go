package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/host/mcp"
)

const (
	maxShown  = 64     // bytes of a tool's name, with what clients put before it: mcp__SERVER__
	minShown  = 32     // of it that a group has in any case
	maxListed = 10_000 // names and addresses that are remembered

	// groupTime is how long servers have to say what they are before the client is answered without them, as soon as one has:
	// Codex waits ten seconds for all.
	groupTime = 8 * time.Second
)

// Group stands between a client and several servers of the Model Context Protocol, which the client sees as one. Each
// comes in at a gateway as it does alone, with its own name: policies and the record know nothing of groups. The tool T of
// the server S is S__T for the client. Server names are unique, have no two underscores in a row and none at the end, so names
// of tools cannot collide. Ids of the client's requests pass as they are.
type Group struct {
	URL     string        // of the gateway: Gateway.URL of Tools
	Name    string        // as the client knows it
	Hold    time.Duration // see Bridge
	Servers []GroupServer
	Client  io.Reader // see Bridge
	Out     io.Writer // likewise

	out     *queue
	begun   chan struct{} // closed when the client has asked for something
	members []*member
	slow    time.Duration // in the place of groupTime, for tests; 0: that

	mu     sync.Mutex
	asked  map[string]*groupAsk // by id: requests of the client that were not answered
	posed  map[string]question  // by id: requests of servers that the client has not answered
	number int64                // the id of the last of them
	names  map[string]listed    // by the name that the client sees: tools and prompts
	owners map[named]*member    // the first server that has said so
}

// GroupServer is a server of a group: a program, or an address.
type GroupServer struct {
	Name    string
	Command *exec.Cmd // nil: it is reached over HTTP
	URL     string
	Header  http.Header
}

// member is a server of a group that runs.
type member struct {
	*GroupServer
	prefix string // of its tools
	in     *queue
	why    error // it has ended; nil: it has not
	late   bool  // the client was answered without it
}

// listed is what a server has listed: its own name of it.
type listed struct {
	of   *member
	name string
}

// named is what keeps the name that its server has given it.
type named struct{ kind, name string }

// The kinds of what is named.
const (
	kindURI  = "uri"
	kindTask = "task"
)

// question is a request of a server.
type question struct {
	of *member
	id json.RawMessage
}

// groupAsk is a request of the client.
type groupAsk struct {
	m       *mcpMessage
	waits   []*member // of those that were asked, who has not answered
	results map[*member]json.RawMessage
	faults  [][]byte // the answers where there is no result
	refused bool     // a server has answered so
}

// Check returns why there can be no such group; nil: there can.
func (g *Group) Check() error {
	_, err := g.newMembers()
	return err
}

// newMembers names the servers.
func (g *Group) newMembers() (members []*member, err error) {
	if g.Name == "" || len(g.Name) > maxName {
		return nil, fmt.Errorf("gateway: the servers need another name than %.200q: at most %d bytes", g.Name, maxName)
	}
	known := make(map[string]string)
	for i := range g.Servers {
		m := &member{GroupServer: &g.Servers[i]}
		m.prefix = serverInTools.ReplaceAllString(m.Name, "_")
		for strings.Contains(m.prefix, "__") {
			m.prefix = strings.ReplaceAll(m.prefix, "__", "_")
		}
		m.prefix = strings.TrimSuffix(m.prefix, "_")
		alike := strings.ToLower(strings.ReplaceAll(m.prefix, "-", "_")) // Codex shows both so
		if other, is := known[alike]; is || m.prefix == "" || len(m.Name) > maxName {
			return nil, fmt.Errorf("gateway: the server %q needs another name: %q", m.Name, other)
		}
		known[alike] = m.Name
		members = append(members, m)
	}
	return members, nil
}

// Run runs the servers until the client has gone, or all have ended and it was told so. Once ctx ends it is as if the client had gone.
func (g *Group) Run(ctx context.Context) (err error) {
	if g.members, err = g.newMembers(); err != nil {
		return err
	}
	if err := ComesThrough(g.URL, g.Name); err != nil {
		return err
	}
	g.asked, g.posed, g.names, g.owners = make(map[string]*groupAsk), make(map[string]question), make(map[string]listed), make(map[named]*member)
	written := make(chan struct{})
	g.begun = make(chan struct{})
	g.out = newQueue(g.Out, func(error) { close(written) })
	var all sync.WaitGroup
	for _, m := range g.members {
		from, to := io.Pipe()
		m.in = newQueue(to, func(error) { _ = to.Close() })
		all.Go(func() { g.runMember(ctx, m, from) })
	}
	left := make(chan struct{})
	go func() {
		eachLine(g.Client, maxLine+maxEnvelope, g.fromClient, func(ends []byte) {
			g.out.put(fault(mcp.LineID(ends), codeRequest, fmt.Sprintf("worldkernel: the message is larger than %d bytes", maxLine)), []byte("\n"))
		})
		close(left)
		for _, m := range g.members {
			m.in.close()
		}
	}()
	all.Wait()
	select {
	case <-g.begun:
	case <-left:
	case <-ctx.Done():
	}
	g.out.close()
	<-written
	select {
	case <-left:
	case <-ctx.Done():
	default:
		for _, m := range g.members {
			err = errors.Join(err, m.gone())
		}
	}
	return err
}

// ComesThrough tells a gateway, at the address of its tools, that calls of a client's server come through it: so its tools are not judged
// as those of the agent as well.
func ComesThrough(at, name string) error {
	req, err := http.NewRequest(http.MethodPut, at+"/"+url.PathEscape(name), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("the gateway is not there: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the gateway does not take the name %.100q of a server", name)
	}
	return errors.Join(err, resp.Body.Close())
}

// runMember runs a server to its end.
func (g *Group) runMember(ctx context.Context, m *member, in *io.PipeReader) {
	from, to := io.Pipe()
	var why error
	go func() {
		if m.Command == nil {
			why = (&groupWeb{member: m, at: WebURL(g.URL, m.Name, m.URL), out: to}).run(ctx, in)
		} else if why = (&Bridge{URL: g.URL + "/" + url.PathEscape(m.Name), Hold: g.Hold, Server: m.Command, Client: in, Out: to}).Run(ctx); why == nil {
			why = errors.New(cmp.Or(m.Command.ProcessState.String(), "it was not started"))
		}
		_ = errors.Join(to.Close(), in.Close())
	}()
	eachLine(from, maxLine+maxEnvelope, func(line []byte) { g.fromServer(m, line) }, nil) // the gateway says nothing that is longer
	g.mu.Lock()
	defer g.mu.Unlock()
	m.why = why
	for _, a := range g.asked { // order cannot show: the client tells answers apart by their ids
		g.take(a, m, nil, g.refusal(a.m, m, true))
	}
}

// gone says that a server has ended, and why; nil: it has not.
func (m *member) gone() error {
	if m.why == nil {
		return nil
	}
	return fmt.Errorf("the server %s has ended, or was not started: %w", m.Name, m.why)
}

// refusal returns the answer to a request that a server does not answer, since it has ended.
func (g *Group) refusal(m *mcpMessage, of *member, sent bool) []byte {
	text := "worldkernel: " + of.gone().Error()
	c, err := readCall(of.Name, m.params, false)
	switch {
	case m.method != methodCall || err != nil:
		return fault(m.id, codeInternal, text)
	case sent:
		text += ". Nobody can tell whether this call was made: see what it has left before you call it anew"
	default:
		text += ". This call was not made"
	}
	return response(m.id, "result", toolError(text, c.stateless()))
}

// fromClient takes a message of the client.
func (g *Group) fromClient(line []byte) {
	m, err := readClient(line)
	if err != nil {
		g.out.put(fault(nil, codeParse, "worldkernel: "+err.Error()), []byte("\n"))
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	q, is := g.posed[m.key]
	switch {
	case m.method == "" && is:
		delete(g.posed, m.key)
		part, of := "result", m.result
		if m.fault != nil {
			part, of = "error", m.fault
		}
		q.of.send(response(q.id, part, of))
	case m.method == "":
	case m.id == nil:
		delete(g.asked, m.takenBack())
		for _, to := range g.members { // which know by the id whether it is theirs
			to.send(m.line)
		}
	case g.asked[m.key] != nil:
		g.out.put(fault(m.id, codeRequest, "worldkernel: the id is that of another request, which was not answered yet"), []byte("\n"))
	default:
		g.ask(m)
		if !isClosed(g.begun) {
			close(g.begun)
		}
	}
}

func (m *member) send(line []byte) { m.in.put(line, []byte("\n")) }

// ask passes a request of the client to whom it is for.
func (g *Group) ask(m *mcpMessage) {
	lines, err := g.route(m)
	if err == nil && len(g.asked) >= maxAsked {
		err = fmt.Errorf("more than %d requests at once", maxAsked)
	}
	if err != nil {
		g.out.put(fault(m.id, codeRequest, "worldkernel: "+err.Error()), []byte("\n"))
		return
	}
	a := &groupAsk{m: m, results: make(map[*member]json.RawMessage)}
	g.asked[m.key] = a
	for _, to := range g.members {
		if lines[to] != nil {
			a.waits = append(a.waits, to)
		}
	}
	wait := func(slow *member) {
		slow.late = slow.late || m.method == methodInitialize || m.method == methodDiscover
		g.take(a, slow, nil, fault(m.id, codeInternal, "worldkernel: the server "+slow.Name+" has not answered yet"))
	}
	for _, to := range slices.Clone(a.waits) {
		switch {
		case to.why != nil:
			g.take(a, to, nil, g.refusal(m, to, false))
		case to.late && listKeys[m.method] != "":
			wait(to)
		default:
			to.send(lines[to])
		}
	}
	if describes(m.method) {
		time.AfterFunc(cmp.Or(g.slow, groupTime), func() { g.goOn(a, wait) })
	}
}

// goOn has a request answered without the servers that are slow, once any other has answered.
func (g *Group) goOn(a *groupAsk, without func(slow *member)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked[a.m.key] == a && len(a.results) == 0 {
		time.AfterFunc(lookAgain, func() { g.goOn(a, without) })
		return
	}
	for _, slow := range slices.Clone(a.waits) {
		without(slow)
	}
}

// route returns what each server is sent of a request.
func (g *Group) route(m *mcpMessage) (map[*member][]byte, error) {
	var params struct {
		Name   string `json:"name"`
		URI    string `json:"uri"`
		Task   string `json:"taskId"`
		Cursor string `json:"cursor"`
		Ref    struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"ref"`
	}
	_ = json.Unmarshal(m.params, &params) // of another form: it is for all
	lines := make(map[*member][]byte)
	switch m.method {
	case methodCall, "prompts/get":
		to, err := g.listed(params.Name)
		lines[to.of] = m.with("name", quoted(to.name))
		return lines, err
	case "completion/complete":
		if params.Ref.Name != "" {
			to, err := g.listed(params.Ref.Name)
			lines[to.of] = m.with("ref", fmt.Appendf(nil, `{"type":"ref/prompt","name":%s}`, quoted(to.name)))
			return lines, err
		}
		params.URI = params.Ref.URI
	}
	for _, n := range []named{{kindURI, params.URI}, {kindTask, params.Task}} {
		if of := g.owners[n]; of != nil {
			lines[of] = m.line
			return lines, nil
		}
	}
	var cursors map[string]string
	if listKeys[m.method] != "" && params.Cursor != "" && json.Unmarshal([]byte(params.Cursor), &cursors) != nil {
		return nil, errors.New("the cursor is of no list of this server")
	}
	for _, to := range g.members {
		if cursor, is := cursors[to.prefix]; is {
			lines[to] = m.with("cursor", quoted(cursor))
		} else if cursors == nil {
			lines[to] = m.line
		}
	}
	return lines, nil
}

// listed returns whose a name is that the client sees.
func (g *Group) listed(shown string) (listed, error) {
	if l, is := g.names[shown]; is {
		return l, nil
	}
	prefix, name, _ := strings.Cut(shown, "__")
	for _, m := range g.members {
		if m.prefix == prefix && name != "" {
			return listed{m, name}, nil
		}
	}
	return listed{}, fmt.Errorf("no server has %.100q: want SERVER__NAME", shown)
}

// show returns the name that the client sees.
func (g *Group) show(of *member, name string) string {
	shown, most := of.prefix+"__"+name, max(minShown, maxShown-len("mcp__"+g.Name+"__"))
	if len(shown) > most {
		shown = strings.ToValidUTF8(shown[:most-9], "") + "_" + digest(shown)[:8]
	}
	if len(g.names) < maxListed {
		g.names[shown] = listed{of, name}
	}
	return shown
}

// fromServer takes a message of a server.
func (g *Group) fromServer(of *member, line []byte) {
	m, err := readServer(line)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case m.method == "":
		if a := g.asked[m.key]; a != nil && slices.Contains(a.waits, of) {
			g.take(a, of, m.result, m.line)
		} else if of.late {
			of.late = false
			for _, what := range []string{"tools", "prompts", "resources"} {
				g.out.put(fmt.Appendf(nil, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s/list_changed\"}\n", what))
			}
		}
		return
	case m.method == methodCancelled:
		for id, q := range g.posed { // order cannot show: there is one
			if q.of == of && idKey(q.id) == m.takenBack() {
				delete(g.posed, id)
				m.line = m.with("requestId", json.RawMessage(id[1:]))
			}
		}
	case m.id != nil && len(g.posed) >= maxAsked:
		of.send(fault(m.id, codeInternal, fmt.Sprintf("worldkernel: more than %d requests at once", maxAsked)))
		return
	case m.id != nil:
		g.number++
		id := strconv.FormatInt(g.number, 10)
		g.posed["n"+id] = question{of, m.id}
		m.id = json.RawMessage(id)
		m.line = m.with("", nil)
	}
	g.out.put(m.line, []byte("\n"))
}
