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
func (f *effects) permit(e *receipt.Entry) receipt.Permit {
	return receipt.Permit{
		Intent: e.Intent, Attempt: e.Attempt, Nonce: e.Nonce,
		Time: f.rules.manifest.Clock.At(f.now), Inputs: e.Inputs,
		Accepted: e.Accepted(), AskUntil: e.AskUntil(), Unwanted: e.Accepted() != "" && f.cancelledByCell(e),
	}
}

// receive takes a receipt: it ends the attempt that it answers, and the intent
// unless another attempt or a compensation follows.
func (f *effects) receive(data []byte) (journal.Seq, error) {
	r, err := f.genuine(data)
	if err != nil {
		return 0, err
	}
	return f.answered(r, data)
}

// receiveChecked is receive for a receipt that the kernel's own keyring has found genuine.
func (f *effects) receiveChecked(c *receipt.Checked) (journal.Seq, error) {
	if err := f.withinLimit(c.Bytes()); err != nil {
		return 0, err
	}
	if c.Receipt().World != f.id { // the parent's
		return f.receive(c.Bytes())
	}
	return f.answered(c.Receipt(), c.Bytes())
}

// answered takes a genuine receipt.
func (f *effects) answered(r *receipt.Receipt, data []byte) (journal.Seq, error) {
	switch err := f.ledger.Check(r); {
	case errors.Is(err, receipt.ErrLate):
		b := journal.Late{Version: journal.V(journal.BodyVersion), Receipt: data}
		id := f.note(journal.KindLate, 0, &b)
		f.ledger.Late(r)
		f.tasks = append(f.tasks, taskOf(receipt.Forget, f.ledger.Entry(r.Key), r.Attempt))
		return id, nil
	case err != nil:
		return 0, err
	}
	return f.finish(r, data)
}

// withinLimit refuses a receipt that is too large.
func (s *receipts) withinLimit(data []byte) error {
	if most := s.rules.manifest.Limits.Receipt; uint64(len(data)) > most {
		return fmt.Errorf("%w: %d bytes, the most is %d", receipt.ErrOverSize, len(data), most)
	}
	return nil
}

// genuine returns a receipt that was signed for this world, for whichever attempt. It
// stays until the next is asked about.
func (s *receipts) genuine(data []byte) (*receipt.Receipt, error) {
	if err := s.withinLimit(data); err != nil {
		return nil, err
	}
	r := &s.received
	if err := s.decoder.Decode(data, r); err != nil {
		return nil, err
	}
	if r.World != s.id {
		return nil, receipt.ErrWrongWorld
	}
	if s.keys == nil || s.keys.World() != s.id { // the parent's: the chain root that the fork names covers it
		return r, nil
	}
	if err := s.keys.Verify(r); err != nil && (!s.replaying || !errors.Is(err, receipt.ErrRevokedKey)) {
		return nil, err
	}
	return r, nil
}

// finish ends the attempt in flight that a receipt answers. data is what the
// journal is to hold of it.
func (f *effects) finish(r *receipt.Receipt, data []byte) (journal.Seq, error) {
	f.finished = journal.Finished{Version: journal.V(journal.BodyVersion), Receipt: data}
	id := f.note(journal.KindFinished, 0, &f.finished)
	e := f.ledger.Finish(r, uint64(id))
	f.tasks = append(f.tasks, taskOf(receipt.Forget, e, e.Attempt))
	if err := f.follows(e, r, id); err != nil {
		return 0, err
	}
	f.grantAtBarrier()
	return id, nil
}

// taskOf is a task about an attempt that takes no more than its key and kind.
func taskOf(work receipt.Work, e *receipt.Entry, attempt uint64) receipt.Task {
	return receipt.Task{Work: work, Permit: receipt.Permit{
		Intent: receipt.Intent{Key: e.Intent.Key, Kind: e.Intent.Kind}, Attempt: attempt,
	}}
}

