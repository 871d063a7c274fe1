package gateway

import (
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/recorder"
	"github.com/worldkernel/worldkernel/world"
)

// asking is a call of the agent's, of a model or of a tool, and its intent. Gateway.mu guards it.
type asking struct {
	tag       string      // of the intent: the incarnation and a number in it, the key of calls, and the model's id if the agent says it
	key       receipt.Key // of the intent; known once the journal has it
	served    bool        // it has ended in an earlier incarnation: the record answers
	failed    bool        // what it came to is no answer: the next equal call is another one
	attended  bool        // a client waits for it
	delivered bool        // a client got all of it
	counted   bool        // the summary has it
	block     []byte      // of a tool: the recorded result that the model gets; nil: it was not looked for

	stands receipt.Entry // how the intent stands, without params; zero: the journal does not have it yet
	news   chan struct{} // closed when it stands otherwise; nil: nobody has waited for it
}

// keyOfTag returns what equal calls have in common, and the model's id; empty: the agent does not say it.
func keyOfTag(tag string) (key, id string) {
	_, rest, _ := strings.Cut(tag, " ")
	key, id, _ = strings.Cut(rest, " ")
	return key, id
}

// calls are calls of one kind, by what equal ones have in common. Gateway.mu guards them.
type calls struct {
	past map[string][]*asking // of earlier incarnations, in order; whoever finds one takes it out
	now  map[string][]*asking // of this incarnation, in order
}

func newCalls() calls {
	return calls{past: make(map[string][]*asking), now: make(map[string][]*asking)}
}

// left returns the recorded answers that nobody has asked for.
func (c *calls) left() (all []*asking) {
	for _, past := range c.past { // order cannot show: who needs one sorts them
		for _, a := range past {
			if a.served {
				all = append(all, a)
			}
		}
	}
	return all
}

// match is what a call is.
type match int

const (
	fresh    match = iota // a new one
	joined                // a retry of one whose client has gone
	recorded              // the record answers it
	waiting               // an earlier incarnation has asked it, and it has not begun
	beside                // not known yet: an equal one waits for its answer, whose client may be about to go
	missed                // it was never asked, and something is left that was
)

// find finds a call among equal ones; nil: it is a new one, or beside another. The client may say that it asks again. Those of
// earlier incarnations are found in order, that with the model's id first, which must be that of what has ended, and what is in doubt
// last: something may have come of the same call later. It is called with mu held.
func (g *Gateway) find(c *calls, key, id string, again bool) (a *asking, is match) {
	for _, a := range c.now[key] {
		switch {
		case a.delivered || a.failed || a.served && !g.hasID(a, id):
		case a.attended && !again:
			is = beside
		default:
			if e := g.entry(g.keyOf(a)); !g.unmade(&e) {
				a.attended = true
				return a, joined
			}
		}
	}
	least := 0
	for _, of := range c.past[key] {
		e, exact, rank := g.entry(of.key), g.hasID(of, id), 0
		switch ended := over(&e); {
		case ended && (!exact || !of.served && !g.answers(&e)):
			continue
		case e.Uncertain || e.State == receipt.StateInDoubt:
			rank = 2
		case !exact:
			rank = 1
		}
		if of.served = over(&e); a == nil || rank < least {
			a, least = of, rank
		}
	}
	if a == nil {
		return nil, is
	}
	c.past[key] = slices.DeleteFunc(c.past[key], func(of *asking) bool { return of == a })
	c.now[key] = append(c.now[key], a)
	ring(&g.news) // less is left
	a.attended = true
	if a.served {
		return a, recorded
	}
	return a, waiting
}

// add adds a call that was never made before. It is called with mu held.
func (g *Gateway) add(c *calls, key, id string) *asking {
	g.numbered++
	a := &asking{tag: strings.TrimSpace(fmt.Sprintf("%d.%d %s %s", g.incarnation, g.numbered, key, id)), attended: true}
	c.now[key] = append(c.now[key], a)
	return a
}

