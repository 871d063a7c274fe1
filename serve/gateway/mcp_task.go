package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// A client that knows tasks need not wait for a person: the answer to its call is a task, of which it asks what became. In the
// protocol of 2025-11-25 the client says in each call that it wants a task; so the gateway says of all tools that they can be
// tasks. In that of 2026-07-28 the gateway decides, and makes a task of what waits for longer than the client does. What the
// eras write differently is where a call is stateless. The id of a task is made of the key of its intent, so a repeated call has
// the same task. A server that has tasks of its own keeps them: then the gateway makes none.

const (
	taskPrefix    = "worldkernel-task-"
	taskExtension = "io.modelcontextprotocol/tasks"
	taskRelated   = "io.modelcontextprotocol/related-task"
	taskMethods   = "tasks/"
	methodTasks   = "tasks/list"
	methodResult  = "tasks/result"
	taskPoll      = time.Second // between two questions of a client
	maxTasks      = 1000        // that clients may ask about
	complete      = `{"resultType":"complete"}`
	taskSupport   = `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`
)

// task is a call of a tool whose client asks what became of it.
type task struct {
	id        string
	call      *toolCall
	begun     time.Time
	cancelled bool // by its client, for good
}

// with returns an object with another value at a path.
func with(object, value json.RawMessage, path ...string) json.RawMessage {
	fields := make(map[string]json.RawMessage)
	if json.Unmarshal(object, &fields) != nil || fields == nil { // of another form: it is made anew
		fields = make(map[string]json.RawMessage)
	}
	if len(path) > 1 {
		value = with(fields[path[0]], value, path[1:]...)
	}
	fields[path[0]] = value
	return encoded(fields)
}

// addTasks has what a server says of itself say that its calls can be tasks, where the client knows these.
func (s *mcpServer) addTasks(asked, m *mcpMessage) {
	var said struct {
		Capabilities json.RawMessage              `json:"capabilities"`
		Tools        []map[string]json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(m.result, &said) != nil {
		return
	}
	client := asked.clientSays()
	knows := readCapabilities(client.Capabilities).tasks || readCapabilities(client.Meta.Capabilities).tasks
	s.mu.Lock()
	if asked.method == methodInitialize || asked.method == methodDiscover {
		s.described, s.ownTasks = true, readCapabilities(said.Capabilities).tasks
	} else {
		knows = s.can[asked.session].tasks
	}
	knows = knows && !s.ownTasks
	s.mu.Unlock()
	switch {
	case !knows:
		return
	case asked.method == methodInitialize:
		m.result = with(m.result, json.RawMessage(taskSupport), "capabilities", "tasks")
	case asked.method == methodDiscover:
		m.result = with(m.result, json.RawMessage("{}"), "capabilities", "extensions", taskExtension)
	case asked.method == methodTools:
		for _, tool := range said.Tools {
			if tool != nil { // else the server has listed null
				tool["execution"] = with(tool["execution"], quoted("optional"), "taskSupport")
			}
		}
		m.result = with(m.result, encoded(said.Tools), "tools")
	default:
		return
	}
	m.line, m.changed = response(m.id, "result", m.result), true
}

// givesTasks reports whether calls can be tasks of the gateway's. Can are the capabilities that a call without a session
// names; nil: those of the session's client count.
func (s *mcpServer) givesTasks(can json.RawMessage, session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	knows := s.can[session].tasks
	if can != nil {
		knows = readCapabilities(can).tasks
	}
	return knows && !s.ownTasks
}

// hasRoom reports whether there may be another task. Where there are many, what has ended and was told so is forgotten.
func (g *Gateway) hasRoom() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.tools.tasks) >= maxTasks {
		maps.DeleteFunc(g.tools.tasks, func(_ string, t *task) bool { return t.cancelled || t.call.asking.served })
	}
	return len(g.tools.tasks) < maxTasks
}

