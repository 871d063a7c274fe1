package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host/relay"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// conversation is one request of the agent, until it is answered.
type conversation struct {
	g       *Gateway
	dialect string
	header  http.Header
	asked   *relay.Asked
	number  int       // of the request in its incarnation
	begun   time.Time // when it came
	again   []*asking // what the gateway has asked for it since tools were denied
	instead []byte    // what answers it; nil: the provider does
}

// serve answers a request.
func (c *conversation) serve(w http.ResponseWriter, r *http.Request, path string) {
	sent := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), MaxBody/8)+bytes.MinRead))
	_, err := sent.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		c.refuse(w, refusal{status: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("the request is larger than %d bytes", MaxBody), final: true})
		return
	}
	body, err := c.g.settleTools(sent.Bytes())
	if err != nil {
		c.refuse(w, refusal{status: http.StatusServiceUnavailable, text: "a recorded result cannot be read: " + err.Error()})
		return
	}
	c.asked, err = relay.Read(c.dialect, r.Method, path, r.Header, body)
	if err != nil {
		c.refuse(w, refusal{status: http.StatusBadRequest, text: err.Error(), final: true})
		return
	}
	c.g.count(func(s *Summary) {
		s.Requests++
		c.number = s.Requests
	})
	out := newReply(w, c.asked.Stream)
	defer out.detach() // the provider's answer may come later
	a, no := c.begin(r.Context(), out)
	if no != nil {
		out.refuse(c, *no)
		return
	}
	e, answer, no := c.await(r.Context(), a, out)
	if no == nil {
		answer, no = c.judge(r.Context(), a, out, answer)
	}
	delivered, failed := false, false
	if no != nil {
		out.refuse(c, *no)
		delivered, failed = no.final && !no.joins, !no.joins
	} else if answer.Cut && a.served {
		out.catchUp(answer, relay.Flows(c.asked, answer))
		delivered = true
	} else {
		delivered, failed = out.finish(answer), e.State != receipt.StateCommitted
	}
	for _, of := range c.again {
		c.g.leave(of, delivered, false)
	}
	c.g.leave(a, delivered, failed)
	if no == nil && answer.Cut {
		<-time.After(cutTime)       // a reset would take what the agent has not read yet
		panic(http.ErrAbortHandler) // it ends as it came: the connection is reset
	}
}

// begin finds what a request is, and has it asked where nobody has. What may flow of the answer goes to out.
func (c *conversation) begin(ctx context.Context, out *reply) (*asking, *refusal) {
	a, is, no := c.find(ctx)
	if no != nil {
		return nil, no
	}
	var err error
	switch is {
	case fresh:
		c.pin()
		if err = c.branch(); err == nil {
			err = c.submitRequest(ctx, a, out)
		}
	case recorded:
		c.notePins(a)
		err = c.g.submitServed(ctx, a)
	case waiting:
		c.put(a, out)
	case joined, beside, missed: // find has decided about the last two
	}
	if err != nil {
		c.g.leave(a, false, true)
		return nil, &refusal{status: http.StatusServiceUnavailable, text: "the world does not take it: " + err.Error()}
	}
	return a, nil
}

// find returns what a request is. It waits for a client to go, and where the record has no such request for others to take what is left.
func (c *conversation) find(ctx context.Context) (*asking, match, *refusal) {
	g := c.g
	for begun := time.Now(); ; {
		waited := time.Since(begun)
		if ctx.Err() != nil {
			waited = lateTime
		}
		g.mu.Lock()
		a, is := g.match(c.asked, waited >= twinTime)
		news := g.news
		g.mu.Unlock()
		switch {
		case a != nil:
			return a, is, nil
		case is == missed && (waited >= lateTime || g.cfg.Offline):
			return nil, missed, c.diverge()
		}
		select {
		case <-news:
		case <-time.After(lookAgain):
		case <-ctx.Done():
		}
	}
}

