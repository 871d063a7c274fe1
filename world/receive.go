package world

import (
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// receipts decodes and verifies receipts.
type receipts struct {
	*ground

	keys     *receipt.Keyring // nil: receipts are not verified, see Replay
	decoder  receipt.Decoder
	received receipt.Receipt // see genuine
}

// receive takes a receipt. It ends the attempt, and the intent too, unless another attempt or a
// compensation follows.
func (f *effects) receive(data []byte) (journal.Seq, error) {
	r, err := f.genuine(data)
	if err != nil {
		return 0, err
	}
	return f.answered(r, data)
}

// receiveChecked is receive for a receipt that the kernel's keyring has verified already.
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
		id := f.writeRecord(journal.KindLate, 0, &b)
		f.ledger.Late(r)
		f.tasks = append(f.tasks, f.ledger.Entry(r.Key).Task(receipt.Forget, r.Attempt))
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

// genuine decodes a receipt and verifies its signature for this world. The result is valid until the next
// call.
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
	if s.keys == nil || s.keys.World() != s.id { // a parent's receipt: the fork names a chain root that covers it
		return r, nil
	}
	if err := s.keys.Verify(r); err != nil && (!s.replaying || !errors.Is(err, receipt.ErrRevokedKey)) {
		return nil, err
	}
	return r, nil
}

// finish ends the attempt in flight of a receipt; data are the bytes for the journal.
func (f *effects) finish(r *receipt.Receipt, data []byte) (journal.Seq, error) {
	f.finished = journal.Finished{Version: journal.V(journal.BodyVersion), Receipt: data}
	id := f.writeRecord(journal.KindFinished, 0, &f.finished)
	e := f.ledger.Finish(r, uint64(id))
	f.tasks = append(f.tasks, e.Task(receipt.Forget, e.Attempt))
	if err := f.follows(e, r, id); err != nil {
		return 0, err
	}
	f.grantAtBarrier()
	return id, nil
}

// consequence is what a receipt leads to. The zero value: the receipt ends the intent.
type consequence struct {
	goesOn   bool
	unwanted bool            // the attempt had not begun, and no cell waits for the intent any more
	byCell   bool            // the waiting cell has cancelled the intent
	makesUp  *receipt.Intent // the compensation; nil: none
}

// consequenceOf decides the consequence of a receipt and changes nothing. An attempt that was given back counts as
// never made. An intent that its cell has cancelled is not attempted again. After the outside has accepted work,
// attempts only ask for its result: they use no budget, and go on until there is an answer.
func (f *effects) consequenceOf(e *receipt.Entry, r *receipt.Receipt) (n consequence) {
	var err error
	switch e.Outcome {
	case receipt.OutcomeRetryableFailure:
		if e.Accepted() != "" {
			return consequence{goesOn: true}
		}
		givenBack := r.GivenBack()
		n.byCell, n.unwanted = f.cancelledByCell(e), givenBack && e.Abandoned && e.Attempt == e.Unused+1
		n.goesOn = (givenBack || !n.byCell && f.attemptsLeft(e)) && (n.unwanted || n.byCell || f.mayGoOn(e))
	case receipt.OutcomeCompensatable:
		n.makesUp, err = f.compensation(e, r)
		n.goesOn = err == nil && n.makesUp != nil // else the failure stands
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

// follows carries out the consequence of a receipt.
func (f *effects) follows(e *receipt.Entry, r *receipt.Receipt, id journal.Seq) error {
	f.charge(e, r, id)
	n := f.consequenceOf(e, r)
	if !n.goesOn {
		f.ledger.Close(e)
		f.deliverReceipt(e, id, r.Status, r.Payload)
		return nil
	}
	b := journal.IntentWaiting{Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Cell: e.Intent.Cell, Attempt: e.Attempt, Outcome: e.Outcome}
	f.writeRecord(journal.KindWaiting, id, &b)
	if n.makesUp != nil {
		e.Held = receiptEvent(e.Intent.Tag, e.Intent.Kind, r.Status, r.Payload)
		f.ledger.Close(e)
		return f.compensate(e, *n.makesUp, id)
	}
	if e.Outcome == receipt.OutcomeInputRequired {
		f.bindAnswer(e)
	}
	f.ledger.GoOn(e, r)
	switch {
	case e.State == receipt.StateAwaitingAnswer:
	case n.unwanted:
		f.cancel(e, id)
	case n.byCell:
		f.endCancelled(e, id)
	case !r.GivenBack():
		f.tasks = append(f.tasks, e.Task(receipt.Retry, e.Attempt))
	}
	return nil
}

// attemptsLeft reports whether retry.attempts allows another attempt. Questions to a person, and questions
// about accepted work, do not count as attempts.
func (f *effects) attemptsLeft(e *receipt.Entry) bool {
	return e.Attempt-e.Unused-e.Polls()-uint64(len(e.Inputs)) < f.rules.manifest.Effects[e.Intent.Kind].Retry.Attempts
}

// bindAnswer binds a person's answer to the rules under which the question was asked, unless an approval is
// bound already. It is no approval: no policies have this digest.
func (f *effects) bindAnswer(e *receipt.Entry) {
	if e.Seen != nil {
		return
	}
	seen := governance.ApprovalBasis(f.rules.manifest, e.Intent.Kind, e.Intent.Cap, nil)
	seen.Rules = canon.Sum(nil)
	if e.Started < uint64(f.since) { // the question was asked under earlier rules
		seen.Effect = seen.Rules
	}
	e.Seen = &seen
}