// newTask returns the answer to a call that is a task from now on.
func (c *toolCall) newTask(e *receipt.Entry) []byte {
	g := c.server.g
	if e.State.AwaitsPerson() {
		g.leave(c.asking, false, false)
	}
	t := task{id: taskPrefix + e.Intent.Key.String(), call: c, begun: time.Now()}
	g.mu.Lock()
	if before := g.tools.tasks[t.id]; before != nil {
		t.begun, t.cancelled = before.begun, before.cancelled
	}
	g.tools.tasks[t.id] = &t
	g.mu.Unlock()
	object := t.object(c, "working", c.waits(e))
	if c.stateless() {
		return c.result(with(object, quoted("task"), "resultType"))
	}
	return c.result(with(nil, object, "task"))
}

// waits says for whom a call waits; empty: for nobody.
func (c *toolCall) waits(e *receipt.Entry) string {
	if !e.State.AwaitsPerson() {
		return ""
	}
	return "waits for a person: " + c.server.g.typed("intent approve", e)
}

// object returns a task as the client of a request reads it.
func (t *task) object(c *toolCall, status, message string) json.RawMessage {
	ttl, poll := "ttl", "pollInterval"
	if c.stateless() {
		ttl, poll = "ttlMs", "pollIntervalMs"
	}
	fields := map[string]any{
		"taskId": t.id, "status": status, "createdAt": t.begun.UTC().Format(time.RFC3339), "lastUpdatedAt": time.Now().UTC().Format(time.RFC3339),
		ttl: nil, poll: taskPoll.Milliseconds(),
	}
	if message != "" {
		fields["statusMessage"] = message
	}
	return encoded(fields)
}