// match finds what a request is; twins says that it is none of those that wait. There is no asking of what is beside
// or missed. It is called with mu held.
func (g *Gateway) match(r *relay.Asked, twins bool) (a *asking, is match) {
	a, is = g.find(&g.models, r.Key, "", r.Header.Get("X-Stainless-Retry-Count") > "0")
	switch {
	case is == recorded:
		g.summary.Served++
	case a != nil:
	case is == beside && !twins:
	case g.cfg.Offline || r.Asks() && !g.ever[r.Key] && !g.cfg.Diverge && len(g.models.left()) > 0:
		is = missed
	default:
		a, is = g.add(&g.models, r.Key, ""), fresh
	}
	return a, is
}

func (g *Gateway) submitServed(ctx context.Context, a *asking) error {
	if g.cfg.Offline {
		return nil
	}
	return g.submit(ctx, recorder.Served, recorder.Answered{Ask: a.tag, Incarnation: g.incarnation})
}

// submitRequest makes an event of the request.
func (c *conversation) submitRequest(ctx context.Context, a *asking, out *reply) error {
	g := c.g
	request := c.asked.Request
	request.Ask, request.Incarnation, request.Principal = a.tag, g.incarnation, g.cfg.Principal
	c.put(a, out)
	err := g.submit(context.WithoutCancel(ctx), recorder.Asked, request)
	if err != nil {
		g.cfg.Desk.Take(g.caller(a.tag))
	}
	return err
}

// notePins notes what the agent has sent otherwise than it is on record.
func (c *conversation) notePins(a *asking) {
	if c.g.cfg.Offline || !c.asked.Asks() {
		return
	}
	recorded := paramsOf[recorder.Request](c.g, a.key).Body
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	c.g.pins.Note(c.asked, recorded)
}

// pin puts what is on record in the place of what the agent sends otherwise since it was started again.
func (c *conversation) pin() {
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	asked, replaced := c.g.pins.Pin(c.asked)
	if len(replaced) > 0 {
		asked.Replaced = replaced
	}
	c.asked = asked
}

// branch has a request ask or be answered otherwise than the agent expects, in a fork: from the call on that it is about.
func (c *conversation) branch() error {
	g := c.g
	g.mu.Lock()
	defer g.mu.Unlock()
	c.instead = nil // it may be what a denial made of the call that was answered
	if b := g.cfg.Branch; b != nil && c.asked.Key == b.Lineage && !g.summary.Branched {
		g.summary.Branched, g.cfg.Diverge = true, true
		c.instead = b.Answer
	}
	if g.instead.Model == "" || c.asked.Model != g.instead.Of {
		return nil
	}
	return c.asked.SetModel(g.instead.Model)
}

// put hands the request in, for whoever has the permit.
func (c *conversation) put(a *asking, out *reply) {
	c.g.cfg.Desk.Put(c.g.caller(a.tag), &relay.Caller{Asked: c.asked, Upstream: c.g.cfg.Upstream[c.dialect], Begin: out.beginReply, Flow: out.flow, Instead: c.instead})
}

// await waits until the request has come to its end, and returns what it came to. It ends when the agent goes: then
// the call goes on.
func (c *conversation) await(ctx context.Context, a *asking, out *reply) (receipt.Entry, *recorder.Answer, *refusal) {
	pings := time.NewTicker(pingTime)
	defer pings.Stop()
	for {
		e, news, err := c.g.standing(a)
		switch {
		case err != nil:
			return e, nil, &refusal{status: http.StatusServiceUnavailable, text: "the journal cannot be read: " + err.Error()}
		case over(&e):
			answer, no := c.cameTo(a, &e)
			return e, answer, no
		case e.State.AwaitsPerson() && time.Since(c.begun) > holdTime:
			return e, nil, c.ticket(&e)
		}
		select {
		case <-news:
		case <-pings.C:
			out.ping(c.dialect, e.State.AwaitsPerson())
		case <-ctx.Done():
			return e, nil, gone()
		}
	}
}

// gone is for an agent that has gone: nobody gets it.
func gone() *refusal {
	return &refusal{status: http.StatusServiceUnavailable, text: "the client has gone", joins: true}
}

// doubtful reports whether nobody can tell what became of an intent: a person may have told.
func doubtful(e *receipt.Entry) bool {
	return e.State == receipt.StateInDoubt || e.Uncertain && e.State != receipt.StateCommitted
}

