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

// askForEffect puts an effect of a cell's step before the gate.
func (f *effects) askForEffect(c *cell, i int, e *reducer.Effect, step journal.Seq) {
	id := receipt.NewStepID(c.name, c.n, i, c.history)
	in := f.intent(id, c.name, e.Kind, e.Params)
	in.Tag, in.Cap = e.Tag, e.Cap
	in.Occurrence = f.counts.add(c, e.Kind, in.Params)
	f.put(c, in, step)
}

// put decides about an intent of a cell. If the ledger has the intent (the step is taken again after a
// rollback), the recorded outcome answers; if it repeats an effect that a rollback left behind, that effect does;
// otherwise the gate judges it.
func (f *effects) put(c *cell, in receipt.Intent, cause journal.Seq) {
	if f.askAgain(c, &in, cause) {
		return
	}
	left := f.ledger.repeated(&in)
	if left != nil && f.askRepeat(c, in, left, cause) {
		return
	}
	asks := f.judge(c.id(), in, cause, nil)
	if asks.State != receipt.StateDenied {
		c.await(in.Key)
	}
	if left != nil {
		f.ledger.Repeat(asks, left)
	}
}

// intent gives an effect its identity.
func (g *ground) intent(step receipt.StepID, cell, kind string, params journal.Data) receipt.Intent {
	if len(params) == 0 {
		params = journal.Data(canon.Null)
	}
	return receipt.Intent{
		Key: receipt.NewKey(g.id, step, kind, params), Step: step, Cell: cell, Kind: kind, Params: bytes.Clone(params),
	}
}

// judge puts an intent before the gate and enters the verdict into the ledger. in.Cap is the requested
// capability ("": any). original is the intent that this one compensates, or nil.
func (f *effects) judge(asker reducer.Cell, in receipt.Intent, cause journal.Seq, original *receipt.Entry) *receipt.Entry {
	d := f.decide(asker, &in, false)
	in.Cap = d.Cap
	why := f.restsFor(d.Cap, 0)
	if d.Verdict == governance.Allow && why != "" {
		d.Verdict = governance.RequireApproval
	}
	var e *receipt.Entry
	switch d.Verdict {
	case governance.Allow:
		id := f.writeEmitted(&in, &d, d.Verdict.String(), cause)
		e = f.ledger.Emit(in, uint64(id))
	case governance.RequireApproval:
		e = f.askApproval(in, d.Rules, why, cause)
	default:
		id := f.writeDenied(&in, d.Code, d.Reason, d.Rules, cause)
		e = f.ledger.Deny(in, uint64(id))
	}
	if original != nil {
		e.For = &original.Intent.Key
	}
	if e.State == receipt.StateDenied {
		f.deliverReceipt(e, journal.Seq(e.Finished), receipt.StatusDenied, receipt.Explanation(string(d.Code), d.Reason))
	}
	return e
}

// askApproval has an intent await approval: rules ask for approval, or the capability rests (why).
func (f *effects) askApproval(in receipt.Intent, rules []string, why string, cause journal.Seq) *receipt.Entry {
	b := journal.IntentAwaitingApproval{Rules: rules, Deadline: f.approvalDeadline(in.Kind), Reason: why, Cap: in.Cap}
	id, seen := f.writeAwaitingApproval(&in, b, cause)
	e := f.ledger.AwaitApproval(in, b.Deadline, uint64(id))
	e.Seen = seen
	return e
}

// writeAwaitingApproval writes intent.awaiting_approval, with the reasons in b, and returns the digests that an approval is bound
// to.
func (g *ground) writeAwaitingApproval(in *receipt.Intent, b journal.IntentAwaitingApproval, cause journal.Seq) (journal.Seq, *receipt.ApprovalBasis) {
	b.Version = journal.V(journal.BodyVersion)
	b.Key, b.Step, b.Cell, b.Kind, b.Tag = in.Key, in.Step, in.Cell, in.Kind, in.Tag
	b.Occurrence, b.Params = in.Occurrence, in.Params
	b.Seen = governance.ApprovalBasis(g.rules.manifest, b.Kind, b.Cap, b.Rules)
	return g.writeRecord(journal.KindAwaitingApproval, cause, &b), &b.Seen
}

