package world

import (
	"bytes"
	"errors"
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
	d := k.decide(asker, &in, in.Cap, false)
	in.Cap = d.Cap
	var e *receipt.Entry
	switch d.Verdict {
	case governance.Allow:
		id := k.writeEmitted(&in, &d, d.Verdict.String(), cause)
		e = k.ledger.Emit(in, uint64(id))
		k.reserve(e, d.Reserve)
	case governance.RequireApproval:
		e = k.park(in, d.Rules, cause)
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

// park has an intent wait for a person.
func (k *kernel) park(in receipt.Intent, rules []string, cause journal.Seq) *receipt.Entry {
	deadline := uint64(k.now + k.rules.manifest.Defaults.ApprovalTTL)
	if k.onHold {
		deadline = receipt.NoDeadline
	}
	return k.ledger.Park(in, deadline, uint64(k.writeParked(&in, rules, deadline, cause)))
}

func (k *kernel) writeParked(in *receipt.Intent, rules []string, deadline uint64, cause journal.Seq) journal.Seq {
	b := journal.IntentParked{
		Version: journal.V(journal.BodyVersion), Key: in.Key, Step: in.Step, Cell: in.Cell, Kind: in.Kind, Tag: in.Tag, Cap: in.Cap,
		Occurrence: in.Occurrence, Rules: rules, Deadline: deadline, Params: in.Params,
	}
	return k.note(journal.KindParked, cause, &b)
}

// decide asks the gate. capability is the one asked for.
func (k *kernel) decide(asker reducer.Cell, in *receipt.Intent, capability string, approved bool) governance.Decision {
	req := &k.request
	*req = governance.Request{
		World: k.rules.manifest.World, Cell: asker, Time: k.now,
		Kind: in.Kind, Params: in.Params, Tag: in.Tag, Cap: capability, Approved: approved,
		Context: k.rules.guard.context(), Caps: k.budgets.Caps, Accounts: governance.Accounts{World: k.budgets.World},
	}
	if c := k.cells.get(asker); c != nil {
		req.Step, req.Accounts.Cell = c.n, c.asked().account
	}
	k.rules.guard.item(len(in.Params), "params of", in.Kind, k.last)
	if k.over() {
		return governance.Decision{} // of which nothing will be left
	}
	if d, denied := k.paramsBreak(in.Kind, in.Params); denied {
		return d
	}
	d := k.rules.gate.Decide(req)
	if k.onHold && d.Verdict == governance.Allow && !approved {
		d.Verdict, d.Rules = governance.RequireApproval, append(d.Rules, ruleOnHold)
	}
	return d
}

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

// refuse denies a parked intent.
func (k *kernel) refuse(e *receipt.Entry, cause journal.Seq, code governance.Code, reason string, rules []string) {
	id := k.writeDenied(&e.Intent, code, reason, rules, cause)
	k.ledger.Refuse(e, uint64(id))
	k.keep(e)
	k.deliverReceipt(e, id, receipt.StatusDenied, journal.Explanation(string(code), reason))
}

// approve puts a parked intent before the gate again, which now asks for no
// approval. A slot is granted with the next tick.
func (k *kernel) approve(e *receipt.Entry, cause journal.Seq) error {
	asker, err := reducer.ParseCell(e.Intent.Cell)
	if err != nil {
		return err
	}
	d := k.decide(asker, &e.Intent, e.Intent.Cap, true)
	if d.Verdict != governance.Allow {
		k.refuse(e, cause, d.Code, d.Reason, d.Rules)
		return nil
	}
	id := k.writeEmitted(&e.Intent, &d, "approved", cause)
	k.ledger.Approve(e, d.Cap, uint64(id))
	k.reserve(e, d.Reserve)
	return nil
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
	params, err := rule.compensation.Eval(k.rules.guard.context(), r, &original.Intent)
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