// next is what follows from the receipt of an attempt. The zero value says that it is the last
// word on its intent.
type next struct {
	goesOn   bool
	unwanted bool            // nothing was attempted, and nobody waits for the intent any more
	byCell   bool            // the cell that waits for it has cancelled it
	makesUp  *receipt.Intent // nil: none does
}

// next decides what follows from the receipt of an attempt, and changes nothing. What was
// given back counts as never attempted. What its cell has cancelled is not attempted again.
func (f *effects) next(e *receipt.Entry, r *receipt.Receipt) (n next) {
	var err error
	switch e.Outcome {
	case receipt.OutcomeRetryableFailure:
		if e.Accepted() != "" {
			return next{goesOn: true}
		}
		givenBack := r.GivenBack()
		n.byCell, n.unwanted = f.cancelledByCell(e), givenBack && e.Abandoned && e.Attempt == e.Unused+1
		n.goesOn = (givenBack || !n.byCell && f.attemptsLeft(e)) && (n.unwanted || n.byCell || f.mayGoOn(e))
	case receipt.OutcomeCompensatable:
		n.makesUp, err = f.compensation(e, r)
		n.goesOn = err == nil && n.makesUp != nil // else it stays as it is
	case receipt.OutcomeInputRequired:
		_, err = receipt.DecodeQuestion(r.Payload)
		n.goesOn = err == nil && len(e.Inputs) < receipt.MaxInputs && !f.cancelledByCell(e)
	case receipt.OutcomeAccepted:
		_, err = receipt.DecodeAccepted(r.Payload)
		n.goesOn = err == nil
	default:
	}
	return n
}

// follows does what follows from the receipt of an attempt.
func (f *effects) follows(e *receipt.Entry, r *receipt.Receipt, id journal.Seq) error {
	f.charge(e, r, id)
	n := f.next(e, r)
	if !n.goesOn {
		f.ledger.Close(e)
		f.deliverReceipt(e, id, r.Status, r.Payload)
		return nil
	}
	b := journal.IntentWaiting{Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Cell: e.Intent.Cell, Attempt: e.Attempt, Outcome: e.Outcome}
	f.note(journal.KindWaiting, id, &b)
	if n.makesUp != nil {
		e.Held = receiptEvent(e.Intent.Tag, e.Intent.Kind, r.Status, r.Payload)
		f.ledger.Close(e)
		return f.compensate(e, *n.makesUp, id)
	}
	f.ledger.GoOn(e, r)
	switch {
	case e.NeedsInput():
		f.bindAnswer(e)
	case n.unwanted:
		f.cancel(e, id)
	case n.byCell:
		f.endCancelled(e, id)
	case !r.GivenBack():
		f.tasks = append(f.tasks, taskOf(receipt.Retry, e, e.Attempt))
	}
	return nil
}

// attemptsLeft reports whether an intent may be attempted again. Attempts that asked
// a person, or the outside about what it has accepted, do not count.
func (f *effects) attemptsLeft(e *receipt.Entry) bool {
	return e.Attempt-e.Unused-e.Polls()-uint64(len(e.Inputs)) < f.rules.manifest.Effects[e.Intent.Kind].Retry.Attempts
}

// grantAtBarrier grants where no cell has a turn left in the round.
func (f *effects) grantAtBarrier() {
	if f.scheduler.left == 0 {
		f.grant()
	}
}

// errNotInFlight says that an attempt is not the one in flight or waiting. The
// host may be late; nothing is wrong.
var errNotInFlight = errors.New("world: the attempt is over")

