package world

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Reuse is the decision to give an intent that awaits approval the result of an equal side effect, which a
// rollback left behind. The intent is not executed.
const Reuse journal.Resolution = "reuse"

// decision is a decision of a person or a verifier about an intent that waits for it.
type decision struct {
	*effects
	journal.Resolved

	e       *receipt.Entry  // the intent
	instead *receipt.Intent // the intent that replaces it; nil: none
}

// resolve takes a decision about an intent that awaits a person or is in doubt. Another
// attempt that it allows is granted with the next tick.
func (f *effects) resolve(b journal.Resolved) error {
	d := decision{effects: f, Resolved: b, e: f.ledger.Entry(b.Key)}
	if err := d.check(); err != nil {
		return err
	}
	if len(d.Payload) == 0 {
		d.Payload = journal.Data(canon.Null)
	}
	d.V, d.Params = journal.BodyVersion, d.e.Params
	d.Reason, d.Actor = journal.Text(d.Reason), journal.Text(d.Actor)
	d.takeDecision(f.noteInput(journal.KindResolved, &d.Resolved))
	return nil
}

// takeDecision carries out a checked decision. id is its record.
func (d *decision) takeDecision(id journal.Seq) {
	e := d.e
	if d.instead != nil {
		d.askInstead(*d.instead, id)
		return
	}
	reject := func(code string) {
		d.endIntent(e, id, receipt.StatusRejected, receipt.OutcomePermanentFailure, receipt.Explanation(code, d.Reason))
	}
	switch d.How { //nolint:exhaustive // an edit asks for another
	case journal.Approve:
		d.approve(e, id)
	case Reuse:
		d.reuse(e, id)
	case journal.Disapprove:
		switch e.State {
		case receipt.StateAwaitingConfirmation:
			reject(codeNotConfirmed)
		case receipt.StateAwaitingAnswer: // it was attempted
			reject(codeInputDenied)
		default:
			d.deny(e, id, &governance.Decision{Code: codeApprovalDenied, Reason: d.Actor + ": " + d.Reason})
		}
	case journal.Stop:
		d.deny(e, id, &governance.Decision{Code: codeStopped, Reason: d.Actor + ": " + d.Reason})
	case journal.Executed:
		d.endIntent(e, id, receipt.StatusOK, receipt.OutcomeSideEffectCommitted, d.Payload)
	case journal.NotExecuted:
		d.ledger.Disprove(e)
		if !d.disproved(e) || d.cancelledByCell(e) || ByVerifier(d.Actor) && !d.attemptsLeft(e) {
			d.release(e)
			reject(codeNotExecuted)
			return
		}
		d.attemptAgain()
	case journal.RetryAnyway:
		d.attemptAgain()
	case journal.Answer:
		d.ledger.Answer(e, d.Payload)
	}
}

// verifierActor begins the actor of a decision that a verifier made.
const verifierActor = "verifier/"

// ByVerifier reports whether an actor is a verifier.
func ByVerifier(actor string) bool {
	return len(actor) > len(verifierActor) && actor[:len(verifierActor)] == verifierActor
}

// CheckActor returns why a person cannot decide under a name.
func CheckActor(name string) error {
	err := manifest.CheckKey(name)
	if err == nil && strings.HasPrefix(name, verifierActor) {
		err = fmt.Errorf("%q is the name of a verifier", name)
	}
	return err
}

// Unchanged returns an *InputError if an intent has changed since somebody saw it. A decision about one
// attempt says nothing about the next: what did not happen in one may have happened in the other.
func (m *Moment) Unchanged(stood *receipt.Entry) error {
	key := stood.Intent.Key
	switch e := m.k.ledger.Entry(key); {
	case e == nil:
		return refuse(ErrNoIntent, "key", "%s", key)
	case e.State != stood.State:
		return refuse(ErrNotWaiting, "key", "%s is %s by now, not %s", key, e.State, stood.State)
	case e.Attempt != stood.Attempt:
		return refuse(ErrNotWaiting, "key", "%s is at attempt %d by now, not %d", key, e.Attempt, stood.Attempt)
	}
	return nil
}

