package world

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// ask puts an effect of a cell's step before the gate.
func (k *kernel) ask(c *cell, i int, e *reducer.Effect, step journal.Seq) {
	id := receipt.NewStepID(c.name, c.n, i, c.history)
	in := k.intent(id, c.name, e.Kind, e.Params)
	in.Tag, in.Cap = e.Tag, e.Cap
	in.Occurrence = k.countAsked(c, e.Kind, in.Params)
	k.put(c, in, step)
}

// put asks for an intent of a cell: the ledger, where it knows it; else the gate, if it repeats
// nothing that a rollback left behind.
func (k *kernel) put(c *cell, in receipt.Intent, cause journal.Seq) {
	if k.askAgain(c, &in, cause) {
		return
	}
	left := k.repeated(&in)
	if left != nil && k.askRepeat(c, in, left, cause) {
		return
	}
	asks := k.judge(c.id(), in, cause, nil)
	if asks.State != receipt.StateDenied {
		c.await(in.Key)
	}
	if left != nil {
		k.ledger.Repeat(asks, left)
	}
}

// intent gives an effect its identity.
func (k *kernel) intent(step receipt.StepID, cell, kind string, params journal.Data) receipt.Intent {
	if len(params) == 0 {
		params = journal.Data(canon.Null)
	}
	return receipt.Intent{
		Key: receipt.NewKey(k.id, step, kind, params), Step: step, Cell: cell, Kind: kind, Params: bytes.Clone(params),
	}
}

// judge puts an intent before the gate and enters it into the ledger. in.Cap is
// the capability asked for. original is the intent that it makes up for, or nil.
func (k *kernel) judge(asker reducer.Cell, in receipt.Intent, cause journal.Seq, original *receipt.Entry) *receipt.Entry {
	d := k.decide(asker, &in, false)
	in.Cap = d.Cap
	why := k.restsFor(d.Cap, 0)
	if d.Verdict == governance.Allow && why != "" {
		d.Verdict = governance.RequireApproval
	}
	var e *receipt.Entry
	switch d.Verdict {
	case governance.Allow:
		id := k.writeEmitted(&in, &d, d.Verdict.String(), cause)
		e = k.ledger.Emit(in, uint64(id))
	case governance.RequireApproval:
		e = k.park(in, d.Rules, why, cause)
	default:
		id := k.writeDenied(&in, d.Code, d.Reason, d.Rules, cause)
		e = k.ledger.Deny(in, uint64(id))
	}
	if original != nil {
		e.For = &original.Intent.Key
	}
	if e.State == receipt.StateDenied {
		k.deliverReceipt(e, journal.Seq(e.Finished), receipt.StatusDenied, journal.Explanation(string(d.Code), d.Reason))
	}
	return e
}

// park has an intent wait for a person. why says why it does beside the rules.
func (k *kernel) park(in receipt.Intent, rules []string, why string, cause journal.Seq) *receipt.Entry {
	b := journal.IntentParked{Rules: rules, Deadline: k.approvalDeadline(in.Kind), Reason: why, Cap: in.Cap}
	id, seen := k.writeParked(&in, b, cause)
	e := k.ledger.Park(in, b.Deadline, uint64(id))
	e.Seen = seen
	return e
}

// approvalDeadline returns the tick at which what is parked now is denied; of what a fork holds, none.
func (k *kernel) approvalDeadline(kind string) uint64 {
	if k.holds(kind) {
		return receipt.NoDeadline
	}
	return uint64(k.now.Plus(k.rules.manifest.Defaults.ApprovalTTL))
}

// writeParked writes that an intent is parked, with what b says of why, and returns what an
// approval is bound to.
func (k *kernel) writeParked(in *receipt.Intent, b journal.IntentParked, cause journal.Seq) (journal.Seq, *receipt.Seen) {
	b.Version = journal.V(journal.BodyVersion)
	b.Key, b.Step, b.Cell, b.Kind, b.Tag = in.Key, in.Step, in.Cell, in.Kind, in.Tag
	b.Occurrence, b.Params = in.Occurrence, in.Params
	b.Seen = governance.Seen(k.rules.manifest, b.Kind, b.Cap, b.Rules)
	return k.note(journal.KindParked, cause, &b), &b.Seen
}

// decide asks the gate about an intent. in.Cap is the capability asked for.
func (k *kernel) decide(asker reducer.Cell, in *receipt.Intent, approved bool) governance.Decision {
	return k.decideOn(asker, in, governance.Request{Cap: in.Cap, Approved: approved})
}

// decideOn asks the gate. asked is what only whoever asks for the intent knows of it.
func (k *kernel) decideOn(asker reducer.Cell, in *receipt.Intent, asked governance.Request) governance.Decision {
	req := &k.request
	*req = asked
	req.World, req.Cell, req.Time = k.rules.manifest.World, asker, k.now
	req.Kind, req.Params, req.Tag = in.Kind, in.Params, in.Tag
	req.Context, req.Caps, req.Accounts = k.rules.guard.context(), k.budgets.Caps, governance.Accounts{World: k.budgets.World}
	if c := k.cells.get(asker); c != nil {
		req.Accounts.Cell = c.asked().account
		if req.Step == 0 {
			req.Step = c.n
		}
	}
	k.rules.guard.item(len(in.Params), "params of", in.Kind, k.last)
	if k.over() {
		return governance.Decision{} // of which nothing will be left
	}
	if d, denied := k.paramsBreak(in.Kind, in.Params); denied {
		return d
	}
	d := k.rules.gate.Decide(req)
	if d.Verdict == governance.Allow && !req.Approved && k.holds(in.Kind) {
		d.Verdict, d.Rules = governance.RequireApproval, append(d.Rules, ruleOnHold)
	}
	return d
}

