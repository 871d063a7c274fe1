package receipt

import "slices"

// What becomes of an attempt: the part of the [Ledger] that follows a permit.

// Doubt notes that nobody can tell what came of the attempt in flight, and
// whether a verifier is asked. The intent keeps its params: it may be attempted
// again.
func (l *Ledger) Doubt(e *Entry, verify bool) {
	l.land(e)
	e.Waiting = verify
	e.unaccept() // it cannot be asked about
	l.move(e, StateInDoubt)
}

// GiveBack ends the attempt in flight as if it had never been permitted: no host has begun it, and
// no host will.
func (l *Ledger) GiveBack(e *Entry) {
	l.land(e)
	e.Unused++
	l.move(e, StateOpen)
	l.queue(e)
}

// Reopen readies an intent, in flight or in doubt, for its next attempt: at
// once, or when Due says that the backoff is over.
func (l *Ledger) Reopen(e *Entry, wait bool) {
	l.giveUp(e)
	l.move(e, StateOpen)
	e.Waiting = wait
	if wait {
		l.waiting = append(l.waiting, e)
		return
	}
	l.queue(e)
}

// Due ends the wait of an open intent for its next attempt.
func (l *Ledger) Due(e *Entry) {
	e.Waiting = false
	l.touch(e)
	at := slices.Index(l.waiting, e)
	l.waiting = slices.Delete(l.waiting, at, at+1)
	l.queue(e)
}

// queue puts an intent among the open ones, which are in intent order.
func (l *Ledger) queue(e *Entry) {
	at, _ := slices.BinarySearchFunc(l.open, e, byEmission)
	l.open = slices.Insert(l.open, at, e)
	l.sorted(e, 1)
}

// Waiting returns the open intents that wait for their backoff.
func (l *Ledger) Waiting() []*Entry { return l.waiting }

// Finish ends the attempt that r answers; Check must have passed. It is the
// last unless the intent is Reopened.
func (l *Ledger) Finish(r *Receipt, record uint64) *Entry {
	e := l.entries[r.Key]
	l.land(e)
	e.Finished = record
	e.Waiting = false
	e.Outcome = r.Outcome()
	e.rest()
	l.move(e, e.Outcome.endState())
	return e
}

// rest forgets what an attempt that has its answer was known by.
func (e *Entry) rest() { e.Nonce, e.Slot = Nonce{}, 0 }

// End ends an intent without a receipt, as committed or as failed.
func (l *Ledger) End(e *Entry, outcome Outcome, record uint64) {
	l.unqueue(e)
	l.giveUp(e)
	l.endWait(e)
	e.Attested = e.Attested || outcome == OutcomeSideEffectCommitted
	e.Held = nil
	l.endIntent(e, outcome.endState(), outcome, record)
}

// Hold keeps what a committed intent's cell is to be told until a person has
// confirmed it.
func (l *Ledger) Hold(e *Entry, told Data) {
	e.Held = told
	l.move(e, StateAwaitingConfirmation)
}

// Unhold ends the wait of a committed intent for a person.
func (l *Ledger) Unhold(e *Entry) {
	e.Held = nil
	l.move(e, StateCommitted)
}

// Change notes a change that the caller made to an entry's own fields.
func (l *Ledger) Change(e *Entry) { l.touch(e) }

// GoOn readies an intent whose attempt is over, and whose receipt is not the last word, for
// what comes next: another attempt, also one that asks what the outside has accepted, or the
// answer of a person.
func (l *Ledger) GoOn(e *Entry, r *Receipt) {
	switch {
	case r.GivenBack():
		e.Unused++
		l.Reopen(e, false)
	case e.Outcome == OutcomeInputRequired:
		l.awaitAnswer(e, r.Payload)
	case e.Outcome == OutcomeAccepted:
		if a, err := DecodeAccepted(r.Payload); err == nil { // else the caller has closed it
			l.poll(e, a.ID, a.Until)
		}
	case e.Accepted() != "":
		l.poll(e, e.Accepted(), e.AskUntil())
	default:
		l.Reopen(e, true)
	}
}

// Close ends an intent for good whose attempt is over: it is not attempted again, and its
// params are forgotten.
func (l *Ledger) Close(e *Entry) {
	switch e.Outcome {
	case OutcomeRetryableFailure, OutcomeInputRequired, OutcomeAccepted:
		e.Outcome = OutcomePermanentFailure
	default:
	}
	e.forget()
	l.touch(e)
}

// forget lets go of what only further attempts need.
func (e *Entry) forget() {
	e.Intent.Params = nil
	e.Polling = nil
	e.Seen = nil
}

