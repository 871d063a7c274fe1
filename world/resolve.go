package world

import (
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Reuse decides about a parked intent that equals a side effect which a rollback
// left behind: it is not executed, and gets the result of that.
const Reuse journal.Resolution = "reuse"

// resolve takes a decision about a parked intent or one in doubt. Another
// attempt that it allows is granted with the next tick.
func (f *effects) resolve(b journal.Resolved) error {
	if f.tickOpen() {
		return errTickOpen
	}
	e, instead, err := f.resolvable(&b)
	if err != nil {
		return err
	}
	if len(b.Payload) == 0 {
		b.Payload = journal.Data(canon.Null)
	}
	b.V, b.Params = journal.BodyVersion, e.Params
	b.Reason, b.Actor = journal.Text(b.Reason), journal.Text(b.Actor)
	id := f.noteInput(journal.KindResolved, &b)
	if instead != nil {
		f.askInstead(e, *instead, &b, id)
		return nil
	}
	switch b.How { //nolint:exhaustive // an edit asks for another
	case journal.Approve:
		f.approve(e, id)
	case Reuse:
		f.reuse(e, id)
	case journal.Disapprove:
		if e.Deadline == 0 {
			f.end(e, id, receipt.StatusRejected, receipt.OutcomePermanentFailure, journal.Explanation(codeNotConfirmed, b.Reason))
			return nil
		}
		if e.NeedsInput() { // it was attempted
			f.end(e, id, receipt.StatusRejected, receipt.OutcomePermanentFailure, journal.Explanation(codeInputDenied, b.Reason))
			return nil
		}
		f.deny(e, id, &governance.Decision{Code: codeApprovalDenied, Reason: b.Actor + ": " + b.Reason})
	case journal.Stop:
		f.deny(e, id, &governance.Decision{Code: codeStopped, Reason: b.Actor + ": " + b.Reason})
	case journal.Executed:
		f.end(e, id, receipt.StatusOK, receipt.OutcomeSideEffectCommitted, b.Payload)
	case journal.NotExecuted:
		f.ledger.Disprove(e)
		if !f.disproved(e) || f.cancelledByCell(e) || ByVerifier(b.Actor) && !f.attemptsLeft(e) {
			f.release(e)
			f.end(e, id, receipt.StatusRejected, receipt.OutcomePermanentFailure, journal.Explanation(codeNotExecuted, b.Reason))
			return nil
		}
		f.attemptAgain(e)
	case journal.RetryAnyway:
		f.attemptAgain(e)
	case journal.Answer:
		f.ledger.Answer(e, b.Payload)
	}
	return nil
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

// Unchanged returns why a decision about an intent as somebody saw it is none about it now:
// what did not happen in one attempt may have happened in the next. It is an *InputError.
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
// resolvable has seen to the budget.
func (f *effects) attemptAgain(e *receipt.Entry) {
	f.keep(e)
	f.ledger.Reopen(e, false)
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

// resolvable returns the intent that a decision is about and, where another one is asked for
// in its place, that; or why the decision cannot be taken.
func (f *effects) resolvable(b *journal.Resolved) (e *receipt.Entry, instead *receipt.Intent, err error) {
	if e = f.ledger.Entry(b.Key); e == nil {
		return nil, nil, refuse(ErrNoIntent, "key", "%s", b.Key)
	}
	if b.Params != e.Params {
		return nil, nil, refuse(ErrOtherParams, "params_hash", "%s, the intent's is %s", b.Params, e.Params)
	}
	if err := f.waitsFor(e, b); err != nil {
		return nil, nil, err
	}
	if err := reasoned(b); err != nil {
		return nil, nil, err
	}
	if err := canon.Valid(b.Payload); len(b.Payload) > 0 && err != nil {
		return nil, nil, refuse(ErrBadData, "payload", "%v", err)
	}
	if b.How == journal.Edit || endedInFailure(e, b) {
		if most := f.rules.manifest.Limits.Payload; uint64(len(b.Payload)) > most {
			return nil, nil, refuse(ErrTooLarge, "params", "limits.payload is %d bytes", most)
		}
		instead, err = f.inPlaceOf(e, b)
		return e, instead, err
	}
	if b.How == journal.RetryAnyway && f.cancelledByCell(e) {
		return nil, nil, refuse(ErrNotWaiting, "key", "%s: its cell has cancelled it, and it is not attempted again: say whether it was executed", b.Key)
	}
	if b.How == journal.RetryAnyway && !f.mayRepeat(e) {
		return nil, nil, refuse(ErrNoBudget, "key", "%s", b.Key)
	}
	if most := f.rules.manifest.Limits.Receipt; uint64(len(b.Payload)) > most {
		return nil, nil, refuse(ErrTooLarge, "payload", "limits.receipt is %d bytes", most)
	}
	if b.How == journal.Answer {
		if err := f.answerable(e, b.Payload); err != nil {
			return nil, nil, err
		}
	}
	return e, nil, nil
}

// waitsFor returns why an intent does not stand where a decision about it can be taken.
func (f *effects) waitsFor(e *receipt.Entry, b *journal.Resolved) error {
	want := receipt.StateInDoubt
	switch b.How {
	case journal.Stop:
		if e.NotBegun() {
			return nil
		}
		return refuse(ErrNotWaiting, "key", "%s is %s, and what is begun, or has ended, is not stopped", b.Key, standing(e))
	case journal.Approve, journal.Disapprove, journal.Edit, Reuse, journal.Answer:
		want = receipt.StateParked
	case journal.NotExecuted, journal.RetryAnyway:
		if endedInFailure(e, b) {
			want = receipt.StateFailed
		}
	case journal.Executed:
	default:
		return refuse(ErrNotWaiting, "how", "%q is no decision", b.How)
	}
	if e.NeedsInput() && (want != receipt.StateParked || !decides(b.How, e)) {
		return refuse(ErrNotWaiting, "key", "%s asks a person, and waits for the answer", b.Key)
	}
	if e.State != want || !decides(b.How, e) {
		return refuse(ErrNotWaiting, "key", "%s is %s", b.Key, e.State)
	}
	if b.How == Reuse {
		if why := f.notReusable(e); why != "" {
			return refuse(ErrNoRepeat, "key", "%s: %s", b.Key, why)
		}
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

// decides reports whether a decision is about what an intent in its state waits for.
func decides(how journal.Resolution, e *receipt.Entry) bool {
	switch how {
	case journal.Approve, journal.Edit, Reuse:
		return e.Deadline != 0 && !e.NeedsInput()
	case journal.Answer:
		return e.NeedsInput()
	default:
		return true
	}
}
