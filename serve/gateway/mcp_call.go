package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/outside"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/show/view"
)

const (
	progressTime = 15 * time.Second // between two signs of life of a call that waits for a person
	firstID      = 1_000_000_000    // of the lines to a server that are calls: clients count from 0
	maxText      = 2_000            // bytes of what people read of a result
	maxArguments = 4 << 20          // bytes of a call's arguments
	keyMeta      = "worldkernel/idempotency-key"
)

// toolCall is a call of a tool that waits for its answer.
type toolCall struct {
	*mcpCall
	server  *mcpServer
	request *mcpMessage
	off     chan struct{}   // closed when the client takes it back
	cancel  func()          // closes it
	left    <-chan struct{} // closed when nobody waits for the answer any more; nil: that is when the server has gone
	unput   func() bool     // once it was handed in: see put
	asking  *asking
	hash    string          // of what the server said of the tool when it was called
	changed bool            // that is other than before
	offered json.RawMessage // the id of an offer that its client got; nil: it got none

	toClient func(line []byte)
	// toServer sends a line, which is answered under an id; empty: it is a notification. False: the server has gone.
	toServer func(ctx context.Context, id string, line []byte) bool
}

// begin begins a call.
func (s *mcpServer) begin(m *mcpMessage) {
	if m.id == nil {
		return // nobody could hear what came of it
	}
	c, refused := s.newCall(m)
	if c == nil {
		s.toClient(refused)
		return
	}
	c.toClient = s.toClient
	c.toServer = func(_ context.Context, _ string, line []byte) bool { return s.out.frame(frameServer, line) }
	s.work.Go(func() {
		if answer := c.serve(); answer != nil {
			s.toClient(answer)
		}
	})
}

// newCall reads a call of a tool. It returns the answer to what is none.
func (s *mcpServer) newCall(m *mcpMessage) (c *toolCall, refused []byte) {
	params, err := readCall(s.name, m.params, s.givesTasks(nil, m.session))
	switch {
	case m.method != methodCall:
		err = fmt.Errorf("%w: want the method %q, not %.50q", errMessage, methodCall, m.method)
	case err == nil && len(params.arguments)+len(params.more) > maxArguments:
		err = fmt.Errorf("%w: the arguments are larger than %d bytes", errMessage, maxArguments)
	}
	if err != nil {
		return nil, fault(m.id, codeRequest, "worldkernel: "+err.Error())
	}
	if params.task && !s.g.hasRoom() {
		return nil, fault(m.id, codeInternal, fmt.Sprintf("worldkernel: more than %d tasks at once: ask what became of them, or cancel some", maxTasks))
	}
	s.meet(m)
	c = s.callOf(m, params)
	c.hash, c.changed = s.pinned(c.tool)
	if refused = s.take(m); refused != nil {
		return nil, refused
	}
	return c, nil
}

// callOf returns what answers a request.
func (s *mcpServer) callOf(m *mcpMessage, params *mcpCall) *toolCall {
	c := &toolCall{mcpCall: params, server: s, request: m, off: make(chan struct{})}
	c.cancel = sync.OnceFunc(func() { close(c.off) })
	m.call = c
	return c
}

// result returns the answer to a call.
func (c *toolCall) result(result []byte) []byte { return response(c.request.id, "result", result) }

// refused returns an answer of the gateway's own to a call.
func (c *toolCall) refused(text string) []byte {
	return c.result(toolError("worldkernel: "+text, c.stateless()))
}

// serve sees a call to its end, and returns the answer; nil: the client has gone.
func (c *toolCall) serve() []byte {
	s, g := c.server, c.server.g
	defer c.leave()
	a, is := g.matchTool(c)
	c.asking = a
	var err error
	switch is {
	case fresh:
		err = c.ask()
	case recorded:
		err = g.submitServed(context.WithoutCancel(s.gone), a)
	case waiting, joined:
		c.put()
	case missed:
		return c.refused("this call was never made before, and only the record answers: the agent does something else than what is on record")
	case beside: // of requests only
	}
	if err != nil {
		g.leave(a, false, true)
		return c.refused("the world does not take the call, and it was not made: " + err.Error())
	}
	return c.await()
}

// leave forgets a call that is answered, or whose client has gone.
func (c *toolCall) leave() {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	delete(c.server.asked, c.request.key)
}

// ask makes an event of the call.
func (c *toolCall) ask() error {
	s, g := c.server, c.server.g
	asked := recorder.ToolRequest{
		Ask: c.asking.tag, Incarnation: g.incarnation, Principal: g.cfg.Principal, Server: s.name, Tool: c.tool, Arguments: c.judged, More: c.more,
		ToolUseID: c.use, ToolHash: c.hash, ToolChanged: c.changed,
	}
	c.put()
	err := g.submit(context.WithoutCancel(s.gone), recorder.Called, asked)
	if err != nil {
		g.cfg.Tools.Take(g.caller(asked.Ask))
	}
	return err
}

