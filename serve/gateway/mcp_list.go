package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/world"
)

// maxRecorded is how many bytes of what a server says of itself are recorded.
const maxRecorded = 1 << 20

// describes reports whether the answer to a method says what a server is, and is recorded.
func describes(method string) bool {
	switch method {
	case methodInitialize, methodDiscover, methodTools, "prompts/list", "resources/list", "resources/templates/list":
		return true
	}
	return false
}

// tools are the calls of tools of a session. Gateway.mu guards them, but for servers.
type tools struct {
	calls                                // of tools, by key of the call
	byUse   map[string]*asking           // by the model's id and key
	pins    map[string]map[string]string // by server: hashes of its tools as they were when they were pinned
	running int                          // calls that are made
	listed  map[string][]byte            // offline: by server, method and cursor: what it said

	tasks map[string]*task      // by id
	web   map[string]*webServer // by name and address

	servers atomic.Int64 // connections
}

// recallTools finds how tools are pinned in the world: what was pinned last counts.
func (g *Gateway) recallTools() {
	t := &g.tools
	t.calls, t.byUse, t.pins = newCalls(), make(map[string]*asking), make(map[string]map[string]string)
	t.web, t.tasks = make(map[string]*webServer), make(map[string]*task)
	type pinned struct {
		server string
		recorder.Pins
	}
	var all []pinned
	g.cfg.World.View(func(m *world.Moment) {
		for _, v := range m.Cells() {
			if v.Cell.Reducer != recorder.Name {
				continue
			}
			s, _ := reducer.Decode[recorder.Session](v.State) // of another form it has none
			for server, p := range s.Pins {                   // order cannot show: sorted below
				all = append(all, pinned{server, p})
			}
		}
	})
	slices.SortStableFunc(all, func(a, b pinned) int { return cmp.Compare(a.Tick, b.Tick) })
	for _, p := range all {
		if t.pins[p.server] == nil {
			t.pins[p.server] = make(map[string]string)
		}
		maps.Copy(t.pins[p.server], p.Tools)
	}
}

// matchTool finds what a call is. The model's id of it decides, where there is one; else equal calls of an agent that was started
// again are told apart by their order. A call that waits for a person is joined by an equal one.
func (g *Gateway) matchTool(c *toolCall) (*asking, match) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.summary.ToolRequests++
	use := ""
	if c.use != "" {
		use = digest(c.use)[:16]
		if a := g.tools.byUse[use+c.key]; a != nil {
			a.attended = true
			return a, joined
		}
	}
	a, is := g.find(&g.tools.calls, c.key, use, false)
	switch {
	case is == recorded:
		g.summary.ToolsServed++
	case a != nil:
	case g.cfg.Offline:
		g.summary.diverge(&Divergence{Request: g.summary.ToolRequests, Path: c.server.name, Tool: c.tool, Prompt: shorten(string(c.arguments), maxText)})
		return nil, missed
	default:
		a, is = g.add(&g.tools.calls, c.key, use), fresh
	}
	if use != "" {
		g.tools.byUse[use+c.key] = a
	}
	return a, is
}

// recallListed finds what servers have said of themselves, where only the record answers.
func (g *Gateway) recallListed() error {
	if !g.cfg.Offline {
		return nil
	}
	g.tools.listed = make(map[string][]byte)
	for e, err := range g.record.OfCell(g.cell.String(), 0) {
		if err != nil {
			return err
		}
		b, is := e.Body.(*journal.Submitted)
		if !is || b.Name != recorder.Listed {
			continue
		}
		l, err := reducer.Decode[recorder.Listing](b.Data)
		if err != nil {
			return err
		}
		g.tools.listed[digest(l.Server, l.Method, l.Params)] = l.Result
	}
	return nil
}

// cursorOf returns what tells two requests of a method that describes apart.
func cursorOf(m *mcpMessage) string {
	var params struct {
		Cursor string `json:"cursor"`
	}
	if m.method != methodInitialize {
		_ = json.Unmarshal(m.params, &params) // of another form: there is none
	}
	return params.Cursor
}

// recorded returns the answer to a request that only the record answers.
func (s *mcpServer) recorded(m *mcpMessage) []byte {
	s.answers(m.key)
	if m.method == "ping" {
		return response(m.id, "result", []byte("{}"))
	}
	result, is := s.g.tools.listed[digest(s.name, m.method, cursorOf(m))]
	if !is {
		return fault(m.id, codeInternal, "worldkernel: only the record answers, and it has no answer to "+m.method)
	}
	answer := &mcpMessage{id: m.id, line: response(m.id, "result", result), result: result}
	s.addTasks(m, answer)
	return answer.line
}

// hear takes the answer to a request that describes the server: what is other than before is an event.
func (s *mcpServer) hear(asked *mcpMessage, result json.RawMessage) {
	if !describes(asked.method) {
		return
	}
	cursor := cursorOf(asked)
	l := recorder.Listing{Server: s.name, Method: asked.method, Params: cursor, Result: result}
	if asked.method == methodTools {
		l.Tools = hashes(result)
		l.Changed = s.compare(l.Tools)
	}
	if len(result) > maxRecorded {
		return
	}
	where, what := asked.method+" "+cursor, digest(string(result))
	s.mu.Lock()
	same := s.listed[where] == what
	s.listed[where] = what
	s.mu.Unlock()
	if same || s.g.submit(context.WithoutCancel(s.gone), recorder.Listed, l) != nil { // a world that takes no event takes no call
		return
	}
	s.g.count(func(sum *Summary) {
		for _, tool := range l.Changed {
			sum.Changed = append(sum.Changed, s.name+"/"+tool)
		}
	})
}

// hashes returns the hash of each tool that a list has. Of two of one name it is that of both.
func hashes(result json.RawMessage) map[string]string {
	var said struct {
		Tools json.RawMessage `json:"tools"`
	}
	_ = json.Unmarshal(result, &said) // of another form: it lists none
	out := make(map[string]string)
	_ = mcp.EachOf(said.Tools, func(tool json.RawMessage) error {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(tool, &named) != nil || named.Name == "" {
			return nil
		}
		data, err := canon.FromJSON(tool)
		if err != nil {
			data = canon.Raw(tool)
		}
		hash := digest(string(data))
		if other, is := out[named.Name]; is && other != hash {
			hash = digest(other, hash)
		}
		out[named.Name] = hash
		return nil
	})
	return out
}

// compare notes the tools that the server lists, and returns those that are other than they were pinned.
func (s *mcpServer) compare(listed map[string]string) (changed []string) {
	g := s.g
	g.mu.Lock()
	pins := g.tools.pins[s.name]
	if pins == nil {
		pins = make(map[string]string)
		g.tools.pins[s.name] = pins
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		switch was, is := pins[name]; {
		case is && was != listed[name], !is && len(pins) >= recorder.MaxPins:
			changed = append(changed, name)
		case !is:
			pins[name] = listed[name]
		}
	}
	g.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.said, listed)
	return changed
}

// pinned returns the hash of what the server says of a tool, empty if it does not list it, and whether that is other than before.
func (s *mcpServer) pinned(tool string) (hash string, changed bool) {
	s.mu.Lock()
	hash = s.said[tool]
	s.mu.Unlock()
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	return hash, hash != "" && hash != s.g.tools.pins[s.name][tool]
}

// pin pins the tool of a call that was permitted, as it was listed then.
func (c *toolCall) pin() {
	g := c.server.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.hash != "" && !c.asking.served {
		g.tools.pins[c.server.name][c.tool] = c.hash
	}
}
