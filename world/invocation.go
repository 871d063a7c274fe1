package world

import (
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// permit returns the permit of an intent's last attempt.
func (k *kernel) permit(e *receipt.Entry) receipt.Permit {
	return receipt.Permit{
		Intent: e.Intent, Attempt: e.Attempt, Nonce: e.Nonce,
		Time: k.rules.manifest.Clock.At(k.now), Inputs: e.Inputs,
		Accepted: e.Accepted(), AskUntil: e.AskUntil(), Unwanted: e.Accepted() != "" && k.cancelledByCell(e),
	}
}

// receive takes a receipt: it ends the attempt that it answers, and the intent
// unless another attempt or a compensation follows.
func (k *kernel) receive(data []byte) (journal.Seq, error) {
	r, err := k.genuine(data)
	if err != nil {
		return 0, err
	}
	return k.answered(r, data)
}

// receiveChecked is receive for a receipt that the kernel's own keyring has found genuine.
func (k *kernel) receiveChecked(c *receipt.Checked) (journal.Seq, error) {
	if err := k.withinLimit(c.Bytes()); err != nil {
		return 0, err
	}
	if c.Receipt().World != k.id { // the parent's
		return k.receive(c.Bytes())
	}
	return k.answered(c.Receipt(), c.Bytes())
}

// answered takes a genuine receipt.
func (k *kernel) answered(r *receipt.Receipt, data []byte) (journal.Seq, error) {
	switch err := k.ledger.Check(r); {
	case errors.Is(err, receipt.ErrLate):
		b := journal.Late{Version: journal.V(journal.BodyVersion), Receipt: data}
		id := k.note(journal.KindLate, 0, &b)
		k.ledger.Late(r)
		k.tasks = append(k.tasks, taskOf(receipt.Forget, k.ledger.Entry(r.Key), r.Attempt))
		return id, nil
	case err != nil:
		return 0, err
	}
	return k.finish(r, data)
}

// withinLimit refuses a receipt that is too large.
func (k *kernel) withinLimit(data []byte) error {
	if most := k.rules.manifest.Limits.Receipt; uint64(len(data)) > most {
		return fmt.Errorf("%w: %d bytes, the most is %d", receipt.ErrOverSize, len(data), most)
	}
	return nil
}

// genuine returns a receipt that was signed for this world, for whichever attempt. It
// stays until the next is asked about.
func (k *kernel) genuine(data []byte) (*receipt.Receipt, error) {
	if err := k.withinLimit(data); err != nil {
		return nil, err
	}
	r := &k.received
	if err := k.decoder.Decode(data, r); err != nil {
		return nil, err
	}
	if r.World != k.id {
		return nil, receipt.ErrWrongWorld
	}
	if k.keys == nil || k.keys.World() != k.id { // the parent's: the chain root that the fork names covers it
		return r, nil
	}
	if err := k.keys.Verify(r); err != nil && (!k.replaying || !errors.Is(err, receipt.ErrRevokedKey)) {
		return nil, err
	}
	return r, nil
}

// finish ends the attempt in flight that a receipt answers. data is what the
// journal is to hold of it.
func (k *kernel) finish(r *receipt.Receipt, data []byte) (journal.Seq, error) {
	k.finished = journal.Finished{Version: journal.V(journal.BodyVersion), Receipt: data}
	id := k.note(journal.KindFinished, 0, &k.finished)
	e := k.ledger.Finish(r, uint64(id))
	k.tasks = append(k.tasks, taskOf(receipt.Forget, e, e.Attempt))
	if err := k.follows(e, r, id); err != nil {
		return 0, err
	}
	k.grantAtBarrier()
	return id, nil
}

// taskOf is a task about an attempt that takes no more than its key and kind.
func taskOf(work receipt.Work, e *receipt.Entry, attempt uint64) receipt.Task {
	return receipt.Task{Work: work, Permit: receipt.Permit{
		Intent: receipt.Intent{Key: e.Intent.Key, Kind: e.Intent.Kind}, Attempt: attempt,
	}}
}

// follows does what follows from the receipt of an attempt.
func (k *kernel) follows(e *receipt.Entry, r *receipt.Receipt, id journal.Seq) error {
	k.charge(e, r, id)
	switch e.Outcome {
	case receipt.OutcomeRetryableFailure:
		if e.Accepted() != "" {
			k.asksOn(e, r, id)
			return nil
		}
		if k.goesOn(e, r, id) {
			return nil
		}
		e.Outcome = receipt.OutcomePermanentFailure
	case receipt.OutcomeCompensatable:
		in, err := k.compensation(e, r)
		if err != nil || in == nil {
			break // it stays as it is: there is nothing to make up for it with
		}
		k.wait(e, id)
		e.Held = receiptEvent(e.Intent.Tag, e.Intent.Kind, r.Status, r.Payload)
		k.ledger.Close(e)
		return k.compensate(e, *in, id)
	case receipt.OutcomeInputRequired:
		if k.asks(e, r, id) {
			return nil
		}
		e.Outcome = receipt.OutcomePermanentFailure
	case receipt.OutcomeAccepted:
		if k.accepts(e, r, id) {
			return nil
		}
		e.Outcome = receipt.OutcomePermanentFailure
	default: // it is the last word
	}
	k.ledger.Close(e)
	k.deliverReceipt(e, id, r.Status, r.Payload)
	return nil
}

// goesOn readies an intent for its next attempt, if it may have one. What was given
// back counts as never attempted: where nothing else was, and nobody waits for the
// intent any more, it is cancelled. What its cell has cancelled is not attempted again.
func (k *kernel) goesOn(e *receipt.Entry, r *receipt.Receipt, id journal.Seq) bool {
	givenBack, byCell := r.GivenBack(), k.cancelledByCell(e)
	unwanted := givenBack && e.Abandoned && e.Attempt == e.Unused+1
	if !givenBack && (byCell || !k.attemptsLeft(e)) || !unwanted && !byCell && !k.mayGoOn(e) {
		return false
	}
	k.wait(e, id)
	if givenBack {
		e.Unused++
	}
	k.ledger.Reopen(e, !givenBack)
	switch {
	case unwanted:
		k.cancel(e, id)
	case byCell:
		k.endCancelled(e, id)
	case !givenBack:
		k.tasks = append(k.tasks, taskOf(receipt.Retry, e, e.Attempt))
	}
	return true
}

// wait records that a receipt was not the last word on its intent.
func (k *kernel) wait(e *receipt.Entry, cause journal.Seq) {
	b := journal.IntentWaiting{Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Cell: e.Intent.Cell, Attempt: e.Attempt, Outcome: e.Outcome}
	k.note(journal.KindWaiting, cause, &b)
}

// attemptsLeft reports whether an intent may be attempted again. Attempts that asked
// a person, or the outside about what it has accepted, do not count.
func (k *kernel) attemptsLeft(e *receipt.Entry) bool {
	return e.Attempt-e.Unused-e.Polls()-uint64(len(e.Inputs)) < k.rules.manifest.Effects[e.Intent.Kind].Retry.Attempts
}

// grantAtBarrier grants where no cell has a turn left in the round.
func (k *kernel) grantAtBarrier() {
	if k.scheduler.left == 0 {
		k.grant()
	}
}

// errNotInFlight says that an attempt is not the one in flight or waiting. The
// host may be late; nothing is wrong.
var errNotInFlight = errors.New("world: the attempt is over")

// expire gives up the attempt in flight: nobody can tell whether it happened.
func (k *kernel) expire(key receipt.Key, attempt uint64, reason string) error {
	e := k.ledger.Entry(key)
	if e == nil || e.State != receipt.StateInFlight || e.Attempt != attempt {
		return errNotInFlight
	}
	reason = journal.Text(reason)
	b := journal.Expired{Version: journal.V(journal.BodyVersion), Key: key, Attempt: attempt, Reason: reason}
	id := k.note(journal.KindExpired, 0, &b)
	action := k.rules.manifest.Effects[e.Intent.Kind].OnInDoubt
	if action == manifest.InDoubtRetry && k.cancelledByCell(e) {
		action = manifest.InDoubtFail
	}
	if action == manifest.InDoubtRetry && (!k.attemptsLeft(e) || !k.mayRepeat(e)) {
		action = manifest.InDoubtPark
	}
	d := journal.InDoubt{Version: journal.V(journal.BodyVersion), Key: key, Cell: e.Intent.Cell, Attempt: attempt, Action: action, Reason: reason}
	doubt := k.note(journal.KindInDoubt, id, &d)
	switch action {
	case manifest.InDoubtRetry:
		k.keep(e)
		k.ledger.Reopen(e, true)
		k.tasks = append(k.tasks, taskOf(receipt.Retry, e, e.Attempt))
	case manifest.InDoubtFail:
		k.end(e, doubt, receipt.StatusRejected, receipt.OutcomePermanentFailure, journal.Explanation(codeInDoubt, reason))
	case manifest.InDoubtVerify:
		k.ledger.Doubt(e, true)
		k.tasks = append(k.tasks, receipt.Task{Work: receipt.Verify, Permit: k.permit(e)})
	default:
		k.ledger.Doubt(e, false)
	}
	return nil
}

// due ends the backoff before an intent's next attempt.
func (k *kernel) due(key receipt.Key, attempt uint64) error {
	e := k.ledger.Entry(key)
	if e == nil || e.State != receipt.StateOpen || !e.Waiting || e.Attempt != attempt {
		return errNotInFlight
	}
	b := journal.Due{Version: journal.V(journal.BodyVersion), Key: key, Attempt: attempt}
	k.note(journal.KindDue, 0, &b)
	k.ledger.Due(e)
	k.grantAtBarrier()
	return nil
}

// end ends an intent without a receipt of the outside.
func (k *kernel) end(e *receipt.Entry, cause journal.Seq, status receipt.Status, outcome receipt.Outcome, payload journal.Data) {
	id := k.writeEnded(e, cause, status, outcome, payload)
	k.ledger.End(e, outcome, uint64(id))
	k.keep(e)
	k.deliverReceipt(e, id, status, payload)
}

func (k *kernel) writeEnded(e *receipt.Entry, cause journal.Seq, status receipt.Status, outcome receipt.Outcome, payload journal.Data) journal.Seq {
	return k.note(journal.KindEnded, cause, &journal.IntentEnded{
		Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Cell: e.Intent.Cell, Step: e.Intent.Step,
		Status: status, Outcome: outcome, Payload: payload,
	})
}

// deliverReceipt brings a cell the end of its intent. The end of a compensation is the
// end of the intent that it was for.
func (k *kernel) deliverReceipt(e *receipt.Entry, record journal.Seq, status receipt.Status, payload journal.Data) {
	if e.For != nil {
		k.madeUp(e, record)
		return
	}
	k.bring(e, record, receiptEvent(e.Intent.Tag, e.Intent.Kind, status, payload))
}

// bring delivers a receipt to the cell of an intent, if that waits for it: a
// rollback may have led away. Operators have no cell.
func (k *kernel) bring(e *receipt.Entry, record journal.Seq, data journal.Data) {
	asker, err := reducer.ParseCell(e.Intent.Cell)
	if err != nil || asker.Reducer == reducer.Operator || e.Abandoned {
		return
	}
	c := k.cellFor(asker)
	if data = c.awaited(e.Intent.Key, data); k.isApart(e) {
		data = cancelled(data)
	}
	k.deliver(c, mail{record: record, name: reducer.ReceiptEvent, data: data})
}

// madeUp ends the intent that a compensation was for.
func (k *kernel) madeUp(compensation *receipt.Entry, cause journal.Seq) {
	e := k.ledger.Entry(*compensation.For)
	if compensation.State == receipt.StateCommitted {
		k.ledger.MadeUp(e)
	}
	held := e.Held
	e.Held = nil
	k.ledger.Change(e)
	why := journal.Explanation(string(e.Outcome), "compensation "+compensation.Intent.Key.String()+" has ended: "+string(compensation.State))
	id := k.writeEnded(e, cause, receipt.StatusError, e.Outcome, why)
	switch {
	case e.Undone != 0 && !k.awaits(e): // a rollback asked for it, and another led to where the cell had its receipt
	case e.State != receipt.StateCommitted:
		k.bring(e, id, held)
	case !e.Abandoned: // a rollback asked for the compensation, in vain, and the step was taken again
		k.recall(e, id)
	}
}

// awaits reports whether a cell waits for the end of its intent.
func (k *kernel) awaits(e *receipt.Entry) bool {
	asker, err := reducer.ParseCell(e.Intent.Cell)
	c := k.cells.get(asker)
	return err == nil && c != nil && slices.Contains(c.asked().awaits, e.Intent.Key)
}

// receiptEvent returns the data of the event that brings a cell its receipt.
func receiptEvent(tag, kind string, status receipt.Status, payload journal.Data) journal.Data {
	b := make([]byte, 0, 48+len(tag)+len(kind)+len(payload))
	b = canon.AppendMap(b, 4) // keys in canonical order: the shorter first
	b = canon.AppendText(canon.AppendText(b, "tag"), tag)
	b = canon.AppendText(canon.AppendText(b, "kind"), kind)
	b = canon.AppendText(canon.AppendText(b, "status"), string(status))
	return canon.AppendRaw(canon.AppendText(b, "payload"), payload)
}