// put hands the call in, for whoever has the permit. It waits there until the server has gone, though the client may
// be told to call again: what a person approves meanwhile is made.
func (c *toolCall) put() {
	g := c.server.g
	id := g.caller(c.asking.tag)
	g.cfg.Tools.Put(id, &outside.Caller{Perform: c.perform})
	c.unput = context.AfterFunc(c.server.gone, func() { g.cfg.Tools.Take(id) })
}

// await waits until a call has come to its end, or its client does not wait any more.
func (c *toolCall) await() []byte {
	s, g, a := c.server, c.server.g, c.asking
	begun, signs, offered := time.Now(), 0, c.told
	defer c.unoffer()
	alive := time.NewTicker(progressTime)
	defer alive.Stop()
	hold := s.hold
	if hold == 0 {
		s.mu.Lock()
		hold = holdOf(s.client)
		s.mu.Unlock()
	}
	late := time.NewTimer(hold)
	defer late.Stop()
	for {
		e, news, err := g.standing(a)
		switch {
		case err != nil:
			g.leave(a, false, true)
			return c.refused("the journal cannot be read: " + err.Error())
		case c.task && e.State != "":
			return c.newTask(&e)
		case over(&e):
			return c.finish(&e)
		case e.State.AwaitsPerson() && !offered:
			if answer := c.offer(&e); answer != nil {
				g.leave(a, false, false)
				return answer
			}
			offered = true
			continue
		case e.State.AwaitsPerson() && time.Since(begun) >= hold && c.stateless() && s.givesTasks(orNull(c.meta[metaClient]), c.request.session) && g.hasRoom():
			return c.newTask(&e)
		case e.State.AwaitsPerson() && time.Since(begun) >= hold:
			g.leave(a, false, false)
			return c.refused("a person has to approve this call, and it was not made yet: " + g.typed("intent approve", &e) + "; then call it again, with the same arguments")
		}
		select {
		case <-news:
		case <-late.C:
		case <-alive.C:
			if token := c.meta["progressToken"]; token != nil && e.State.AwaitsPerson() {
				signs++
				c.toClient(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s,"message":%s}}`,
					token, strconv.FormatFloat(float64(signs)/1e6, 'f', 6, 64), quoted(c.waits(&e))))
			}
		case <-c.off:
			if e.State.AwaitsPerson() || e.State == receipt.StateOpen || e.State == "" { // a permit on its way finds nobody, and makes nothing
				g.cfg.Tools.Take(g.caller(a.tag))
			}
			g.leave(a, false, false)
			return nil
		case <-c.left:
			g.leave(a, false, false)
			return nil
		case <-s.gone.Done():
			g.leave(a, false, false)
			return nil
		}
	}
}

// typed returns what a person types about an intent, wherever they are.
func (g *Gateway) typed(verb string, e *receipt.Entry) string {
	dir, err := filepath.Abs(g.cfg.World.Dir())
	if err != nil || strings.ContainsAny(dir, " '\"$`\\") {
		dir = "DIR"
	}
	return "worldctl -w " + dir + " " + verb + " " + view.Short(e.Intent.Key)
}

// finish returns the answer to a call that has come to its end.
func (c *toolCall) finish(e *receipt.Entry) []byte {
	g, a := c.server.g, c.asking
	if c.unput != nil {
		c.unput()
		g.cfg.Tools.Take(g.caller(a.tag)) // what was denied never had a permit
	}
	answer, ended, err := answerOf[recorder.ToolAnswer](g, e)
	reason := ended.String()
	doubt, made := answer == nil && doubtful(e), answer == nil && e.State == receipt.StateCommitted
	if e.State == receipt.StateInDoubt { // nothing has come of it yet
		reason = "the server has not answered"
	}
	g.countOnce(a, func(s *Summary) {
		switch {
		case a.served:
		case e.State == receipt.StateDenied:
			s.Denied++
		case doubt:
			s.InDoubt++
		case answer == nil:
			s.Failed++
		default:
			s.ToolCalls++
		}
	})
	g.leave(a, err == nil, answer == nil && !doubt && !made && e.State != receipt.StateDenied)
	switch {
	case err != nil:
		return c.refused("what came of the call cannot be read: " + err.Error())
	case e.State == receipt.StateDenied:
		return c.refused("this call was denied, and not made: " + reason + ". Do something else; " + g.typed("intent show", e) + " has all about it")
	case doubt:
		return c.refused("nobody can tell whether this call was made: " + reason + ". It is in doubt, and not made again by itself. " +
			"See what it has left before you call it anew; " + g.typed("intent show", e) + " has all about it")
	case made:
		return c.refused("this call was made, and its result is not on record: " + reason)
	case answer == nil:
		return c.refused("this call was not made: " + reason)
	case len(answer.Error) > 0:
		return response(c.request.id, "error", answer.Error)
	}
	if e.State == receipt.StateCommitted {
		c.pin()
	}
	return c.result(answer.Result)
}

// errServer says that the server has gone before it has answered.
var errServer = errors.New("gateway: the server has not answered")

// perform makes a call: its line passes to the server, and what answers it is the result.
func (c *toolCall) perform(ctx context.Context, judged *recorder.ToolRequest, key string) (host.Result, error) {
	s := c.server
	s.g.makes(1)
	defer s.g.makes(-1)
	if err := s.closed(); err != nil {
		return host.Refused(err), nil
	}
	arguments := []byte(c.arguments)
	if !bytes.Equal(judged.Arguments, c.judged) {
		text, err := canon.ToJSON(judged.Arguments)
		if err != nil {
			return host.Refused(err), nil
		}
		arguments = text
	}
	reply := make(chan *mcpReply, 1)
	s.mu.Lock()
	s.number++
	id := strconv.FormatInt(s.number, 10)
	s.running["n"+id] = reply
	s.mu.Unlock()
	line, err := c.line(id, judged, arguments, key)
	if err != nil {
		return host.Refused(err), nil
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	if !c.toServer(ctx, id, line) { // something of it may have left
		return host.Result{}, s.closed()
	}
	cancelled := c.off
	var late <-chan time.Time
	for {
		select {
		case r := <-reply:
			return answered(r, len(arguments))
		case <-s.gone.Done():
			return host.Result{}, fmt.Errorf("%w: %w", errServer, context.Cause(s.gone))
		case <-late:
			return host.Result{}, fmt.Errorf("%w: the client has cancelled the call", errServer)
		case <-ctx.Done():
			c.unwanted(ctx, id)
			return host.Result{}, fmt.Errorf("%w: %w", errServer, ctx.Err())
		case <-cancelled:
			c.unwanted(ctx, id)
			cancelled, late = nil, time.After(cancelGrace)
		}
	}
}

// unwanted tells the server that nobody wants the answer to a call any more.
func (c *toolCall) unwanted(ctx context.Context, id string) {
	c.toServer(ctx, "", fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"requestId":%s}}`, methodCancelled, id))
}

// line writes the line of a call.
func (c *toolCall) line(id string, judged *recorder.ToolRequest, arguments []byte, key string) ([]byte, error) {
	params := make(map[string]json.RawMessage)
	if len(judged.More) > 0 {
		if err := json.Unmarshal(judged.More, &params); err != nil {
			return nil, err
		}
	}
	meta := make(map[string]json.RawMessage, len(c.meta)+1)
	for name, value := range c.meta { // order cannot show: a map is built from a map
		meta[name] = value
	}
	meta[keyMeta] = quoted(key)
	params["_meta"], params["name"], params["arguments"] = encoded(meta), quoted(judged.Tool), arguments
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, methodCall, encoded(params)), nil
}

// answered is the result of a call that the server has answered.
func answered(r *mcpReply, sent int) (host.Result, error) {
	out := host.Result{Status: receipt.StatusOK, Exact: true}
	var answer recorder.ToolAnswer
	switch {
	case r.unmade:
		return host.Refused(r.err), nil
	case r.err != nil:
		return host.Result{}, fmt.Errorf("%w: %w", errServer, r.err)
	case r.large: // the tool did its work
		answer.Error = fmt.Appendf(nil, `{"code":%d,"message":"worldkernel: the tool did its work, and its answer is larger than %d bytes"}`, codeInternal, maxLine)
		out.Status, out.Class = receipt.StatusError, receipt.OutcomeCompensatable
	case r.result != nil:
		answer.Result = r.result
		answer.Text, answer.IsError = readable(r.result)
		if answer.IsError {
			out.Status = receipt.StatusError
		}
	case r.fault != nil:
		answer.Error = r.fault
		out.Status = receipt.StatusError
	default:
		return host.Result{}, fmt.Errorf("%w: its response has neither a result nor an error", errServer)
	}
	out.Cost.Bytes = uint64(sent + len(answer.Result) + len(answer.Error)) //nolint:gosec // lengths
	payload, err := canon.Marshal(answer)
	out.Payload = payload
	return out, err
}
