package mcp

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/worldkernel/worldkernel/receipt"
)

// A question of a server does not say during which call it is asked, but for those of
// tasks. Of one call that is under way alone it is clear. So a server that has asked gets
// calls one at a time, and a question during several waits until it is known whose it is:
// a call that waits for an answer does not end, so who ends has not asked, and where each
// of them asks one is cancelled, and whose call ends then has asked that. A call that is
// given up meanwhile may have asked; what is left of it is in doubt.

// calls are those that are under way in a session. It is safe for concurrent use.
type calls struct {
	asks *atomic.Bool // whether the server has asked during a call, in any session

	mu      sync.Mutex
	under   map[*exchange]bool
	held    []*question           // of which nobody can tell yet whose they are
	tried   *receipt.InputRequest // the one that was cancelled to learn whose it is; nil: none
	givenUp bool                  // a call was, while there were such questions
	news    chan struct{}         // closed when what waits may begin; nil: nothing waits
	tasks   taskSupport
}

// question is one that waits to be answered.
type question struct {
	receipt.InputRequest
	answer chan *elicitResult // nil: nobody's
}

// errNobodys refuses a question. A server that hears that somebody has cancelled it would
// go on as if a person had.
var errNobodys = &rpcError{Code: codeInternal, Message: "the question is of none of the calls that are under way"}

// beginCall begins a call as soon as it may.
func (c *calls) beginCall(ctx context.Context, x *exchange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.task == "" && x.answers.duringCalls() {
		c.asks.Store(true)
	}
	for !c.mayBegin(x) {
		if c.news == nil {
			c.news = make(chan struct{})
		}
		news := c.news
		c.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if c.under == nil {
		c.under = make(map[*exchange]bool)
	}
	c.under[x] = true
	return nil
}

// mayBegin reports whether a call may begin. Who fetches what came of a task does, since
// the questions of tasks say whose they are.
func (c *calls) mayBegin(x *exchange) bool {
	switch {
	case x.task != "":
		return true
	case len(c.held) > 0 || c.tried != nil:
		return false
	case !c.asks.Load():
		return true
	}
	for y := range c.under { // order cannot show
		if y.task == "" {
			return false
		}
	}
	return true
}

// endCall ends a call, which was answered or given up. It returns what the server has asked
// during it, or what it may have asked; nil: nothing.
func (c *calls) endCall(x *exchange, answered bool) (asked, perhaps *receipt.InputRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.under, x)
	switch {
	case len(c.held) == 0 && c.tried == nil:
	case !answered:
		c.givenUp = true
		if perhaps = c.tried; perhaps == nil {
			perhaps = &c.held[0].InputRequest
		}
	case c.tried != nil && x.asked == nil:
		x.asked, c.tried = c.tried, nil
	}
	c.settle()
	if c.news != nil {
		close(c.news)
		c.news = nil
	}
	return x.asked, perhaps
}

// elicited answers a question with what a person has said to the same, or has it
// cancelled and noted, once it is known whose it is.
func (c *calls) elicited(ctx context.Context, asked receipt.InputRequest, task string) (*elicitResult, error) {
	q := &question{asked, make(chan *elicitResult, 1)}
	c.mu.Lock()
	switch {
	case task != "":
		q.answer <- c.ofTask(task).hear(asked)
	case c.tried != nil: // whoever asked that asks once more: the others wait
		q.answer <- cancelled()
	default:
		c.asks.Store(true)
		c.held = append(c.held, q)
		c.settle()
	}
	c.mu.Unlock()
	select {
	case r := <-q.answer:
		if r == nil {
			return nil, errNobodys
		}
		return r, nil
	case <-ctx.Done(): // the server has taken it back
		c.mu.Lock()
		defer c.mu.Unlock()
		c.held = slices.DeleteFunc(c.held, func(h *question) bool { return h == q })
		c.settle()
		return nil, ctx.Err()
	}
}

// ofTask returns the call that fetches what came of a task, or nil.
func (c *calls) ofTask(task string) *exchange {
	for x := range c.under { // order cannot show: one at most
		if x.task == task {
			return x
		}
	}
	return nil
}

// settle answers the questions of which it is known whose they are. It is called with mu
// held.
func (c *calls) settle() {
	for len(c.held) > 0 && c.tried == nil && !c.givenUp && len(c.held) >= len(c.under) && len(c.under) > 0 {
		q := c.held[0]
		c.held = c.held[1:]
		if len(c.under) > 1 {
			c.tried = &q.InputRequest
			q.answer <- cancelled()
			return
		}
		for x := range c.under { // it is one
			q.answer <- x.hear(q.InputRequest)
		}
	}
	if len(c.under) == 0 {
		for _, q := range c.held {
			q.answer <- nil
		}
		c.held, c.tried = nil, nil
	}
	c.givenUp = c.givenUp && (len(c.held) > 0 || c.tried != nil)
}

// hear returns the answer to what a call asks; nil: there is no such call.
func (x *exchange) hear(asked receipt.InputRequest) *elicitResult {
	if x == nil {
		return nil
	}
	if given, ok := x.answers.to(asked); ok {
		return given
	}
	if x.asked == nil {
		x.asked = &asked
		if x.stop != nil {
			x.stop()
		}
	}
	return cancelled()
}

func cancelled() *elicitResult { return &elicitResult{Action: "cancel"} }