// holds reports whether effects of a kind wait for a person, whatever the rules say: in a fork.
func (k *kernel) holds(kind string) bool { return k.onHold && !slices.Contains(k.live, kind) }

// ruleOnHold has the effects of a fork wait for a person.
const ruleOnHold = "fork_on_hold"

func (k *kernel) writeEmitted(in *receipt.Intent, d *governance.Decision, decision string, cause journal.Seq) journal.Seq {
	k.emitted = journal.IntentEmitted{
		Version: journal.V(journal.BodyVersion), Key: in.Key, Step: in.Step, Cell: in.Cell, Kind: in.Kind, Tag: in.Tag, Cap: in.Cap,
		Occurrence: in.Occurrence, Decision: decision, Rules: d.Rules, Params: in.Params,
	}
	return k.note(journal.KindIntent, cause, &k.emitted)
}

func (k *kernel) writeDenied(in *receipt.Intent, code governance.Code, reason string, rules []string, cause journal.Seq) journal.Seq {
	b := journal.IntentDenied{
		Version: journal.V(journal.BodyVersion), Key: in.Key, Step: in.Step, Cell: in.Cell, Kind: in.Kind, Tag: in.Tag, Cap: in.Cap,
		Occurrence: in.Occurrence, Code: string(code), Reason: reason, Rules: rules, Params: in.Params,
	}
	return k.note(journal.KindDenied, cause, &b)
}

// submitEffect takes an effect that a person asks for. It goes the road of any
// other; its receipt reaches no cell.
func (k *kernel) submitEffect(b journal.OperatorEffect) (receipt.Key, error) {
	if k.tickOpen() {
		return receipt.Key{}, errTickOpen
	}
	if err := manifest.CheckKey(b.Actor); err != nil {
		return receipt.Key{}, refuse(ErrBadKey, "actor", "%v", err)
	}
	if _, ok := k.rules.manifest.Effects[b.Kind]; !ok {
		return receipt.Key{}, refuse(ErrNoEffect, "kind", "%q", b.Kind)
	}
	if most := k.rules.manifest.Limits.Payload; uint64(len(b.Params)) > most {
		return receipt.Key{}, refuse(ErrTooLarge, "params", "limits.payload is %d bytes, the params have %d", most, len(b.Params))
	}
	if b.Reason == "" {
		return receipt.Key{}, refuse(ErrNoReason, "reason", "an operator's effect needs one")
	}
	if len(b.Params) == 0 {
		b.Params = journal.Data(canon.Null)
	}
	if err := canon.Valid(b.Params); err != nil {
		return receipt.Key{}, refuse(ErrBadData, "params", "%v", err)
	}
	k.operators++
	b.V, b.N, b.Reason = journal.BodyVersion, k.operators, journal.Text(b.Reason)
	id := k.noteInput(journal.KindOperator, &b)
	operator := reducer.Cell{Reducer: reducer.Operator, Key: b.Actor}
	step := receipt.StepID(operator.String() + "@" + strconv.FormatUint(b.N, 10))
	in := k.intent(step, operator.String(), b.Kind, b.Params)
	in.Cap = b.Cap
	k.judge(operator, in, id, nil)
	return in.Key, nil
}

// compensation returns the intent that makes up for one that failed and left
// something behind, or nil where its kind declares none, or where it was tried.
func (k *kernel) compensation(original *receipt.Entry, r *receipt.Receipt) (*receipt.Intent, error) {
	rule := k.rules.effects[original.Intent.Kind]
	if rule == nil || rule.compensation == nil || original.For != nil {
		return nil, nil
	}
	if k.rules.guard.item(len(r.Payload), "the receipt of", original.Intent.Kind, k.last); k.over() {
		return nil, nil // of which nothing will be left
	}
	params, err := rule.compensation.Eval(r, &original.Intent)
	if err == nil && uint64(len(params)) > k.rules.manifest.Limits.Payload {
		err = errors.New("its params are larger than limits.payload")
	}
	if err != nil {
		return nil, err
	}
	step := original.Intent.Step + "!compensate"
	for {
		in := k.intent(step, original.Intent.Cell, rule.Compensate.Kind, params)
		switch e := k.ledger.Entry(in.Key); {
		case e == nil:
			return &in, nil
		case e.For != nil && *e.For == original.Intent.Key:
			return nil, nil
		}
		// A fork takes a step that its parent has taken: one is the parent's intent,
		// the other its own, and each has its own compensation.
		step += receipt.StepID("~" + original.Intent.Key.String()[:16])
	}
}

// compensate puts the intent that makes up for another one before the gate.
func (k *kernel) compensate(original *receipt.Entry, in receipt.Intent, cause journal.Seq) error {
	asker, err := reducer.ParseCell(in.Cell)
	if err != nil {
		return err
	}
	if asker.Reducer == reducer.Operator {
		in.Cap = original.Intent.Cap
	} else if c := k.cells.get(asker); c != nil && !original.Abandoned {
		in.Occurrence = k.countAsked(c, in.Kind, in.Params)
		k.touch(c)
	}
	k.judge(asker, in, cause, original)
	return nil
}