// expire gives up the attempt in flight: nobody can tell whether it happened.
func (f *effects) expire(key receipt.Key, attempt uint64, reason string) error {
	e := f.ledger.Entry(key)
	if e == nil || e.State != receipt.StateInFlight || e.Attempt != attempt {
		return errNotInFlight
	}
	reason = journal.Text(reason)
	b := journal.Expired{Version: journal.V(journal.BodyVersion), Key: key, Attempt: attempt, Reason: reason}
	id := f.note(journal.KindExpired, 0, &b)
	action := f.rules.manifest.Effects[e.Intent.Kind].OnInDoubt
	if action == manifest.InDoubtRetry && f.cancelledByCell(e) {
		action = manifest.InDoubtFail
	}
	if action == manifest.InDoubtRetry && (!f.attemptsLeft(e) || !f.mayRepeat(e)) {
		action = manifest.InDoubtPark
	}
	d := journal.InDoubt{Version: journal.V(journal.BodyVersion), Key: key, Cell: e.Intent.Cell, Attempt: attempt, Action: action, Reason: reason}
	doubt := f.note(journal.KindInDoubt, id, &d)
	switch action {
	case manifest.InDoubtRetry:
		f.keep(e)
		f.ledger.Reopen(e, true)
		f.tasks = append(f.tasks, taskOf(receipt.Retry, e, e.Attempt))
	case manifest.InDoubtFail:
		f.end(e, doubt, receipt.StatusRejected, receipt.OutcomePermanentFailure, journal.Explanation(codeInDoubt, reason))
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
	f.note(journal.KindDue, 0, &b)
	f.ledger.Due(e)
	f.grantAtBarrier()
	return nil
}

// end ends an intent without a receipt of the outside.
func (f *effects) end(e *receipt.Entry, cause journal.Seq, status receipt.Status, outcome receipt.Outcome, payload journal.Data) {
	id := f.writeEnded(e, cause, status, outcome, payload)
	f.ledger.End(e, outcome, uint64(id))
	f.keep(e)
	f.deliverReceipt(e, id, status, payload)
}

func (g *ground) writeEnded(e *receipt.Entry, cause journal.Seq, status receipt.Status, outcome receipt.Outcome, payload journal.Data) journal.Seq {
	return g.note(journal.KindEnded, cause, &journal.IntentEnded{
		Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Cell: e.Intent.Cell, Step: e.Intent.Step,
		Status: status, Outcome: outcome, Payload: payload,
	})
}

// deliverReceipt brings a cell the end of its intent. The end of a compensation is the
// end of the intent that it was for.
func (f *effects) deliverReceipt(e *receipt.Entry, record journal.Seq, status receipt.Status, payload journal.Data) {
	if e.For != nil {
		f.madeUp(e, record)
		return
	}
	f.bring(e, record, receiptEvent(e.Intent.Tag, e.Intent.Kind, status, payload))
}

// bring delivers a receipt to the cell of an intent, if that waits for it: a
// rollback may have led away. Operators have no cell.
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

// madeUp ends the intent that a compensation was for.
func (f *effects) madeUp(compensation *receipt.Entry, cause journal.Seq) {
	e := f.ledger.Entry(*compensation.For)
	if compensation.State == receipt.StateCommitted {
		f.ledger.MadeUp(e)
	}
	held := e.Held
	e.Held = nil
	f.ledger.Change(e)
	why := journal.Explanation(string(e.Outcome), "compensation "+compensation.Intent.Key.String()+" has ended: "+string(compensation.State))
	id := f.writeEnded(e, cause, receipt.StatusError, e.Outcome, why)
	switch {
	case e.Undone != 0 && !f.awaits(e): // a rollback asked for it, and another led to where the cell had its receipt
	case e.State != receipt.StateCommitted:
		f.bring(e, id, held)
	case !e.Abandoned: // a rollback asked for the compensation, in vain, and the step was taken again
		f.recall(e, id)
	}
}

// awaits reports whether a cell waits for the end of its intent.
func (r *roster) awaits(e *receipt.Entry) bool {
	c := r.cells.named(e.Intent.Cell)
	return c != nil && slices.Contains(c.asked().awaits, e.Intent.Key)
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
