package world

import (
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// gate decides about intents: by the rules in force, budgets, rates, resting capabilities, and the hold on a
// fork. The only record that it writes is that a capability rests.
type gate struct {
	*roster

	budgets budgets
	paces   map[string]pace        // by kind of effect
	rests   map[string]journal.Seq // capabilities, since records
	onHold  bool                   // a fork whose effects wait for persons, but for those of kinds in live
	live    []string               // by name
	request governance.Request
}

// decide asks the gate about an intent. in.Cap is the requested capability.
func (g *gate) decide(asker reducer.Cell, in *receipt.Intent, approved bool) governance.Decision {
	return g.decideOn(asker, in, governance.Request{Cap: in.Cap, Approved: approved})
}

// decideOn asks the gate. asked has facts that only the caller knows.
func (g *gate) decideOn(asker reducer.Cell, in *receipt.Intent, asked governance.Request) governance.Decision {
	req := &g.request
	*req = asked
	req.World, req.Cell, req.Time = g.rules.manifest.World, asker, g.now
	req.Kind, req.Params, req.Tag = in.Kind, in.Params, in.Tag
	req.Context, req.Caps, req.Accounts = g.rules.guard.context(), g.budgets.Caps, governance.Accounts{World: g.budgets.World}
	if c := g.cells.get(asker); c != nil {
		req.Accounts.Cell = c.asked().account
		if req.Step == 0 {
			req.Step = c.n
		}
	}
	g.rules.guard.item(len(in.Params), "params of", in.Kind, g.last)
	if g.over() {
		return governance.Decision{} // of which nothing will be left
	}
	if d, denied := g.paramsBreak(in.Kind, in.Params); denied {
		return d
	}
	d := g.rules.gate.Decide(req)
	if d.Verdict == governance.Allow && !req.Approved && g.holds(in.Kind) {
		d.Verdict, d.Rules = governance.RequireApproval, append(d.Rules, ruleOnHold)
	}
	return d
}

// holds reports whether a fork holds effects of a kind for a person, whatever the rules say.
func (g *gate) holds(kind string) bool { return g.onHold && !slices.Contains(g.live, kind) }

// ruleOnHold names the hold on a fork among the rules of a decision.
const ruleOnHold = "fork_on_hold"

// paramsBreak returns the denial of params that do not match the schema of their kind.
func (g *gate) paramsBreak(effect string, params journal.Data) (governance.Decision, bool) {
	rule := g.rules.effects[effect]
	if rule == nil || rule.params == nil {
		return governance.Decision{}, false
	}
	field, what, ok := rule.params.check(params)
	if ok {
		return governance.Decision{}, false
	}
	at := "params" + strings.TrimPrefix(field, "data")
	return governance.Decision{Code: governance.CodeBadParams, Reason: fmt.Sprintf("%s: %s", at, what)}, true
}

// approvalDeadline returns the tick at which an intent that begins to await approval now is denied; a fork's hold has none.
func (g *gate) approvalDeadline(kind string) uint64 {
	if g.holds(kind) {
		return receipt.NoDeadline
	}
	return uint64(g.now.Plus(g.rules.manifest.Defaults.ApprovalTTL))
}

// pace is the earliest start of the next attempt of a kind with a rate: a token bucket with the tokens of one
// tick. An attempt takes Per/Calls ticks, so at most Calls attempts start in any Per consecutive ticks.
type pace struct {
	_    struct{} `cbor:",toarray"`
	At   manifest.Tick
	Part uint64 // beyond At, in Calls-ths of a tick
}

// paceOf returns the first tick in which another attempt of a kind may start; 0: any.
func (g *gate) paceOf(kind string) manifest.Tick {
	if rule := g.rules.effects[kind]; rule == nil || rule.Rate.Calls == 0 {
		return 0
	}
	return g.paces[kind].At
}

// step notes the start of an attempt of a kind.
func (g *gate) step(kind string) {
	rule := g.rules.effects[kind]
	if rule == nil || rule.Rate.Calls == 0 {
		return
	}
	rate, p := rule.Rate, g.paces[kind]
	if p.At < g.now {
		p.At, p.Part = g.now, 0
	}
	p.Part += uint64(rate.Per) % rate.Calls
	p.At = p.At.Plus(rate.Per/manifest.Tick(rate.Calls) + manifest.Tick(p.Part/rate.Calls))
	p.Part %= rate.Calls
	if g.paces == nil {
		g.paces = make(map[string]pace)
	}
	g.paces[kind] = p
}
