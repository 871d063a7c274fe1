package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// maxAgain is how often a model whose calls of tools were denied is asked again.
const maxAgain = 3

// judge has the tools that an answer asks for judged, where no hook does, and returns the answer that the agent gets: the same,
// or that of the model after it was told which were denied.
func (c *conversation) judge(ctx context.Context, a *asking, out *reply, first *recorder.Answer) (*recorder.Answer, *refusal) {
	if !c.g.cfg.Answers || c.g.cfg.Hooked && c.asked.OfClaudeCode() || first.Cut {
		return first, nil
	}
	of, answer, flows := c, first, 0
	for again := 0; ; again++ {
		said, err := relay.ReadSaid(of.asked, answer)
		if err != nil {
			return nil, &refusal{status: http.StatusBadGateway, text: err.Error(), joins: true}
		}
		if again == 0 {
			flows = said.Flows
			out.catchUp(first, flows)
		}
		told, no := of.judgeCalls(ctx, a, out, said.Calls)
		switch {
		case no != nil:
			return nil, no
		case told == nil && again == 0:
			return first, nil
		case told == nil && flows == 0:
			return answer, nil
		case told == nil:
			whole := *answer
			whole.Header, whole.Body = first.Header, append(first.Body[:flows:flows], relay.GoOn(first.Body[:flows], answer.Body)...)
			return &whole, nil
		case again == maxAgain:
			return nil, &refusal{status: c.finalStatus(), text: "worldkernel: the model asks for what is denied again and again: " + strings.Join(told, "; "), final: true, joins: true}
		}
		if of, a, answer, no = c.askAgain(ctx, out, of, said, told); no != nil {
			return nil, no
		}
	}
}

// askAgain asks the model again, with a result for each of its calls.
func (c *conversation) askAgain(ctx context.Context, out *reply, of *conversation, said *relay.Said, told []string) (*conversation, *asking, *recorder.Answer, *refusal) {
	body, err := said.Again(of.asked, told)
	next := *of
	if err == nil {
		next.asked, err = relay.Read(c.dialect, http.MethodPost, c.asked.Path, c.header, body)
	}
	if err != nil {
		return nil, nil, nil, &refusal{status: c.finalStatus(), text: "worldkernel: denied: " + strings.Join(told, "; "), final: true, joins: true}
	}
	a, no := next.begin(ctx, newReply(nil, false))
	if no != nil {
		no.joins = true
		return nil, nil, nil, no
	}
	e, answer, no := next.await(ctx, a, out)
	switch {
	case no == nil && e.State == receipt.StateCommitted:
		c.again = append(c.again, a)
		return &next, a, answer, nil
	case no == nil:
		no = &refusal{status: answer.Status, text: "worldkernel: the provider failed when it was told what is denied: " + shorten(string(answer.Body), maxText)}
		if answer.Status < http.StatusBadRequest { // it was cut off
			no.status = http.StatusBadGateway
		}
	}
	c.g.leave(a, no.final && !no.joins, !no.joins)
	no.joins = true
	return nil, nil, nil, no
}

// judged is a call of an answer, by its number.
type judged struct {
	call int
	verdict
}

// judgeCalls has calls judged, all at once. Where one is denied it returns a result for each; else none.
func (c *conversation) judgeCalls(ctx context.Context, a *asking, out *reply, calls []relay.Call) (told []string, no *refusal) {
	judging, stop := context.WithCancel(ctx)
	defer stop()
	came := make(chan judged, len(calls))
	before := false // one was denied before the restart: then none is asked for anew
	for i := range calls {
		before = before || c.g.wasDenied(useID(a, i), &calls[i])
	}
	for i := range calls {
		if before && !c.g.wasDenied(useID(a, i), &calls[i]) {
			came <- judged{call: i}
			continue
		}
		go func() { came <- judged{i, c.judgeCall(judging, useID(a, i), &calls[i])} }()
	}
	pings := time.NewTicker(pingTime)
	defer pings.Stop()
	denied := make([]string, len(calls))
	for n := 0; n < len(calls); {
		select {
		case v := <-came:
			n++
			switch {
			case v.denied != "":
				denied[v.call], told = v.denied, denied
				stop() // nobody has to decide about the others
			case v.waits != nil && no == nil:
				no = c.ticket(v.waits)
			case v.left && no == nil:
				no = gone()
			}
		case <-pings.C:
			out.ping(c.dialect, false)
		}
	}
	if told == nil {
		if no == nil {
			c.g.release(a, len(calls))
		}
		return nil, no
	}
	for i := range told {
		if told[i] == "" {
			told[i] = "not run, because another call of the same answer was denied"
			c.g.withdraw(useID(a, i), told[i])
		}
	}
	return told, nil
}

// wasDenied reports whether a call was denied in an earlier incarnation.
func (g *Gateway) wasDenied(id string, call *relay.Call) bool {
	arguments, err := canon.FromJSON(orNull(call.Arguments))
	if err != nil {
		return false
	}
	key := (&using{id: id, tool: call.Name, arguments: arguments, answer: true}).input()
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(slices.Concat(g.hooks.past[key], g.hooks.now[key]), func(a *asking) bool {
		return a.served && g.entry(a.key).State == receipt.StateDenied
	})
}

// useID returns the gateway's id of a call in an answer: providers may use one of theirs again.
func useID(a *asking, call int) string {
	ask, _, _ := strings.Cut(a.tag, " ")
	return fmt.Sprintf("%s/%d", ask, call)
}

// release notes that the agent is about to get calls.
func (g *Gateway) release(a *asking, calls int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range calls {
		if u := g.hooks.using[useID(a, i)]; u != nil {
			u.held = false
		}
	}
}

// withdraw ends a use that no agent gets, whether it is permitted or may be later.
func (g *Gateway) withdraw(id, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.hooks.using[id]; u != nil && u.result != nil {
		u.result <- notRun(why)
		u.result = nil
	}
}

// judgeCall has a call judged.
func (c *conversation) judgeCall(ctx context.Context, id string, call *relay.Call) verdict {
	g := c.g
	if g.judgedElsewhere(call.Name) {
		return verdict{}
	}
	g.mu.Lock()
	g.hooks.called[call.ID] = id
	delete(g.hooks.given, call.ID) // the provider may use it again
	g.mu.Unlock()
	h := &hookCall{ID: id, Name: call.Name, Input: call.Arguments, answer: true, calledAs: call.ID}
	u, denied, err := g.useOf(ctx, h, "")
	if err != nil {
		denied = "the world does not take it: " + err.Error()
	}
	if u == nil || denied != "" {
		return verdict{denied: denied}
	}
	return g.awaitPermit(u, c.begun, holdTime, ctx.Done())
}

// abandon has all uses that nobody has told a result of end: nobody will. Incarnations end with it.
func (g *Gateway) abandon(code int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, u := range g.hooks.using { // order cannot show: all of them
		switch {
		case u.result == nil:
			continue
		case u.answer && u.held:
			u.result <- notRun("the agent ended before it got the call")
		case u.answer && code == 0: // such as a tool whose call is the agent's last word
			u.result <- &recorder.ToolAnswer{Result: []byte("null"), Text: "the agent ended well, and has told no result", Late: true}
		default:
			close(u.result)
			if isClosed(u.permit) {
				g.summary.InDoubt++
			}
		}
		u.result = nil
	}
}

// notRun is the answer of a tool that was permitted and is not run; perform takes it for none.
func notRun(why string) *recorder.ToolAnswer { return &recorder.ToolAnswer{Text: why} }
