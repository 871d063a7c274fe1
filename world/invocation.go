package world

import (
	"errors"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// permit returns the permit of an intent's last attempt.
func (f *effects) permit(e *receipt.Entry) receipt.Permit {
	return receipt.Permit{
		Intent: e.Intent, Attempt: e.Attempt, Nonce: e.Nonce,
		Time: f.rules.manifest.Clock.At(f.now), Inputs: e.Inputs,
		Accepted: e.Accepted(), AskUntil: e.AskUntil(), Unwanted: e.Accepted() != "" && f.cancelledByCell(e),
	}
}

// grantAtBarrier is grant, if the round has no turn left.
func (f *effects) grantAtBarrier() {
	if f.scheduler.left == 0 {
		f.grant()
	}
}

// errNotInFlight means that an attempt is not the one in flight or waiting: the host was late, and nothing is
// wrong.
var errNotInFlight = errors.New("world: the attempt is over")

// expire ends the attempt in flight without an answer: nobody can tell whether the effect happened. The
// effect's on_in_doubt says what follows: another attempt, a failure, a verifier, or a person.
func (f *effects) expire(key receipt.Key, attempt uint64, reason string) error {
	e := f.ledger.Entry(key)
	if e == nil || e.State != receipt.StateInFlight || e.Attempt != attempt {
		return errNotInFlight
	}
	reason = journal.Text(reason)
	b := journal.Expired{Version: journal.V(journal.BodyVersion), Key: key, Attempt: attempt, Reason: reason}
	id := f.writeRecord(journal.KindExpired, 0, &b)
	action := f.rules.manifest.Effects[e.Intent.Kind].OnInDoubt
	if action == manifest.InDoubtRetry && f.cancelledByCell(e) {
		action = manifest.InDoubtFail
	}
	if action == manifest.InDoubtRetry && (!f.attemptsLeft(e) || !f.mayRepeat(e)) {
		action = manifest.InDoubtAsk
	}
	d := journal.InDoubt{Version: journal.V(journal.BodyVersion), Key: key, Cell: e.Intent.Cell, Attempt: attempt, Action: action, Reason: reason}
	doubt := f.writeRecord(journal.KindInDoubt, id, &d)
	switch action {
	case manifest.InDoubtRetry:
		f.keep(e)
		f.ledger.Reopen(e, true)
		f.tasks = append(f.tasks, e.Task(receipt.Retry, e.Attempt))
	case manifest.InDoubtFail:
		f.endIntent(e, doubt, receipt.StatusRejected, receipt.OutcomePermanentFailure, receipt.Explanation(codeInDoubt, reason))
	case manifest.InDoubtVerify:
		f.ledger.Doubt(e, true)
		f.tasks = append(f.tasks, receipt.Task{Work: receipt.Verify, Permit: f.permit(e)})
	default:
		f.ledger.Doubt(e, false)
	}
	return nil
}

// due ends the backoff before an intent's next attempt.
func (f *effects) due(key receipt.Key, attempt uint64) error {
	e := f.ledger.Entry(key)
	if e == nil || e.State != receipt.StateOpen || !e.Waiting || e.Attempt != attempt {
		return errNotInFlight
	}
	b := journal.Due{Version: journal.V(journal.BodyVersion), Key: key, Attempt: attempt}
	f.writeRecord(journal.KindDue, 0, &b)
	f.ledger.Due(e)
	f.grantAtBarrier()
	return nil
}

// endIntent ends an intent without a receipt of the outside.
func (f *effects) endIntent(e *receipt.Entry, cause journal.Seq, status receipt.Status, outcome receipt.Outcome, payload journal.Data) {
	id := f.writeEnded(e, cause, status, outcome, payload)
	f.ledger.End(e, outcome, uint64(id))
	f.keep(e)
	f.deliverReceipt(e, id, status, payload)
}

func (g *ground) writeEnded(e *receipt.Entry, cause journal.Seq, status receipt.Status, outcome receipt.Outcome, payload journal.Data) journal.Seq {
	return g.writeRecord(journal.KindEnded, cause, &journal.IntentEnded{
		Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Cell: e.Intent.Cell, Step: e.Intent.Step,
		Status: status, Outcome: outcome, Payload: payload,
	})
}

// deliverReceipt tells a cell the outcome of its intent. The end of a compensation ends the compensated
// intent.
func (f *effects) deliverReceipt(e *receipt.Entry, record journal.Seq, status receipt.Status, payload journal.Data) {
	if e.For != nil {
		f.madeUp(e, record)
		return
	}
	f.bring(e, record, receiptEvent(e.Intent.Tag, e.Intent.Kind, status, payload))
}

// bring delivers a receipt to the intent's cell, if the cell still waits for it: after a rollback it may not.
// Operators have no cell.
func (f *effects) bring(e *receipt.Entry, record journal.Seq, data journal.Data) {
	if isOperators(e) || e.Abandoned {
		return
	}
	c := f.cells.named(e.Intent.Cell)
	if c == nil {
		c = &cell{name: e.Intent.Cell, history: f.lineage}
	}
	if data = c.awaited(e.Intent.Key, data); f.isApart(e) {
		data = cancelled(data)
	}
	f.deliver(c, mail{record: record, name: reducer.ReceiptEvent, data: data})
}

// madeUp ends the compensated intent of a compensation.
func (f *effects) madeUp(compensation *receipt.Entry, cause journal.Seq) {
	e := f.ledger.Entry(*compensation.For)
	if compensation.State == receipt.StateCommitted {
		f.ledger.MadeUp(e)
	}
	held := e.Held
	e.Held = nil
	f.ledger.Change(e)
	why := receipt.Explanation(string(e.Outcome), "compensation "+compensation.Intent.Key.String()+" has ended: "+string(compensation.State))
	id := f.writeEnded(e, cause, receipt.StatusError, e.Outcome, why)
	switch {
	case e.Undone != 0 && !f.awaits(e): // a rollback asked for it, and another led to where the cell had its receipt
	case e.State != receipt.StateCommitted:
		f.bring(e, id, held)
	case !e.Abandoned: // a rollback asked for the compensation, in vain, and the step was taken again
		f.recall(e, id)
	}
}

// cancel ends an intent without an attempt. No cell waits for it, so none is told.
func (f *effects) cancel(e *receipt.Entry, cause journal.Seq) {
	f.release(e)
	why := receipt.Explanation("rolled_back", "a rollback left it behind before anything was attempted")
	id := f.writeEnded(e, cause, receipt.StatusCancelled, receipt.OutcomePermanentFailure, why)
	f.ledger.Cancel(e, uint64(id))
}

// endCancelled ends an intent that its cell has cancelled and that is not under way.
func (f *effects) endCancelled(e *receipt.Entry, cause journal.Seq) {
	status, code, why := receipt.StatusRejected, codeCancelled, "its cell cancelled it before the next attempt"
	switch {
	case e.Untouched():
		status, why = receipt.StatusCancelled, "its cell cancelled it before anything was attempted"
	case e.Uncertain:
		code, why = codeInDoubt, "its cell cancelled it, and nobody can tell whether an attempt before happened"
	}
	payload := receipt.Explanation(code, why)
	id := f.writeEnded(e, cause, status, receipt.OutcomePermanentFailure, payload)
	f.ledger.Withdraw(e, uint64(id))
	f.deliverReceipt(e, id, status, payload)
}