func (l *Ledger) endIntent(e *Entry, to State, outcome Outcome, record uint64) {
	e.forget()
	e.Waiting = false
	e.Outcome, e.Finished = outcome, record
	e.rest()
	l.move(e, to)
}

// endState returns the state that an intent with the outcome ends in.
func (o Outcome) endState() State {
	if o == OutcomeSideEffectCommitted {
		return StateCommitted
	}
	return StateFailed
}

// land takes an intent out of flight and frees its slot.
func (l *Ledger) land(e *Entry) {
	if e.State != StateInFlight {
		return
	}
	at := slices.Index(l.flight, e)
	copy(l.flight[1:], l.flight[:at]) // mostly it is among the first
	l.flight[0] = nil
	l.flight = l.flight[1:]
	l.releaseSlot(e.Slot)
}

// giveUp remembers an attempt without a receipt, which may still come.
func (l *Ledger) giveUp(e *Entry) {
	l.land(e)
	if e.State == StateInFlight || e.State == StateInDoubt {
		e.Lost = append(slices.Clone(e.Lost), Lost{Attempt: e.Attempt, Nonce: e.Nonce})
		e.unaccept() // it cannot be asked about
		e.Uncertain = true
	}
}

// Disprove notes a statement that the attempt in doubt did not happen. The intent is open, and
// waits for Reopen or End.
func (l *Ledger) Disprove(e *Entry) {
	before := e.Uncertain
	l.giveUp(e)
	e.Uncertain = before
	l.move(e, StateOpen)
}

// AskAgain has an intent that is open or awaits approval await it from a record on: until a
// tick, or until the deadline that it has already.
func (l *Ledger) AskAgain(e *Entry, deadline, record uint64) {
	if e.Deadline != 0 {
		deadline = e.Deadline
	}
	l.unqueue(e)
	l.endWait(e)
	l.stay(e) // its place among others is another
	e.Emitted = record
	l.await(e, StateAwaitingApproval, deadline)
}

// awaitAnswer has an intent whose last attempt asks a person wait for the answer, for as
// long as it takes.
func (l *Ledger) awaitAnswer(e *Entry, question Data) {
	e.Inputs = append(slices.Clone(e.Inputs), Input{Question: question})
	e.unaccept() // the attempt with the answer begins anew
	l.await(e, StateAwaitingAnswer, NoDeadline)
}

// Answer opens an intent that waits for the answer to a question. Its next attempt
// takes that along.
func (l *Ledger) Answer(e *Entry, answer Data) {
	l.endWait(e)
	e.Inputs = slices.Clone(e.Inputs) // permits have the others
	e.Inputs[len(e.Inputs)-1].Answer = answer
	l.move(e, StateOpen)
	l.queue(e)
}

// Polling is what the ledger knows of what the outside has accepted. It does not change.
type Polling struct {
	_ struct{} `cbor:",toarray"`

	ID    string // see Accepted; empty: the outside works on nothing any more
	Polls uint64 // attempts that ended with its being at work, or asked in vain
	Until int64  // see Accepted.Until; 0 also where ID is empty
}

// Accepted returns the outside's name for the work in progress; empty: there is no such work. The
// next attempt asks about that.
func (e *Entry) Accepted() string {
	if e.Polling == nil {
		return ""
	}
	return e.Polling.ID
}

// AskUntil returns until when it makes sense to ask about that: see Accepted.Until.
func (e *Entry) AskUntil() int64 {
	if e.Polling == nil {
		return 0
	}
	return e.Polling.Until
}

// Polls returns how many attempts ended with the outside at work, or asked in vain.
func (e *Entry) Polls() uint64 {
	if e.Polling == nil {
		return 0
	}
	return e.Polling.Polls
}

// poll has an intent whose attempt is over ask, when Due says so, what came of what the
// outside has accepted under an id, and until when: see Accepted.Until.
func (l *Ledger) poll(e *Entry, id string, until int64) {
	if id == e.Accepted() {
		until = e.AskUntil()
	}
	e.Polling = &Polling{ID: id, Polls: e.Polls() + 1, Until: until}
	l.Reopen(e, true)
}

// unaccept notes that nobody will ask about what the outside has accepted.
func (e *Entry) unaccept() {
	if e.Polling != nil {
		e.Polling = &Polling{Polls: e.Polling.Polls}
	}
}

// Task returns a task that needs only the key and kind of an attempt.
func (e *Entry) Task(work Work, attempt uint64) Task {
	return Task{Work: work, Permit: Permit{Intent: Intent{Key: e.Intent.Key, Kind: e.Intent.Kind}, Attempt: attempt}}
}
