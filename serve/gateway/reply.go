package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// reply is what goes to the agent. It is safe for concurrent use: the provider's answer flows from another goroutine
// than that of the request.
type reply struct {
	mu     sync.Mutex
	w      http.ResponseWriter // nil: the agent has gone
	stream bool                // the agent has asked for one
	begun  bool                // the header was sent
	flowed int                 // bytes of the answer that were sent
	broken bool                // it cannot be written any more
}

func newReply(w http.ResponseWriter, stream bool) *reply { return &reply{w: w, stream: stream} }

// beginReply is told how the provider answers. A stream begins at once.
func (o *reply) beginReply(status int, header http.Header) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil || o.begun || status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		return
	}
	for name, values := range header {
		if !relay.OfTheHop(name) && name != "Set-Cookie" {
			o.w.Header()[name] = values
		}
	}
	o.start(status)
	o.send(nil)
}

func (o *reply) start(status int) {
	o.begun = true
	o.w.WriteHeader(status)
}

// flow sends what the agent may have at once.
func (o *reply) flow(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w != nil && o.begun {
		o.send(p)
		o.flowed += len(p)
	}
}

func (o *reply) send(p []byte) {
	o.write(p)
	_ = http.NewResponseController(o.w).Flush() // what is broken shows when it is written to
}

func (o *reply) write(p []byte) {
	if _, err := o.w.Write(p); err != nil {
		o.broken = true
	}
}

// ping shows that a stream lives while it is held. One that has not begun does so where it waits for a person.
func (o *reply) ping(dialect string, begin bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil || !o.stream || !o.begun && !begin {
		return
	}
	if !o.begun {
		o.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		o.start(http.StatusOK)
	}
	if dialect == relay.Anthropic {
		o.send([]byte("event: ping\ndata: {\"type\": \"ping\"}\n\n"))
	} else {
		o.send([]byte(": held\n\n"))
	}
}

// detach lets the agent go.
func (o *reply) detach() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = nil
}

// finish sends the rest of a recorded answer, and reports whether the agent got all of it. An answer that was cut
// off ends as it came: without an end.
func (o *reply) finish(a *recorder.Answer) (delivered bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil || a.Cut {
		return false
	}
	o.begin(a)
	o.write(a.Body[min(o.flowed, len(a.Body)):]) // whoever serves the request ends it, and then the agent may ask again
	return !o.broken
}

// catchUp sends an answer, which is a stream, up to a byte that the agent may have before the rest is judged.
func (o *reply) catchUp(a *recorder.Answer, upTo int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil || upTo <= o.flowed {
		return
	}
	o.begin(a)
	o.send(a.Body[o.flowed:upTo])
	o.flowed = upTo
}

// begin sends the header of a recorded answer, unless that was done.
func (o *reply) begin(a *recorder.Answer) {
	if !o.begun {
		for name, value := range a.Header {
			o.w.Header().Set(name, value)
		}
		o.start(a.Status)
	}
}

// refusal is an answer of the gateway's own.
type refusal struct {
	status int
	text   string
	final  bool // asking again changes nothing
	joins  bool // who asks again gets what was asked for
	budget bool // has not enough left
}

// refuse answers with a refusal in the shape of the dialect.
func (c *conversation) refuse(w http.ResponseWriter, no refusal) {
	newReply(w, false).refuse(c, no)
}

func (o *reply) refuse(c *conversation, no refusal) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil {
		return
	}
	body := c.errorBody(no)
	if o.begun { // as a stream: its status was sent
		if c.dialect == relay.Anthropic {
			body = append([]byte("event: error\n"), "data: "+string(body)+"\n\n"...)
		} else {
			body = []byte("data: " + string(body) + "\n\n")
		}
		o.send(body)
		return
	}
	o.w.Header().Set("Content-Type", "application/json")
	if no.final {
		o.w.Header().Set("X-Should-Retry", "false")
	}
	o.start(no.status)
	o.send(body)
}

// errorBody returns an error as the dialect has it.
func (c *conversation) errorBody(no refusal) []byte {
	kind, code := "api_error", "worldkernel"
	switch {
	case no.budget && c.dialect == relay.Anthropic:
		kind = "billing_error"
	case no.budget:
		kind, code = "insufficient_quota", "insufficient_quota"
	case no.status == http.StatusBadRequest, no.status == http.StatusRequestEntityTooLarge:
		kind = "invalid_request_error"
	case no.final:
		kind = "permission_error"
	}
	var v any = map[string]any{"error": map[string]any{"message": no.text, "type": kind, "code": code, "param": nil}}
	if c.dialect == relay.Anthropic {
		v = map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": no.text}}
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // of texts alone
	}
	return body
}

// finalStatus returns the status after which an agent does not ask again, as Claude Code and Codex were seen to do.
func (c *conversation) finalStatus() int {
	switch {
	case (&relay.Asked{Header: c.header}).OfClaudeCode():
		return http.StatusTooManyRequests // Claude Code asks six times after 400, and takes 403 for a bad key; opencode and the AI SDK ask again after 429
	case strings.HasPrefix(c.header.Get("Originator"), "codex"):
		return http.StatusBadRequest // Codex asks six times after 403
	}
	return http.StatusForbidden
}
