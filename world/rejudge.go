package world

import (
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// Every attempt is judged by the rules in force, and in the tick, in which it starts: what is
// not begun goes through the gate again where other rules are applied, where a person approves
// it, and where its attempt starts later than it was judged.

// Opened is what rules make of the intents that are not begun when they are applied.
type Opened struct {
	Open     uint64   `json:"open"`      // that are not begun
	Queued   uint64   `json:"queued"`    // of Open: permitted all the same; they are taken back first. 0 after that
	UnderWay uint64   `json:"under_way"` // in flight and begun: an apply waits for them. 0 after that
	Denied   uint64   `json:"denied"`
	Asked    uint64   `json:"asked"` // of a person, who was not asked, or about something else
	Groups   []Judged `json:"by"`    // by what decides; at most governance.MaxListed
	First    []Judged `json:"first"` // one by one, in their order; at most governance.MaxListed
}

// Judged is an intent, or some that are judged alike, and what the gate says.
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

// add counts an intent; why is why a person is asked, empty: it goes on.
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

// judgeOpen puts all that is not begun before the gate again: other rules are in force since a
// record. What is in flight or in doubt stays; its next attempt is judged when it starts.
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

// foreseeOpen says what rules would make of what is not begun, and changes nothing. To a policy
// that looks at budgets these are as they are now.
func (f *effects) foreseeOpen(next *rules, queued receipt.Queued) (o Opened) {
	was, unguarded := f.rules, *next
	unguarded.guard = nil // it counts what the kernel holds, which is not the candidate's
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

// wouldEnd returns what the rules in force say about an intent that is not begun, and why a
// person has to be asked about it, or asked again; empty: it goes on as it stands.
func (g *gate) wouldEnd(e *receipt.Entry) (governance.Decision, string) {
	d := g.decideAgain(e, true)
	if e.State == receipt.StateAwaitingAnswer { // its next attempt is judged when there is an answer
		return d, ""
	}
	return d, g.mustAsk(e, &d)
}

// decideAgain asks the gate about an intent that it has judged before, as it was asked for.
// later says that its budgets do not matter now.
func (g *gate) decideAgain(e *receipt.Entry, later bool) governance.Decision {
	asker, _ := reducer.ParseCell(e.Intent.Cell) // names in the ledger have been parsed before
	req := governance.Request{Cap: e.Intent.Cap, Approved: e.Seen != nil, Waits: later}
	req.Step, _ = e.Intent.Step.Number(e.Intent.Cell)
	return g.decideOn(asker, &e.Intent, req)
}

// mustAsk returns why a person has to be asked about what the gate allows; empty: nobody has.
// What was approved was approved as it was then.
func (g *gate) mustAsk(e *receipt.Entry, d *governance.Decision) string {
	if why := g.restsFor(d.Cap, askedAt(e)); why != "" {
		return why
	}
	if e.Seen == nil {
		return d.Reason
	}
	now := governance.Seen(g.rules.manifest, e.Intent.Kind, d.Cap, d.Rules)
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

// askedAt returns the record by which an intent awaits approval, 0 of one that is not.
func askedAt(e *receipt.Entry) uint64 {
	if e.State != receipt.StateAwaitingApproval {
		return 0
	}
	return e.Emitted
}

// askAgainFor asks a person about an intent that is not begun, or once more, and says why.
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

// mayStart reports whether the attempt of an open intent can start now: the gate is asked again
// where the rules or the tick are not those by which it judged the intent last.
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

// approve puts an intent that awaits approval before the gate again, which now asks for no
// approval, unless a person was asked about something else. A slot is granted with the next tick.
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
	seen := governance.Seen(f.rules.manifest, e.Intent.Kind, d.Cap, d.Rules)
	id := f.writeEmitted(&e.Intent, &d, "approved", cause)
	f.ledger.Approve(e, d.Cap, uint64(id))
	e.Seen = &seen
}

// deny ends an intent that is open or awaits approval. Its cell is told that nothing happened only
// where nothing was attempted.
func (f *effects) deny(e *receipt.Entry, cause journal.Seq, d *governance.Decision) {
	if e.Attempt == e.Unused {
		id := f.writeDenied(&e.Intent, d.Code, d.Reason, d.Rules, cause)
		f.ledger.Refuse(e, uint64(id))
		f.keep(e)
		f.deliverReceipt(e, id, receipt.StatusDenied, journal.Explanation(string(d.Code), d.Reason))
		return
	}
	reason := d.Reason
	if e.Uncertain {
		reason += "; nobody can tell whether an attempt before happened"
	}
	f.endIntent(e, cause, receipt.StatusRejected, receipt.OutcomePermanentFailure, journal.Explanation(string(d.Code), reason))
}