// asksTask reports whether a request is about tasks that are the gateway's: any may be where the server has said that it has none, but
// for what only the protocol with sessions has.
func (s *mcpServer) asksTask(m *mcpMessage) (c *toolCall, id string) {
	var params struct {
		ID   string                     `json:"taskId"`
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if !strings.HasPrefix(m.method, taskMethods) {
		return nil, ""
	}
	_ = json.Unmarshal(m.params, &params) // a list has none, and of another form they name no task
	gives := s.givesTasks(params.Meta[metaClient], m.session)
	s.mu.Lock()
	gives = gives && s.described
	s.mu.Unlock()
	call := &mcpCall{meta: params.Meta}
	ofSessions := m.method == methodTasks || m.method == methodResult
	if !gives && !strings.HasPrefix(params.ID, taskPrefix) || ofSessions && call.stateless() {
		return nil, ""
	}
	return s.callOf(m, call), params.ID
}

// serveTask answers a request about tasks; nil: its client has gone.
func (c *toolCall) serveTask(id string) []byte {
	if refused := c.server.take(c.request); refused != nil {
		return refused
	}
	defer c.leave()
	method := c.request.method
	t, is := c.server.task(id)
	if !is && method != methodTasks {
		return c.noTask()
	}
	switch method {
	case methodTasks:
		return c.listTasks()
	case taskMethods + "get":
		return c.result(t.now(c))
	case methodResult:
		return c.awaitTask(id)
	case taskMethods + "cancel":
		return t.end(c)
	case taskMethods + "update": // no task asks for anything
		return c.result([]byte(complete))
	}
	return fault(c.request.id, codeMethod, "worldkernel: there is no such method of a task")
}

func (c *toolCall) noTask() []byte {
	return fault(c.request.id, codeParams, "worldkernel: there is no such task")
}

// task returns a task of the server's tools as it is now.
func (s *mcpServer) task(id string) (t task, is bool) {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	if of := s.g.tools.tasks[id]; of != nil && of.call.server.name == s.name {
		return *of, true
	}
	return t, false
}

// listTasks answers with all tasks of the server's tools.
func (c *toolCall) listTasks() []byte {
	s := c.server
	s.g.mu.Lock()
	var all []task
	for _, t := range s.g.tools.tasks { // order cannot show: sorted below
		if t.call.server.name == s.name {
			all = append(all, *t)
		}
	}
	s.g.mu.Unlock()
	slices.SortFunc(all, func(a, b task) int { return cmp.Or(a.begun.Compare(b.begun), strings.Compare(a.id, b.id)) })
	list := make([]json.RawMessage, len(all))
	for i := range all {
		list[i] = all[i].now(c)
	}
	return c.result(with(nil, encoded(list), "tasks"))
}

// stands returns how the call of a task stands, the answer to it once there is one, and what is closed when that may be otherwise.
func (t *task) stands(c *toolCall) (e receipt.Entry, ended *mcpMessage, news <-chan struct{}) {
	c.asking, c.tool, c.hash = t.call.asking, t.call.tool, t.call.hash
	e, news, err := c.server.g.standing(c.asking)
	switch {
	case err != nil:
		ended, _ = readServer(fault(c.request.id, codeInternal, "worldkernel: the journal cannot be read: "+err.Error()))
	case over(&e) && !t.cancelled:
		ended, _ = readServer(c.finish(&e))
	}
	return e, ended, news
}

// now returns a task as the client of a request reads it.
func (t *task) now(c *toolCall) (object json.RawMessage) {
	e, ended, _ := t.stands(c)
	switch {
	case t.cancelled:
		object = t.object(c, "cancelled", "its client has cancelled it")
	case ended == nil:
		object = t.object(c, "working", c.waits(&e))
	default:
		status := "completed"
		if _, failed := readable(ended.result); ended.result == nil || failed && !c.stateless() {
			status = "failed"
		}
		object = t.object(c, status, "")
		if c.stateless() && ended.result != nil {
			object = with(object, ended.result, "result")
		} else if c.stateless() {
			object = with(object, ended.fault, "error")
		}
	}
	if c.stateless() {
		object = with(object, quoted("complete"), "resultType")
	}
	return object
}

// awaitTask waits until the call of a task has come to its end, and returns the answer to it.
func (c *toolCall) awaitTask(id string) []byte {
	for {
		t, is := c.server.task(id)
		if !is { // it was forgotten meanwhile
			return c.noTask()
		}
		_, ended, news := t.stands(c)
		switch {
		case t.cancelled:
			return fault(c.request.id, codeRequest, "worldkernel: the task was cancelled")
		case ended != nil && ended.result != nil:
			return c.result(with(ended.result, quoted(id), "_meta", taskRelated, "taskId"))
		case ended != nil:
			return ended.line
		}
		select {
		case <-news:
		case <-c.off:
			return nil
		case <-c.left:
			return nil
		case <-c.server.gone.Done():
			return nil
		}
	}
}

// end cancels a task. What waits for a person is denied, and the server of what is made is told that nobody wants its answer.
func (t *task) end(c *toolCall) []byte {
	g := c.server.g
	e, ended, _ := t.stands(c)
	if ended != nil || t.cancelled {
		return fault(c.request.id, codeParams, "worldkernel: the task has ended")
	}
	g.mu.Lock()
	if of := g.tools.tasks[t.id]; of != nil { // else it was forgotten meanwhile
		of.cancelled = true
	}
	ring(&c.asking.news)
	g.mu.Unlock()
	t.call.cancel()
	g.cfg.Tools.Take(g.caller(c.asking.tag)) // what is approved all the same is not made
	g.leave(c.asking, false, true)
	if e.State == receipt.StateAwaitingApproval {
		_ = g.cfg.World.Decide(context.WithoutCancel(c.server.gone), &journal.Resolved{
			Key: e.Intent.Key, How: journal.Disapprove, Params: e.Params, Actor: g.cfg.Principal, Reason: "its client has cancelled the call",
		}, &e) // where that takes more than a name, a person does it
	}
	if c.stateless() {
		return c.result([]byte(complete))
	}
	t.cancelled = true
	return c.result(t.now(c))
}
