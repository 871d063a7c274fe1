package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/host/mcp"
)

// webCall is the POST of a call of a tool, and its answer.
type webCall struct {
	s      *webServer
	header http.Header  // of the client
	status atomic.Int64 // of the server's answer

	mu      sync.Mutex
	w       http.ResponseWriter // nil: its client has gone, or has the answer
	stream  bool                // it has begun as a stream
	refusal *http.Response      // the server has not taken the call; nil: it has
}

// call serves a call of a tool.
func (s *webServer) call(w http.ResponseWriter, r *http.Request, m *mcpMessage) {
	c, refused := s.newCall(m)
	if c == nil {
		answerJSON(w, http.StatusBadRequest, refused)
		return
	}
	for begun := time.Now(); c.use == "" && s.g.attended(c.key) && time.Since(begun) < twinTime; { // is it a twin, or has its client gone?
		<-time.After(lookAgain)
	}
	x := &webCall{s: s, header: r.Header.Clone(), w: w}
	c.toClient, c.toServer, c.left = func(line []byte) { _, _ = x.Write(new(mcp.Event).Text(line)) }, x.send, r.Context().Done()
	if delivered := x.end(c.serve()) && r.Context().Err() == nil; !delivered && c.asking != nil {
		s.g.leave(c.asking, false, false) // who asks again gets it
	}
}

// attended reports whether a client waits for the answer to a call with a key.
func (g *Gateway) attended(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.tools.now[key], func(a *asking) bool { return a.attended })
}

func (x *webCall) takesEvents() bool {
	return strings.Contains(strings.Join(x.header.Values("Accept"), ","), typeEvents)
}

// Write sends the client events before the answer, if it takes any.
func (x *webCall) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.w == nil || !x.takesEvents() {
		return len(p), nil
	}
	if !x.stream {
		x.stream = true
		x.w.Header().Set("Content-Type", typeEvents)
	}
	out := http.NewResponseController(x.w)
	_ = out.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := x.w.Write(p); errors.Join(err, out.Flush()) != nil {
		x.w = nil
	}
	return len(p), nil
}

// end sends the client the answer, if there is one, and reports whether it may have got it.
func (x *webCall) end(answer []byte) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := x.w
	x.w = nil
	switch {
	case w == nil || answer == nil && x.stream:
	case answer == nil: // its client has taken it back
		w.WriteHeader(http.StatusAccepted)
	case x.stream:
		_, err := w.Write(new(mcp.Event).Text(answer))
		return err == nil
	case x.refusal != nil:
		return passOn(w, x.refusal) == nil
	default:
		status := http.StatusOK
		if m, err := readServer(answer); err == nil && m.fault != nil { // the server's own
			status = max(status, int(x.status.Load()))
		}
		answerJSON(w, status, answer)
		return true
	}
	return false
}

// send sends the server a message: see toolCall.
func (x *webCall) send(ctx context.Context, id string, line []byte) bool {
	go func() {
		if id != "" {
			x.s.reply("n"+id, x.exchange(ctx, "n"+id, line)) // if it is not answered yet
			return
		}
		ctx, end := context.WithTimeout(context.WithoutCancel(ctx), cancelGrace)
		defer end()
		if resp, err := x.s.do(ctx, http.MethodPost, x.header, line); err == nil {
			_ = resp.Body.Close()
		}
	}()
	return true
}

// exchange sends the server a call, and reads its answer, if it can be had. It returns why there is none.
func (x *webCall) exchange(ctx context.Context, key string, line []byte) *mcpReply {
	var sent atomic.Bool
	trace := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	resp, err := x.s.do(trace, http.MethodPost, x.header, line)
	if err != nil {
		return &mcpReply{err: err, unmade: !sent.Load() || errors.Is(err, errAstray)}
	}
	why := fmt.Errorf("%w: status %d", errAnswer, resp.StatusCode)
	x.status.Store(int64(resp.StatusCode))
	if err := x.s.readAnswer(resp, key, ""); err == nil && resp.StatusCode/100 == 4 && resp.StatusCode != http.StatusRequestTimeout && x.s.runs(key) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.refusal = resp
		return &mcpReply{err: why, unmade: true}
	}
	header, last := x.header.Clone(), new(mcp.Event)
	header.Set("Accept", typeEvents)
	header.Del("Content-Type")
	for n := 0; n < maxResumes && x.s.runs(key); n++ {
		if e, is := resp.Body.(*events); is {
			e.last = last
			_, _ = io.Copy(x, e)
		}
		if _ = resp.Body.Close(); last.ID == "" || !x.s.runs(key) {
			break
		}
		wait, _ := time.ParseDuration(cmp.Or(last.Retry, "1000") + "ms") // no number: soon
		select {
		case <-time.After(max(lookAgain, min(wait, maxRetry))):
		case <-ctx.Done():
		}
		header.Set("Last-Event-Id", last.ID)
		if resp, err = x.s.do(ctx, http.MethodGet, header, nil); err != nil || x.s.readAnswer(resp, key, "") != nil {
			break
		}
	}
	return &mcpReply{err: why}
}
