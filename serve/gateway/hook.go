package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/outside"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// Bounds of tools.
const (
	toolHold = time.Hour // how long a hook waits for a person; worldctl has the agent wait longer
	maxHooks = 1_000     // that wait at once
	maxImage = 64 << 20  // bytes of a file whose digest says whether a tool has written it
)

// Hooks is where in the path of a gateway the hooks of its agent ask.
const Hooks = "hook"

// hooks is what a gateway knows of the agent's own tools. Gateway.mu guards it, but for open.
type hooks struct {
	calls                      // by digest of name and input
	open    atomic.Int64       // hooks that wait for an answer
	using   map[string]*using  // by id of the call: the tools of this incarnation
	given   map[string]*asking // likewise: those whose recorded results the model gets
	servers map[string]bool    // as in the names of tools: those whose calls come through the gateway
	called  map[string]string  // by the provider's id: the last call of that in an answer that was judged
	ran     map[string]*asking // likewise: of such calls, those that ran in an earlier incarnation, and have no result in a request yet
}

// hookCall is what an agent's hook says before and after a tool. Members as in
// https://code.claude.com/docs/en/hooks.
type hookCall struct {
	Event    string          `json:"hook_event_name"` // PreToolUse, PostToolUse or PostToolUseFailure
	ID       string          `json:"tool_use_id"`
	Name     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	Response json.RawMessage `json:"tool_response"`
	Error    string          `json:"error"`
	Dir      string          `json:"cwd"`
	Agent    string          `json:"agent_id"` // a sub-agent; empty: the agent itself

	answer   bool   // no hook asks: the call stands in an answer, and ID is the gateway's
	calledAs string // the provider's id of such a call
}

// using is a tool that the agent is about to run or runs, in this incarnation. Gateway.mu guards all but permit.
type using struct {
	*asking

	id        string // of the call
	tool      string
	arguments canon.Raw // that the agent runs it with

	answer bool // that has the call was judged, and no hook asks
	held   bool // the agent has not got the answer
	ran    bool // in an earlier incarnation; it does again, since the agent gets the recorded answer

	nonce   string        // of the hook that asked first: it may ask again, where its answer was lost
	known   chan struct{} // closed when asking is known, or it was dropped
	permit  chan struct{}
	results <-chan *recorder.ToolAnswer // closed without one: nobody will tell
	result  chan<- *recorder.ToolAnswer // the same; nil: it was told
}

