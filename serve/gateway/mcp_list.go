package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/show/view"
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
	past    []*pastCall                  // what earlier incarnations have called, in order
	now     map[string][]*asking         // by key of the call: those of this incarnation, in order
	byUse   map[string]*asking           // by the model's id and key
	pins    map[string]map[string]string // by server: hashes of its tools as they were when they were pinned
	running int                          // calls that are made
	left    int                          // answers of past that were not given yet
	listed  map[string][]byte            // offline: by server, method and cursor: what it said

	tasks map[string]*task      // by id
	web   map[string]*webServer // by name and address

	servers atomic.Int64 // connections
}

// pastCall is a call of an earlier incarnation.
type pastCall struct {
	tag   string
	call  string // the key of the call
	use   string // digest of the model's id; empty: the client did not say
	key   receipt.Key
	given bool
}

// recallTools finds what earlier incarnations of the session have called, and how tools are pinned in the world.
func (g *Gateway) recallTools() error {
	t := &g.tools
	t.now, t.byUse, t.pins = make(map[string][]*asking), make(map[string]*asking), make(map[string]map[string]string)
	t.web, t.tasks = make(map[string]*webServer), make(map[string]*task)
	var entries []receipt.Entry
	var pins []recorder.Session
	g.cfg.World.View(func(m *world.Moment) {
		entries = m.Intents()
		for _, v := range m.Cells() {
			if v.Cell.Reducer != recorder.Name {
				continue
			}
			if s, err := reducer.Decode[recorder.Session](v.State); err == nil && len(s.Pins) > 0 {
				pins = append(pins, s)
			}
		}
	})
	g.pinAll(pins)
	for i := range entries {
		e := &entries[i]
		if e.Intent.Cell != g.cell.String() || e.Intent.Kind != recorder.MCPCall || e.Abandoned {
			continue
		}
		p := &pastCall{tag: e.Intent.Tag, key: e.Intent.Key}
		p.call, p.use = keyOfTag(e.Intent.Tag)
		switch made, err := g.made(e); {
		case err != nil:
			return err
		case !made:
			continue
		}
		if t.past = append(t.past, p); over(e) && (g.cfg.Again || g.cfg.Offline) {
			t.left++
		}
	}
	if g.cfg.Offline {
		return g.recallListed()
	}
	return nil
}

// made reports whether something may have come of a call, or may come of it yet.
func (g *Gateway) made(e *receipt.Entry) (bool, error) {
	if e.State != receipt.StateFailed && e.State != receipt.StateCancelled || e.Uncertain {
		return true, nil
	}
	payload, _, err := g.payloadOf(e)
	var answer recorder.ToolAnswer
	return payload == nil || canon.UnmarshalTrusted(payload, &answer) == nil, err
}

// keyOfTag returns what the tag of a call says of it: see matchTool.
func keyOfTag(tag string) (call, use string) {
	_, rest, _ := strings.Cut(tag, " ")
	call, use, _ = strings.Cut(rest, " ")
	return call, use
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
	a, is := g.matchOpen(c, use)
	if a == nil && g.cfg.Offline {
		if g.summary.Divergence == nil {
			g.summary.Divergence = &Divergence{Request: g.summary.ToolRequests, Path: c.server.name, Tool: c.tool, Prompt: shorten(string(c.arguments), maxText)}
		}
		return nil, missed
	}
	if a == nil {
		g.numbered++
		a, is = &asking{tag: strings.TrimSpace(fmt.Sprintf("%d.%d %s %s", g.incarnation, g.numbered, c.key, use))}, fresh
	}
	a.attended = true
	g.tools.now[c.key] = append(g.tools.now[c.key], a)
	if use != "" {
		g.tools.byUse[use+c.key] = a
	}
	return a, is
}

// matchOpen finds the call that a call is, among those that were not answered to the end and those of earlier
// incarnations; nil: it is a new one. It is called with mu held.
func (g *Gateway) matchOpen(c *toolCall, use string) (*asking, match) {
	for _, a := range g.tools.now[c.key] {
		if !a.attended && !a.delivered && !a.failed {
			return a, joined
		}
	}
	found, at := (*pastCall)(nil), receipt.Entry{}
	for _, p := range g.tools.past {
		e := g.entry(p.key)
		ended := over(&e)
		switch {
		case p.given || p.call != c.key, ended && p.use != use, ended && use == "" && !g.cfg.Again && !g.cfg.Offline, !ended && g.cfg.Offline:
			continue
		}
		if found == nil || e.State == receipt.StateCommitted { // of what is in doubt something may have come later
			found, at = p, e
		}
		if at.State != receipt.StateInDoubt {
			break
		}
	}
	if found == nil {
		return nil, fresh
	}
	found.given = true
	a := &asking{tag: found.tag, key: found.key, served: over(&at)}
	if !a.served {
		return a, waiting
	}
	g.tools.left--
	g.summary.ToolsServed++
	return a, recorded
}

// pinAll pins tools as the sessions of the world have them. What was pinned last counts.
func (g *Gateway) pinAll(sessions []recorder.Session) {
	type pinned struct {
		server string
		recorder.Pins
	}
	var all []pinned
	for _, s := range sessions {
		for server, p := range s.Pins { // order cannot show: sorted below
			all = append(all, pinned{server, p})
		}
	}
	slices.SortStableFunc(all, func(a, b pinned) int { return cmp.Compare(a.Tick, b.Tick) })
	for _, p := range all {
		if g.tools.pins[p.server] == nil {
			g.tools.pins[p.server] = make(map[string]string)
		}
		maps.Copy(g.tools.pins[p.server], p.Tools)
	}
}

// recallListed finds what servers have said of themselves.
func (g *Gateway) recallListed() error {
	g.tools.listed = make(map[string][]byte)
	j := view.Journal{Local: g.cfg.World}
	for e, err := range j.OfCell(g.cell.String(), 0) {
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
	s.mu.Lock()
	delete(s.passed, m.key)
	s.mu.Unlock()
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
		Tools []json.RawMessage `json:"tools"`
	}
	_ = json.Unmarshal(result, &said) // of another form: it lists none
	out := make(map[string]string)
	for _, tool := range said.Tools {
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(tool, &named) != nil || named.Name == "" {
			continue
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
	}
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
	for name, hash := range listed { // order cannot show: a map is built from a map
		s.said[name], s.changed[name] = hash, slices.Contains(changed, name)
	}
	return changed
}

// pinned returns the hash of what the server says of a tool, and whether that is other than before.
func (s *mcpServer) pinned(tool string) (hash string, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said[tool], s.changed[tool]
}

// pin pins a tool as it is listed: a call of it was permitted.
func (s *mcpServer) pin(tool string) {
	s.mu.Lock()
	hash := s.said[tool]
	changed := s.changed[tool]
	s.changed[tool] = false
	s.mu.Unlock()
	if hash == "" || !changed {
		return
	}
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	s.g.tools.pins[s.name][tool] = hash
}