func (g *ground) writeEmitted(in *receipt.Intent, d *governance.Decision, decision string, cause journal.Seq) journal.Seq {
	g.emitted = journal.IntentEmitted{
		Version: journal.V(journal.BodyVersion), Key: in.Key, Step: in.Step, Cell: in.Cell, Kind: in.Kind, Tag: in.Tag, Cap: in.Cap,
		Occurrence: in.Occurrence, Decision: decision, Rules: d.Rules, Params: in.Params,
	}
	return g.writeRecord(journal.KindIntent, cause, &g.emitted)
}

func (g *ground) writeDenied(in *receipt.Intent, code governance.Code, reason string, rules []string, cause journal.Seq) journal.Seq {
	b := journal.IntentDenied{
		Version: journal.V(journal.BodyVersion), Key: in.Key, Step: in.Step, Cell: in.Cell, Kind: in.Kind, Tag: in.Tag, Cap: in.Cap,
		Occurrence: in.Occurrence, Code: string(code), Reason: reason, Rules: rules, Params: in.Params,
	}
	return g.writeRecord(journal.KindDenied, cause, &b)
}

// submitEffect takes an effect from a person. Gate and ledger treat it like an effect of a cell; its receipt
// goes to no cell.
func (f *effects) submitEffect(b journal.OperatorEffect) (receipt.Key, error) {
	if err := manifest.CheckKey(b.Actor); err != nil {
		return receipt.Key{}, refuse(ErrBadKey, "actor", "%v", err)
	}
	if _, ok := f.rules.manifest.Effects[b.Kind]; !ok {
		return receipt.Key{}, refuse(ErrNoEffect, "kind", "%q", b.Kind)
	}
	if most := f.rules.manifest.Limits.Payload; uint64(len(b.Params)) > most {
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
	f.operators++
	b.V, b.N, b.Reason = journal.BodyVersion, f.operators, journal.Text(b.Reason)
	id := f.noteInput(journal.KindOperator, &b)
	operator := reducer.Cell{Reducer: reducer.Operator, Key: b.Actor}
	step := receipt.StepID(operator.String() + "@" + strconv.FormatUint(b.N, 10))
	in := f.intent(step, operator.String(), b.Kind, b.Params)
	in.Cap = b.Cap
	f.judge(operator, in, id, nil)
	return in.Key, nil
}

// compensation returns the intent that compensates a failed intent which has left something behind outside, or
// nil if the kind declares no compensation, or it was tried already.
func (f *effects) compensation(original *receipt.Entry, r *receipt.Receipt) (*receipt.Intent, error) {
	rule := f.rules.effects[original.Intent.Kind]
	if rule == nil || rule.compensation == nil || original.For != nil {
		return nil, nil
	}
	if f.rules.guard.item(len(r.Payload), "the receipt of", original.Intent.Kind, f.last); f.over() {
		return nil, nil // the unit is thrown away
	}
	params, err := rule.compensation.Eval(r, &original.Intent)
	if err == nil && uint64(len(params)) > f.rules.manifest.Limits.Payload {
		err = errors.New("its params are larger than limits.payload")
	}
	if err != nil {
		return nil, err
	}
	step := original.Intent.Step + "!compensate"
	for {
		in := f.intent(step, original.Intent.Cell, rule.Compensate.Kind, params)
		switch e := f.ledger.Entry(in.Key); {
		case e == nil:
			return &in, nil
		case e.For != nil && *e.For == original.Intent.Key:
			return nil, nil
		}
		// A fork can take a step that its parent has taken: then there are two intents with the same step,
		// and each has a compensation of its own.
		step += receipt.StepID("~" + original.Intent.Key.String()[:16])
	}
}

// compensate puts a compensation before the gate.
func (f *effects) compensate(original *receipt.Entry, in receipt.Intent, cause journal.Seq) error {
	asker, err := reducer.ParseCell(in.Cell)
	if err != nil {
		return err
	}
	if asker.Reducer == reducer.Operator {
		in.Cap = original.Intent.Cap
	} else if c := f.cells.get(asker); c != nil && !original.Abandoned {
		in.Occurrence = f.counts.add(c, in.Kind, in.Params)
		f.touch(c)
	}
	f.judge(asker, in, cause, original)
	return nil
}