// leave notes that nobody waits for a call any more. A recorded answer that could not be given is given to who asks again.
func (g *Gateway) leave(a *asking, delivered, failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a.attended, a.delivered, a.failed = false, delivered, a.failed || failed && !a.served
	ring(&g.news)
}

// ring tells all that wait for news that there are some. It is called with mu held.
func ring(news *chan struct{}) {
	close(*news)
	*news = make(chan struct{})
}

// isClosed reports whether a channel was closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// recall finds what earlier incarnations of the session have asked.
func (g *Gateway) recall() error {
	var failed error
	var session recorder.Session
	g.cfg.World.View(func(m *world.Moment) {
		if c, ok := m.Cell(g.cell); ok {
			session, failed = reducer.Decode[recorder.Session](c.State)
			if c.Halted {
				failed = fmt.Errorf("%w: %s", ErrHalted, g.cell)
			}
		}
		for _, e := range m.Intents() {
			if e.Intent.Cell == g.cell.String() && e.Intent.Kind == recorder.Call {
				key, _ := keyOfTag(e.Intent.Tag)
				g.ever[key] = true
			}
		}
	})
	g.incarnation, g.instead, g.joined = session.Incarnation+1, session.Instead, session.Joined
	g.recallCalls(&g.models, recorder.Call)
	g.recallCalls(&g.tools.calls, recorder.MCPCall)
	g.recallCalls(&g.hooks.calls, recorder.OwnTool)
	return failed
}

// recallCalls finds calls of one kind. Of a model's that were only denied a run offline finds the denials.
func (g *Gateway) recallCalls(c *calls, kind string) {
	denied := newCalls()
	for _, e := range g.intentsOf(kind, 0) {
		key, _ := keyOfTag(e.Intent.Tag)
		a := &asking{tag: e.Intent.Tag, key: e.Intent.Key, served: over(&e)}
		if g.answers(&e) {
			c.past[key] = append(c.past[key], a)
		} else if e.State == receipt.StateDenied && g.cfg.Offline {
			denied.past[key] = append(denied.past[key], a)
		}
	}
	for key, of := range denied.past { // order cannot show: each by itself
		if len(c.past[key]) == 0 {
			c.past[key] = of
		}
	}
}

// answers reports whether the intent of an earlier incarnation answers an equal call, or may yet. The agent does not get failures of
// a model again, after which it asks again, but answers that were cut off: Claude Code goes on from what it had of one. Of a tool it
// gets whatever something may have come of; where another agent was started, only what the model's id tells.
func (g *Gateway) answers(e *receipt.Entry) bool {
	switch _, id := keyOfTag(e.Intent.Tag); {
	case !over(e): // offline a tool that waits is seen in the answer that asks for it
		return !g.cfg.Offline || e.Intent.Kind == recorder.OwnTool
	case e.Intent.Kind == recorder.Call && e.State == receipt.StateFailed && !e.Uncertain:
		answer, _, err := answerOf[recorder.Answer](g, e)
		return err != nil || answer != nil && answer.Cut
	case e.Intent.Kind == recorder.Call:
		return e.State == receipt.StateCommitted
	case id == "" && !g.cfg.Again && !g.cfg.Offline:
		return false
	}
	return !g.unmade(e)
}

// unmade reports whether the call of a tool was certainly not made.
func (g *Gateway) unmade(e *receipt.Entry) bool {
	if e.Intent.Kind == recorder.Call || e.Uncertain || e.State != receipt.StateFailed && e.State != receipt.StateCancelled {
		return false
	}
	answer, reason, err := answerOf[recorder.ToolAnswer](g, e)
	return err == nil && answer == nil && reason.Error != redacted
}

// hasID reports whether a call has the model's id, or was taken over by the call that has it.
func (g *Gateway) hasID(a *asking, id string) bool {
	_, of := keyOfTag(a.tag)
	return of == id || g.joined[id] == a.tag
}

// keyOf returns the key of a call's intent; zero: the journal does not have it yet. It is called with mu held.
func (g *Gateway) keyOf(a *asking) receipt.Key {
	if key, ok := g.intents[a.tag]; ok {
		a.key = key
	}
	return a.key
}
