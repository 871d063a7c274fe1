package gateway

import (
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer/recorder"
)

// joinTool looks for a use with the same name and input that waits for a person and whose hook has gone: the
// model was told to call again. It is called with mu held.
func (g *Gateway) joinTool(h *hookCall, tag *asked) bool {
	data, err := canon.FromJSON(orNull(h.Input))
	if err != nil {
		return false // it is refused
	}
	input := digest(h.Name, string(data))
	for i, w := range g.hooks.tickets {
		if w.input == input {
			g.hooks.tickets = slices.Delete(g.hooks.tickets, i, i+1)
			*tag = w.asked
			return true
		}
	}
	return false
}

// ticket is a tool that waits for a person.
type ticket struct {
	asked

	input string // digest of the tool's name and input
}

// leaveUse lets a use that waits for a person be joined, since its hook goes. False: its permit is on its way.
func (g *Gateway) leaveUse(u *using) (left bool) {
	if g.cfg.Tools.Take(u.tag) == nil {
		return false
	}
	e := g.entry(u.key)
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, of := range g.hooks.using { // order cannot show: one has it
		if of == u {
			delete(g.hooks.using, id)
		}
	}
	if t, ok := g.ticketOf(&e); ok {
		g.hooks.tickets = append(g.hooks.tickets, t)
	}
	return true
}

// ticketOf returns the ticket of a tool's intent that waits for a person.
func (g *Gateway) ticketOf(e *receipt.Entry) (t ticket, ok bool) {
	var use recorder.ToolRequest
	if over(e) || g.paramsOf(e, &use) != nil {
		return t, false
	}
	return ticket{asked{e.Intent.Tag, e.Intent.Key}, digest(use.Tool, string(use.Arguments))}, true
}