// over reports whether nothing more comes of an intent by itself.
func over(e *receipt.Entry) bool {
	switch e.State {
	case receipt.StateCommitted, receipt.StateFailed, receipt.StateDenied, receipt.StateCancelled, receipt.StateInDoubt:
		return true
	case receipt.StateOpen, receipt.StateInFlight, receipt.StateAwaitingApproval, receipt.StateAwaitingAnswer, receipt.StateAwaitingConfirmation:
	}
	return false
}

// standing returns how the intent of a request stands, and what is closed when that may be
// otherwise.
func (g *Gateway) standing(a *asking) (e receipt.Entry, news <-chan struct{}, err error) {
	g.mu.Lock()
	unknown := g.awaited[a.tag] != a && (!over(&a.stands) || a.stands.State == receipt.StateInDoubt)
	if unknown {
		a.news = make(chan struct{})
		g.awaited[a.tag] = a
	}
	key := g.keyOf(a)
	g.mu.Unlock()
	if unknown && key != (receipt.Key{}) {
		g.look([]receipt.Key{key}, 0)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return a.stands, a.news, g.failed
}

// cameTo returns what the provider has answered, where that is on record.
func (c *conversation) cameTo(a *asking, e *receipt.Entry) (*recorder.Answer, *refusal) {
	c.g.cfg.Desk.Take(c.g.caller(a.tag)) // what was denied never had a permit
	answer, reason, err := answerOf[recorder.Answer](c.g, e)
	if err != nil {
		return nil, &refusal{status: http.StatusServiceUnavailable, text: err.Error()}
	}
	doubt := doubtful(e)
	c.g.countOnce(a, func(s *Summary) {
		if !a.served && (doubt || answer != nil || e.State == receipt.StateCommitted) {
			s.Calls++
		}
		switch {
		case e.State == receipt.StateDenied:
			s.Denied++
		case answer == nil && doubt:
			s.InDoubt++
		case answer == nil || e.State != receipt.StateCommitted:
			s.Failed++
		}
		if answer != nil {
			s.Tools += len(answer.Calls)
		}
		if answer != nil && !a.served {
			s.Tokens += answer.Usage.Believable()
			s.Micros += answer.Usage.Cost()
		}
	})
	switch {
	case e.State == receipt.StateDenied:
		return nil, &refusal{status: c.finalStatus(), text: "worldkernel denied it: " + reason.String(), final: true, budget: reason.Code == governance.CodeBudgetExceeded}
	case answer == nil && doubt:
		return nil, &refusal{status: http.StatusBadGateway, text: "worldkernel: nobody can tell whether the provider has made the call: " + reason.String()}
	case answer == nil && e.State == receipt.StateCommitted:
		return nil, &refusal{status: http.StatusBadGateway, text: "worldkernel: the call was made, and its answer is not on record: " + reason.String()}
	case answer == nil:
		return nil, &refusal{status: http.StatusBadGateway, text: "worldkernel: the call was not made: " + reason.String()}
	}
	return answer, nil
}

// countOnce adds what a call came to to the summary, however often it is told.
func (g *Gateway) countOnce(a *asking, change func(s *Summary)) {
	g.count(func(s *Summary) {
		if !a.counted {
			change(s)
		}
		a.counted = true
	})
}

func (g *Gateway) count(change func(s *Summary)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.summary)
}

// ticket says that a person has to decide, which takes longer than the client waits. The agent
// asks again, and joins what waits.
func (c *conversation) ticket(e *receipt.Entry) *refusal {
	text := "worldkernel: a person has to approve this call: " + c.g.typed("intent approve", e) + "; then ask again"
	return &refusal{status: c.finalStatus(), text: text, final: true, joins: true}
}

// diverge notes that nobody has asked for a request before.
func (c *conversation) diverge() *refusal {
	d := &Divergence{Request: c.number, Path: c.asked.Path, Model: c.asked.Model, Prompt: c.asked.Prompt}
	c.g.nearest(c.asked, d)
	c.g.count(func(s *Summary) { s.diverge(d) })
	return &refusal{status: c.finalStatus(), final: true, text: "worldkernel: request " + strconv.Itoa(c.number) + " was never asked before, and recorded answers are left: " +
		"the agent does something else than what is on record"}
}