// serveHook answers what an agent runs before and after its tools: with what it is to print, as JSON.
func (g *Gateway) serveHook(w http.ResponseWriter, r *http.Request) {
	var h hookCall
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err == nil {
		err = json.Unmarshal(body, &h)
	}
	if err == nil && (h.ID == "" || h.Name == "" || len(h.ID) > maxCallID || strings.Contains(h.ID, " ")) {
		err = errors.New("it names no tool_use_id and tool_name")
	}
	if err != nil {
		http.Error(w, "worldkernel: this is no call of a hook: "+err.Error(), http.StatusBadRequest)
		return
	}
	defer g.hooks.open.Add(-1)
	if g.hooks.open.Add(1) > maxHooks {
		http.Error(w, "worldkernel: too many tools at once", http.StatusServiceUnavailable)
		return
	}
	var denied string
	switch h.Event {
	case "PreToolUse":
		denied = g.before(r.Context(), &h, r.Header.Get("X-Nonce"))
	case "PostToolUse", "PostToolUseFailure":
		err = g.after(r.Context(), &h)
	}
	if err != nil {
		http.Error(w, "worldkernel: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	answer, verdict := map[string]any{}, "deny"
	if denied == deferred {
		verdict = "defer"
	}
	if denied != "" {
		answer["hookSpecificOutput"] = map[string]any{"hookEventName": h.Event, "permissionDecision": verdict, "permissionDecisionReason": "worldkernel: " + denied}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // who does not get it has the tool denied
}

// maxCallID bounds the ids of calls, which are in tags.
const maxCallID = 200

// deferred is why a tool is not to run before the agent is started again: it ends.
const deferred = "a person has to approve this, and the agent ends meanwhile"

// before has a tool judged, and returns why it is not to run; empty: it may.
func (g *Gateway) before(ctx context.Context, h *hookCall, nonce string) (denied string) {
	if g.judgedElsewhere(h.Name) {
		return ""
	} else if g.cfg.Recalls {
		return g.ranBefore(h.ID)
	}
	u, denied, err := g.useOf(ctx, h, nonce)
	if err != nil {
		return "the world does not take it: " + err.Error()
	}
	if u == nil {
		return denied
	}
	hold, defers := toolHold, g.cfg.Defer > 0 && h.Agent == "" // an agent goes on without its sub-agent
	if defers {
		hold = g.cfg.Defer
	}
	v := g.awaitPermit(u, time.Now(), hold, ctx.Done())
	switch {
	case v.left:
		g.leaveUse(u)
		return "the hook ended"
	case v.waits != nil && defers:
		g.count(func(s *Summary) { s.Deferred = append(s.Deferred, v.waits.Intent.Key) })
		return deferred
	case v.waits != nil:
		return "a person has to approve this: " + g.typed("intent approve", v.waits) + "; then call the tool again, with the same input"
	}
	return v.denied
}

// verdict is what became of a use; the zero value: it is permitted.
type verdict struct {
	denied string
	left   bool           // nobody waits for it any more
	waits  *receipt.Entry // for a person, for too long
}

// awaitPermit waits until a use is permitted, or is not. Who waits for it may go: of an answer only while a person has to decide.
func (g *Gateway) awaitPermit(u *using, begun time.Time, hold time.Duration, gone <-chan struct{}) verdict {
	for {
		e, news, err := g.standing(u.asking)
		left := gone
		switch {
		case err != nil:
			return verdict{denied: "the journal cannot be read: " + err.Error()}
		case over(&e):
			return verdict{denied: g.notRun(u, &e)}
		case e.State.AwaitsPerson() && (g.cfg.Offline || time.Since(begun) >= hold) && (u.answer || g.leaveUse(u)):
			return verdict{waits: &e}
		case g.cfg.Offline: // its permit is the last of it that is on record
			return verdict{}
		case u.answer && !e.State.AwaitsPerson():
			left = nil
		}
		select {
		case <-u.permit:
			return verdict{}
		case <-news:
		case <-time.After(min(pingTime, hold)): // a person is waited for in no record
		case <-left:
			return verdict{left: true}
		case <-g.life.Done():
			return verdict{left: true}
		}
	}
}

// useOf returns the use that a hook asks for. It is nil where the record decides: then the tool is denied.
func (g *Gateway) useOf(ctx context.Context, h *hookCall, nonce string) (u *using, denied string, err error) {
	arguments, err := canon.FromJSON(orNull(h.Input))
	if err != nil {
		return nil, "", err
	}
	before := digestOf(h)
	results := make(chan *recorder.ToolAnswer, 1)
	u = &using{
		id: h.ID, tool: h.Name, arguments: arguments, answer: h.answer, held: true,
		nonce: nonce, known: make(chan struct{}), permit: make(chan struct{}), results: results, result: results,
	}
	if other, denied := g.use(ctx, u); other != u {
		return other, denied, nil
	}
	defer close(u.known)
	if u.asking != nil && u.served {
		if denied, err = g.recalled(h, u, before); denied != "" || err != nil || u.ran {
			g.drop(u)
			return nil, denied, err
		}
		u.asking = nil
	}
	switch {
	case g.cfg.Offline && u.answer && u.asking != nil:
		return u, "", nil
	case g.cfg.Offline:
		g.drop(u)
		if u.answer { // the record has no such call where none was judged
			return nil, "", nil
		}
		return nil, g.missedTool(h), nil
	}
	return u, "", g.submitUse(context.WithoutCancel(ctx), h, u, before)
}

// use notes a use and finds its call, and returns the use. Where a hook has asked for that of this id before it returns the use of that
// hook, once its call is known; nil: it is another hook's.
func (g *Gateway) use(ctx context.Context, u *using) (of *using, denied string) {
	for {
		g.mu.Lock()
		other := g.hooks.using[u.id]
		if other == nil {
			g.summary.ToolRequests++
			g.hooks.using[u.id] = u
			u.asking, _ = g.find(&g.hooks.calls, u.input(), u.id, false)
			g.mu.Unlock()
			return u, ""
		}
		again := other.answer || u.nonce != "" && u.nonce == other.nonce && other.result != nil
		g.mu.Unlock()
		if !again {
			return nil, "a call of this id " + other.stands()
		}
		select {
		case <-other.known:
		case <-ctx.Done():
			return nil, "the hook ended"
		}
		g.mu.Lock()
		there := g.hooks.using[u.id] == other
		g.mu.Unlock()
		if there {
			return other, ""
		}
	}
}

// input returns what equal uses have in common. Those that answers ask for have ids that tell them apart also when they wait.
func (u *using) input() string {
	if u.answer {
		return digest(u.tool, string(u.arguments), u.id)
	}
	return digest(u.tool, string(u.arguments))
}

// stands says how a use stands that another hook has asked for.
func (u *using) stands() string {
	if isClosed(u.permit) {
		return "was permitted already"
	}
	return "waits already, for another hook"
}

// submitUse has the gate judge a use, or lets it take the place of an intent that waits.
func (g *Gateway) submitUse(ctx context.Context, h *hookCall, u *using, before string) (err error) {
	waits := u.asking != nil
	if !waits {
		g.mu.Lock()
		u.asking = g.add(&g.hooks.calls, u.input(), u.id)
		g.mu.Unlock()
	}
	g.cfg.Tools.Put(g.caller(u.tag), &outside.Caller{Perform: u.perform})
	if !waits {
		ask := recorder.ToolRequest{
			Ask: u.tag, Incarnation: g.incarnation, Principal: g.cfg.Principal, ToolUseID: u.id, Tool: u.tool, Arguments: u.arguments, Before: before,
		}
		if u.answer {
			ask.ToolUseID = shorten(h.calledAs, maxCallID)
		}
		err = g.submit(ctx, recorder.Called, ask)
	} else if !g.hasID(u.asking, u.id) {
		err = g.submit(ctx, recorder.Joined, recorder.Joining{Ask: u.tag, ID: u.id})
	}
	if err != nil {
		g.cfg.Tools.Take(g.caller(u.tag))
		g.drop(u)
	}
	return err
}

// judgedElsewhere reports whether a tool is one of a server whose calls come through the gateway.
func (g *Gateway) judgedElsewhere(name string) bool {
	server, ok := strings.CutPrefix(name, "mcp__")
	server, _, called := strings.Cut(strings.Replace(server, ".", "__", 1), "__") // of Codex a namespace and a name
	g.mu.Lock()
	defer g.mu.Unlock()
	return ok && called && g.hooks.servers[server]
}

// serverInTools matches what the names of tools do not have of their servers' names.
var serverInTools = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// drop forgets a use that was not begun. The agent may ask for it again.
func (g *Gateway) drop(u *using) {
	g.mu.Lock()
	if g.hooks.using[u.id] == u {
		delete(g.hooks.using, u.id)
	}
	g.mu.Unlock()
	if u.asking != nil {
		g.leave(u.asking, false, false)
	}
}

// leaveUse lets a use that waits for a person be joined, since its hook goes. False: its permit is on its way.
func (g *Gateway) leaveUse(u *using) (left bool) {
	if left = g.cfg.Tools.Take(g.caller(u.tag)) != nil; left {
		g.drop(u)
	}
	return left
}

// notRun says why a use that is over was not permitted.
func (g *Gateway) notRun(u *using, e *receipt.Entry) string {
	if isClosed(u.permit) {
		return "" // a quick tool: it has ended already
	}
	g.cfg.Tools.Take(g.caller(u.tag))
	_, ended, err := answerOf[recorder.ToolAnswer](g, e)
	reason := ended.String()
	if err != nil {
		reason = err.Error()
	}
	if e.State == receipt.StateDenied {
		g.count(func(s *Summary) { s.Denied++ })
		return "denied: " + reason
	}
	return "not permitted: " + cmp.Or(reason, string(e.State))
}

// errNobodyTells says that an agent has ended while it ran a tool.
var errNobodyTells = errors.New("gateway: the agent ended before it said what came of the tool: it may have run, in part or whole")

// errOther says that a person has approved something else than what the agent is about to run.
var errOther = errors.New("the agent is about to run the tool with other arguments than were approved")

// perform permits a use, and waits for what the agent says that came of it. What runs is what was judged.
func (u *using) perform(ctx context.Context, judged *recorder.ToolRequest, _ string) (host.Result, error) {
	if judged.Tool != u.tool || !bytes.Equal(judged.Arguments, u.arguments) {
		return host.Refused(errOther), nil
	}
	close(u.permit)
	select {
	case r, told := <-u.results:
		if !told {
			return host.Result{}, errNobodyTells
		} else if len(r.Result) == 0 {
			return host.Refused(errors.New(r.Text)), nil
		}
		payload, err := canon.Marshal(r)
		out := host.Result{Status: receipt.StatusOK, Payload: payload, Exact: true}
		if r.IsError {
			out.Status = receipt.StatusError
		}
		return out, err
	case <-ctx.Done():
		return host.Result{}, context.Cause(ctx)
	}
}

// after notes what came of a tool, and waits until that is durable.
func (g *Gateway) after(ctx context.Context, h *hookCall) error {
	answer := &recorder.ToolAnswer{Result: orNull(h.Response), IsError: h.Event == "PostToolUseFailure"}
	if answer.IsError {
		answer.Result, _ = json.Marshal(h.Error)
	}
	u := g.tell(h.ID, answer)
	for u != nil {
		e, news, err := g.standing(u.asking)
		if err != nil || over(&e) {
			return err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// tell hands on what came of a use, and returns it; nil: nobody waits for that.
func (g *Gateway) tell(id string, r *recorder.ToolAnswer) *using {
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.hooks.using[id]
	if u == nil || u.result == nil || !isClosed(u.permit) {
		return nil
	}
	u.result <- r
	u.result = nil
	g.summary.ToolCalls++
	return u
}