// attemptAgain readies an intent in doubt for its next attempt, for which
// check has seen to the budget.
func (d *decision) attemptAgain() {
	d.keep(d.e)
	d.ledger.Reopen(d.e, false)
}

// check returns why a decision cannot be taken. If another intent replaces the one decided about, check
// computes it.
func (d *decision) check() (err error) {
	limits := &d.rules.manifest.Limits
	if d.e == nil {
		return refuse(ErrNoIntent, "key", "%s", d.Key)
	}
	if d.Params != d.e.Params {
		return refuse(ErrOtherParams, "params_hash", "%s, the intent's is %s", d.Params, d.e.Params)
	}
	if err := cmp.Or(d.waitsFor(), reasoned(&d.Resolved)); err != nil {
		return err
	}
	if err := canon.Valid(d.Payload); len(d.Payload) > 0 && err != nil {
		return refuse(ErrBadData, "payload", "%v", err)
	}
	switch size := uint64(len(d.Payload)); {
	case d.How == journal.Edit || endedInFailure(d.e, &d.Resolved):
		if size > limits.Payload {
			return refuse(ErrTooLarge, "params", "limits.payload is %d bytes", limits.Payload)
		}
		d.instead, err = d.inPlaceOf()
		return err
	case d.How == journal.RetryAnyway && d.cancelledByCell(d.e):
		return refuse(ErrNotWaiting, "key", "%s: its cell has cancelled it, and it is not attempted again: say whether it was executed", d.Key)
	case d.How == journal.RetryAnyway && !d.mayRepeat(d.e):
		return refuse(ErrNoBudget, "key", "%s", d.Key)
	case size > limits.Receipt:
		return refuse(ErrTooLarge, "payload", "limits.receipt is %d bytes", limits.Receipt)
	case d.How == journal.Answer:
		return d.answerable()
	}
	return nil
}

// waitsFor returns an error if the intent's state does not allow the decision.
func (d *decision) waitsFor() error {
	want := receipt.StateInDoubt
	switch d.How {
	case journal.Stop:
		if d.e.NotBegun() {
			return nil
		}
		return refuse(ErrNotWaiting, "key", "%s is %s, and what is begun, or has ended, is not stopped", d.Key, standing(d.e))
	case journal.Approve, journal.Edit, Reuse:
		want = receipt.StateAwaitingApproval
	case journal.Answer:
		want = receipt.StateAwaitingAnswer
	case journal.Disapprove:
		if want = receipt.StateAwaitingApproval; d.e.State.AwaitsPerson() {
			want = d.e.State
		}
	case journal.NotExecuted, journal.RetryAnyway:
		if endedInFailure(d.e, &d.Resolved) {
			want = receipt.StateFailed
		}
	case journal.Executed:
	default:
		return refuse(ErrNotWaiting, "how", "%q is no decision", d.How)
	}
	if d.e.State != want {
		if d.e.State == receipt.StateAwaitingAnswer {
			return refuse(ErrNotWaiting, "key", "%s asks a person, and waits for the answer", d.Key)
		}
		return refuse(ErrNotWaiting, "key", "%s is %s", d.Key, d.e.State)
	}
	if d.How == Reuse {
		if why := d.ledger.notReusable(d.e); why != "" {
			return refuse(ErrNoRepeat, "key", "%s: %s", d.Key, why)
		}
	}
	return nil
}

// reasoned refuses a decision that does not say who takes it, and why.
func reasoned(b *journal.Resolved) error {
	switch {
	case b.Reason == "":
		return refuse(ErrNoReason, "reason", "say why, for those who read the journal")
	case b.Actor == "":
		return refuse(ErrNoReason, "actor", "say who decides")
	}
	return nil
}

// standing says where an intent stands.
func standing(e *receipt.Entry) string {
	if e.State == receipt.StateOpen && e.Accepted() != "" {
		return "accepted by the outside"
	}
	return string(e.State)
}
