package world

import (
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// Every attempt is judged by the rules in force in the tick in which it starts. An intent that has not begun goes
// through the gate again when other rules are applied, when a person approves it, and when its attempt starts in a
// later tick than that in which it was judged.

// Opened counts the intents that have not begun when rules are applied, and what the rules decide about them.
type Opened struct {
	Open     uint64   `json:"open"`      // intents that have not begun
	Queued   uint64   `json:"queued"`    // of Open: permitted all the same; they are taken back first. 0 after that
	UnderWay uint64   `json:"under_way"` // in flight and begun: an apply waits for them. 0 after that
	Denied   uint64   `json:"denied"`
	Asked    uint64   `json:"asked"` // intents that a person is asked about, for the first time or anew
	Groups   []Judged `json:"by"`    // by deciding rule; at most governance.MaxListed
	First    []Judged `json:"first"` // one by one, in their order; at most governance.MaxListed
}

// Judged is the gate's decision about an intent, or about several that it decides alike.
type Judged struct {
	Key      *receipt.Key    `json:"key,omitempty"` // of one
	Cell     string          `json:"cell,omitempty"`
	Kind     string          `json:"kind"`
	Intents  uint64          `json:"intents"`
	Decision string          `json:"decision"` // deny or require_approval
	Code     governance.Code `json:"code"`     // of a denial
	Rules    []string        `json:"rules"`
	Reason   string          `json:"reason"` // of one
}

// add counts an intent. why is the reason why a person is asked; "": nobody is asked.
func (o *Opened) add(e *receipt.Entry, d *governance.Decision, why string) {
	o.Open++
	x := Judged{Kind: e.Intent.Kind, Intents: 1, Decision: governance.RequireApproval.String(), Rules: append([]string{}, d.Rules...)}
	switch {
	case d.Verdict == governance.Deny:
		o.Denied++
		x.Decision, x.Code, why = governance.Deny.String(), d.Code, d.Reason
	case why == "":
		return
	default:
		o.Asked++
	}
	alike := func(g Judged) bool {
		return g.Kind == x.Kind && g.Decision == x.Decision && g.Code == x.Code && slices.Equal(g.Rules, x.Rules)
	}
	if at := slices.IndexFunc(o.Groups, alike); at >= 0 {
		o.Groups[at].Intents++
	} else if len(o.Groups) < governance.MaxListed {
		o.Groups = append(o.Groups, x)
	}
	if len(o.First) < governance.MaxListed {
		x.Key, x.Cell, x.Reason = new(e.Intent.Key), e.Intent.Cell, why
		o.First = append(o.First, x)
	}
}

// judgeOpen puts all intents that have not begun before the gate again, because a record put other rules in force.
// Intents in flight or in doubt stay; their next attempt is judged when it starts.
func (f *effects) judgeOpen(cause journal.Seq) (o Opened) {
	for _, e := range f.ledger.Unfinished() {
		if !e.NotBegun() {
			continue
		}
		d, why := f.wouldEnd(e)
		o.add(e, &d, why)
		if d.Verdict == governance.Deny {
			f.deny(e, cause, &d)
		} else if why != "" {
			f.askAgainFor(e, &d, why, cause)
		}
	}
	return o
}

// foreseeOpen returns what rules would decide about the intents that have not begun, and changes nothing. Policies see
// the present budgets.
func (f *effects) foreseeOpen(next *rules, queued receipt.Queued) (o Opened) {
	was, unguarded := f.rules, *next
	unguarded.guard = nil // it counts the kernel's memory, which is not the candidate's
	f.rules = &unguarded
	defer func() { f.rules = was }()
	for _, e := range f.ledger.Unfinished() {
		if next.guard.ended() != nil {
			break
		}
		switch {
		case queued.Has(e):
			o.Queued++
		case e.State == receipt.StateInFlight:
			o.UnderWay++
			continue
		case !e.NotBegun():
			continue
		}
		d, why := f.wouldEnd(e)
		o.add(e, &d, why)
	}
	return o
}

// wouldEnd returns the decision of the rules in force about an intent that has not begun, and the reason why a person
// has to be asked, or asked again; "": nobody has to be asked.
func (g *gate) wouldEnd(e *receipt.Entry) (governance.Decision, string) {
	d := g.decideAgain(e, true)
	if e.State == receipt.StateAwaitingAnswer { // its next attempt is judged when there is an answer
		return d, ""
	}
	return d, g.mustAsk(e, &d)
}

// decideAgain asks the gate again about an intent. later: budgets do not matter now.
func (g *gate) decideAgain(e *receipt.Entry, later bool) governance.Decision {
	asker, _ := reducer.ParseCell(e.Intent.Cell) // names in the ledger have been parsed before
	req := governance.Request{Cap: e.Intent.Cap, Approved: e.Seen != nil, Waits: later}
	req.Step, _ = e.Intent.Step.Number(e.Intent.Cell)
	return g.decideOn(asker, &e.Intent, req)
}

// mustAsk returns the reason why a person has to be asked about an intent that the gate allows; "": none. An earlier
// approval holds for the intent as it was then.
func (g *gate) mustAsk(e *receipt.Entry, d *governance.Decision) string {
	if why := g.restsFor(d.Cap, askedAt(e)); why != "" {
		return why
	}
	if e.Seen == nil {
		return d.Reason
	}
	now := governance.ApprovalBasis(g.rules.manifest, e.Intent.Kind, d.Cap, d.Rules)
	differs := func(seen, now receipt.Hash) bool { return seen != receipt.Hash{} && seen != now }
	switch {
	case differs(e.Seen.Effect, now.Effect):
		return "the declaration of effect " + e.Intent.Kind + " is not what it was when a person was asked"
	case differs(e.Seen.Cap, now.Cap):
		return "capability " + d.Cap + " is not what it was when a person was asked"
	case d.Asks && differs(e.Seen.Rules, now.Rules):
		return "the policies that require approval are not those of when a person was asked"
	}
	return ""
}

// askedAt returns the record since which an intent awaits approval; 0: it does not.
func askedAt(e *receipt.Entry) uint64 {
	if e.State != receipt.StateAwaitingApproval {
		return 0
	}
	return e.Emitted
}

// askAgainFor has an intent that has not begun await approval, for the first time or anew, for a reason.
func (f *effects) askAgainFor(e *receipt.Entry, d *governance.Decision, why string, cause journal.Seq) {
	deadline := f.approvalDeadline(e.Intent.Kind)
	if e.State == receipt.StateAwaitingApproval {
		deadline = e.Deadline
	}
	b := journal.IntentAwaitingApproval{Rules: d.Rules, Deadline: deadline, Reason: why, Cap: d.Cap}
	id, seen := f.writeAwaitingApproval(&e.Intent, b, cause)
	f.ledger.AskAgain(e, deadline, uint64(id))
	e.Seen = seen
}

// mayStart reports whether the attempt of an open intent can start now. It asks the gate again if the rules or the
// tick are not those of the last judgement.
func (l *line) mayStart(e *receipt.Entry) bool {
	if e.Accepted() != "" || max(e.Emitted, e.Started) > uint64(max(l.since, l.ticked, l.rests[e.Intent.Cap])) {
		return true
	}
	d := l.decideAgain(e, true) // the line has looked at its budgets
	if d.Verdict == governance.Deny {
		l.deny(e, journal.Seq(e.Emitted), &d)
		return false
	}
	if why := l.mustAsk(e, &d); why != "" {
		l.askAgainFor(e, &d, why, journal.Seq(e.Emitted))
		return false
	}
	return true
}

// approve puts an intent that awaits approval before the gate again. The gate now asks for no approval, unless the
// person was asked about something else. A slot is granted with the next tick.
func (f *effects) approve(e *receipt.Entry, cause journal.Seq) {
	d := f.decideAgain(e, false)
	if d.Verdict == governance.Deny {
		f.deny(e, cause, &d)
		return
	}
	if why := f.mustAsk(e, &d); why != "" {
		f.askAgainFor(e, &d, why, cause)
		return
	}
	delete(f.rests, d.Cap) // it was looked at
	seen := governance.ApprovalBasis(f.rules.manifest, e.Intent.Kind, d.Cap, d.Rules)
	id := f.writeEmitted(&e.Intent, &d, "approved", cause)
	f.ledger.Approve(e, d.Cap, uint64(id))
	e.Seen = &seen
}

// deny ends an intent that is open or awaits approval. Its cell is told that nothing happened only if there was no
// attempt.
func (f *effects) deny(e *receipt.Entry, cause journal.Seq, d *governance.Decision) {
	if e.Attempt == e.Unused {
		id := f.writeDenied(&e.Intent, d.Code, d.Reason, d.Rules, cause)
		f.ledger.Refuse(e, uint64(id))
		f.keep(e)
		f.deliverReceipt(e, id, receipt.StatusDenied, receipt.Explanation(string(d.Code), d.Reason))
		return
	}
	reason := d.Reason
	if e.Uncertain {
		reason += "; nobody can tell whether an attempt before happened"
	}
	f.endIntent(e, cause, receipt.StatusRejected, receipt.OutcomePermanentFailure, receipt.Explanation(string(d.Code), reason))
}
