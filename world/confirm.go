package world

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// ErrConfirmationRequired says that the outside is not what a recorded receipt
// says, and that a person has to decide: the intent awaits confirmation.
var ErrConfirmationRequired = errors.New("world: a recorded result is not what the outside shows, and a person has to confirm it")

// ErrUnconfirmed says that a verifier could not tell. Nothing has changed.
var ErrUnconfirmed = errors.New("world: a recorded result cannot be confirmed now")

// modePerson is the mode of a confirmation that a person gives.
const modePerson = "person"

// Confirmation counts the findings of Confirm.
type Confirmation struct {
	Confirmed int `json:"confirmed"` // the outside still is what the receipts say
	Failed    int `json:"failed"`    // mode strict: it is not, and the intents have failed
	Warned    int `json:"warned"`    // mode warn: it is not, and that is recorded
	Awaiting  int `json:"awaiting"`  // mode human: it is not, and a person decides
}

// Confirm compares the outside with every recorded result that its cell has not
// handled yet and whose kind declares a verifier, before it is injected. The
// error is ErrConfirmationRequired where intents await a person, ErrUnconfirmed
// where a verifier could not tell.
func (w *World) Confirm(ctx context.Context) (Confirmation, error) {
	var done Confirmation
	if w.broken != nil {
		return done, w.broken
	}
	if err := w.startHeld(); err != nil {
		return done, err
	}
	var faults []error
	for _, e := range w.k.ledger.Select(w.k.unconfirmed) {
		if e = w.k.ledger.Entry(e.Intent.Key); !w.k.unconfirmed(e) { // by now
			continue
		}
		b, err := w.confirmOne(ctx, e)
		if err != nil {
			faults = append(faults, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if err := w.k.confirm(b); err != nil {
			return done, w.syncAfter(err)
		}
		done.count(&b)
	}
	if done.Awaiting > 0 {
		faults = append(faults, fmt.Errorf("%w: %d intents", ErrConfirmationRequired, done.Awaiting))
	}
	return done, w.syncAfter(errors.Join(faults...))
}

func (c *Confirmation) count(b *journal.Confirmed) {
	switch {
	case b.Verdict == receipt.Happened:
		c.Confirmed++
	case b.Mode == manifest.VerifyStrict:
		c.Failed++
	case b.Mode == manifest.VerifyWarn:
		c.Warned++
	default:
		c.Awaiting++
	}
}

// confirmOne asks the verifier of one intent.
func (w *World) confirmOne(ctx context.Context, e *receipt.Entry) (journal.Confirmed, error) {
	data, err := w.recordedReceipt(journal.Seq(e.Finished))
	if err != nil {
		return journal.Confirmed{}, err
	}
	w.host.Start([]receipt.Task{{Work: receipt.Confirm, Permit: w.k.permit(e), Receipt: data}})
	for {
		if err := w.host.Wait(ctx); err != nil {
			return journal.Confirmed{}, err
		}
		answers, err := w.host.Answers()
		if err != nil {
			return journal.Confirmed{}, err
		}
		at := slices.IndexFunc(answers, func(a receipt.Answer) bool { return a.Work == receipt.Confirm && a.Key == e.Intent.Key })
		if at < 0 {
			w.came = append(w.came, answers...)
			continue
		}
		found := answers[at].Found
		w.came = append(w.came, slices.Delete(answers, at, at+1)...)
		if found.Verdict == receipt.Unknown {
			return journal.Confirmed{}, fmt.Errorf("%w: intent %s: %s", ErrUnconfirmed, e.Intent.Key, found.Reason)
		}
		return w.k.confirmation(e, found), nil
	}
}

// confirmation is what a verifier found out about a recorded result.
func (f *effects) confirmation(e *receipt.Entry, found *receipt.Found) journal.Confirmed {
	verify := f.rules.effects[e.Intent.Kind].Verify
	return journal.Confirmed{
		Key: e.Intent.Key, Mode: verify.Mode, Verdict: found.Verdict,
		Actor: verifierActor + verify.Adapter, Reason: found.Reason,
	}
}

// askConfirmations has the recorded results that are due compared with the
// outside, before their cells are told them again.
func (w *World) askConfirmations() error {
	for _, r := range w.k.recalls {
		if _, asked := w.confirming[r.Key]; asked || !r.Confirm {
			continue
		}
		e := w.k.ledger.Entry(r.Key)
		if journal.Seq(e.Finished) > w.durable { // it cannot be read yet
			if err := w.sync(); err != nil {
				return err
			}
		}
		data, err := w.recordedReceipt(journal.Seq(e.Finished))
		if err != nil {
			return err
		}
		w.confirming[r.Key] = true
		w.host.Start([]receipt.Task{{Work: receipt.Confirm, Permit: w.k.permit(e), Receipt: data}})
	}
	return nil
}

// takeConfirmation takes what a verifier found out about a recorded result that
// a cell waits for. Where it could not tell, it is asked again when the world is
// opened next.
func (w *World) takeConfirmation(a *receipt.Answer) error {
	if !w.confirming[a.Key] {
		return nil // whoever asked has gone
	}
	w.confirming[a.Key] = false
	e := w.k.ledger.Entry(a.Key)
	if at := w.k.pendingRecall(a.Key); at < 0 || !w.k.recalls[at].Confirm || a.Found == nil || a.Found.Verdict == receipt.Unknown {
		return nil
	}
	delete(w.confirming, a.Key)
	return w.k.confirm(w.k.confirmation(e, a.Found))
}

// awaitsConfirmation reports whether a verifier is asked about a recorded result.
func (w *World) awaitsConfirmation() bool {
	for _, asked := range w.confirming { // order cannot show: any will do
		if asked {
			return true
		}
	}
	return false
}

// recordedReceipt reads the receipt of an invocation.finished.
func (w *World) recordedReceipt(id journal.Seq) ([]byte, error) {
	body, err := journal.ReadBody(w.cfg.History, id)
	if err != nil {
		return nil, err
	}
	finished, ok := body.(*journal.Finished)
	if !ok {
		return nil, fmt.Errorf("world: record #%d is no %s", id, journal.KindFinished)
	}
	return finished.Receipt, nil
}

// unconfirmed reports whether an intent's recorded result waits in its cell's
// mailbox and can be confirmed.
func (f *effects) unconfirmed(e *receipt.Entry) bool {
	rule := f.rules.effects[e.Intent.Kind]
	if e.State != receipt.StateCommitted || e.Attested || e.Reused || rule == nil || rule.Verify == nil {
		return false
	}
	if at := f.pendingRecall(e.Intent.Key); at >= 0 {
		return f.recalls[at].Confirm
	}
	_, at := f.cellOf(e)
	return at >= 0
}

// confirm takes what a verifier or a person says about a recorded result. It
// may come inside a tick: a result has to be confirmed before it is handled.
func (f *effects) confirm(b journal.Confirmed) error {
	e := f.ledger.Entry(b.Key)
	switch {
	case e == nil:
		return refuse(ErrNoIntent, "key", "%s", b.Key)
	case b.Mode == modePerson && e.State != receipt.StateAwaitingConfirmation:
		return refuse(ErrNotWaiting, "key", "%s is %s", b.Key, e.State)
	case b.Mode != modePerson && !f.unconfirmed(e):
		return refuse(ErrNotWaiting, "key", "%s is %s, and its result is not waiting", b.Key, e.State)
	case b.Actor == "" || b.Reason == "":
		return refuse(ErrNoReason, "reason", "say who confirms it, and why")
	}
	b.V = journal.BodyVersion
	b.Reason, b.Actor = journal.Text(b.Reason), journal.Text(b.Actor)
	id := f.writeRecord(journal.KindConfirmed, 0, &b)
	if b.Mode == modePerson {
		if e.Held == nil {
			f.recalls = append(f.recalls, recall{Key: b.Key, Record: id})
		} else {
			f.bring(e, id, e.Held)
		}
		f.ledger.Unhold(e)
		return nil
	}
	if at := f.pendingRecall(b.Key); at >= 0 {
		f.confirmRecall(&b, e, at, id)
		return nil
	}
	if b.Verdict == receipt.Happened {
		return nil
	}
	c, at := f.cellOf(e)
	switch b.Mode {
	case manifest.VerifyStrict:
		end, data := f.endUnconfirmed(e, b.Reason, id)
		if isCancelled(c.mail.pending()[at].data) {
			data = cancelled(data)
		}
		c.mail.pending()[at] = mail{record: end, name: reducer.ReceiptEvent, data: data}
		f.touch(c)
	case manifest.VerifyHuman:
		f.ledger.Hold(e, c.takeBack(b.Key, at))
		if c.queued && c.mail.len() == 0 {
			f.scheduler.remove(c)
		}
		f.touch(c)
	}
	return nil
}

// confirmRecall takes what a verifier says about a recorded result before its
// cell is told it again.
func (f *effects) confirmRecall(b *journal.Confirmed, e *receipt.Entry, at int, id journal.Seq) {
	if b.Verdict == receipt.Happened || b.Mode == manifest.VerifyWarn {
		f.recalls[at].Confirm, f.recalls[at].Record = false, id
		return
	}
	f.recalls = slices.Delete(f.recalls, at, at+1)
	if b.Mode == manifest.VerifyHuman {
		f.ledger.Hold(e, nil)
		return
	}
	end, data := f.endUnconfirmed(e, b.Reason, id)
	f.bring(e, end, data)
}

// endUnconfirmed fails an intent whose recorded result is not what the outside
// shows, and returns what its cell is told.
func (f *effects) endUnconfirmed(e *receipt.Entry, reason string, cause journal.Seq) (journal.Seq, journal.Data) {
	payload := receipt.Explanation(codeNotConfirmed, reason)
	end := f.writeEnded(e, cause, receipt.StatusRejected, receipt.OutcomePermanentFailure, payload)
	f.ledger.End(e, receipt.OutcomePermanentFailure, uint64(end))
	e.Uncertain = true // its receipt says that it happened, and the verifier may have looked too early
	f.ledger.Change(e)
	return end, receiptEvent(e.Intent.Tag, e.Intent.Kind, receipt.StatusRejected, payload)
}

// rotated notes that receipts are signed with another key.
func (k *kernel) rotated(b journal.KeysRotated) error {
	b.V = journal.BodyVersion
	k.noteInput(journal.KindRotated, &b)
	return nil
}
