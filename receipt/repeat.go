package receipt

import (
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// What becomes of an intent when rollbacks lead away from it and to it again:
// the part of the [Ledger] that knows who waits for its end.

// likeness is what two intents of one cell have in common that ask for the same.
type likeness struct {
	cell, kind string
	params     Hash
}

func likenessOf(e *Entry) likeness { return likeness{e.Intent.Cell, e.Intent.Kind, e.Params} }

func (e *Entry) noteAsked(record uint64) {
	e.Asked = append(slices.Clip(e.Asked), record)
}

// Claim notes that an intent of the ledger is asked for again, at a record.
func (l *Ledger) Claim(e *Entry, record uint64) {
	l.Return(e)
	e.noteAsked(record)
	l.touch(e)
}

// replace has another entry take the place of one that was denied. Attempts are
// numbered on: a number names one attempt of an intent, for good.
func (l *Ledger) replace(old, e *Entry) {
	e.Asked, e.Attempt, e.Unused = old.Asked, old.Attempt, old.Unused
	e.Former = uint64(len(old.Asked))
	l.unindex(old)
}

// Unfinished returns the intents whose end is still to come, in intent order.
func (l *Ledger) Unfinished() []*Entry {
	var out []*Entry
	for _, s := range States() {
		if !s.ended() {
			out = append(out, l.In(s)...)
		}
	}
	slices.SortFunc(out, byEmission)
	return out
}

// Abandon notes that an intent has no waiting cell any more.
func (l *Ledger) Abandon(e *Entry) {
	if e.Abandoned {
		return
	}
	e.Abandoned = true
	l.leave(e)
	l.touch(e)
}

// Return ends that an intent is abandoned.
func (l *Ledger) Return(e *Entry) {
	if !e.Abandoned {
		return
	}
	l.stay(e)
	e.Abandoned = false
	l.touch(e)
}

// leave puts an abandoned intent among those that Left looks at, in their order.
func (l *Ledger) leave(e *Entry) {
	what := likenessOf(e)
	if l.left == nil {
		l.left = make(map[likeness][]*Entry)
	}
	if at, found := slices.BinarySearchFunc(l.left[what], e, byEmission); !found {
		l.left[what] = slices.Insert(l.left[what], at, e)
	}
}

// stay undoes leave.
func (l *Ledger) stay(e *Entry) {
	what := likenessOf(e)
	if at, found := slices.BinarySearchFunc(l.left[what], e, byEmission); found {
		l.left[what] = slices.Delete(l.left[what], at, at+1)
	}
}

// Reconsider has Left look at every abandoned intent again: what is waived may be
// other than before.
func (l *Ledger) Reconsider() {
	for _, e := range l.entries { // order cannot show: leave sorts
		if e.Abandoned {
			l.leave(e)
		}
	}
}

// Repeat notes that an intent asks for the same as an abandoned one.
func (l *Ledger) Repeat(e, original *Entry) {
	e.Repeats = &original.Intent.Key
	l.index(e)
	l.touch(e)
}

func (l *Ledger) index(e *Entry) {
	if e.Repeats == nil {
		return
	}
	if l.repeats == nil {
		l.repeats = make(map[Key][]*Entry)
	}
	l.repeats[*e.Repeats] = append(l.repeats[*e.Repeats], e)
	if original := l.entries[*e.Repeats]; original != nil && l.live != nil {
		l.live[*e.Repeats] = original
	}
}

func (l *Ledger) unindex(e *Entry) {
	if e.Repeats == nil {
		return
	}
	same := func(x *Entry) bool { return x == e }
	if rest := slices.DeleteFunc(l.repeats[*e.Repeats], same); len(rest) > 0 {
		l.repeats[*e.Repeats] = rest
	} else {
		delete(l.repeats, *e.Repeats)
	}
}

// Left returns the first abandoned intent that asks for the same as another one
// of the same cell, that has happened or may still happen, for which no other
// stands, and which is not waived; nil where there is none. What is waived stays so
// until Reconsider. Those before it are looked at no more until something about them
// changes: touch puts them back.
func (l *Ledger) Left(in *Intent, waived func(*Entry) bool) *Entry {
	what := likeness{in.Cell, in.Kind, canon.Sum(in.Params)}
	all := l.left[what]
	at := slices.IndexFunc(all, func(e *Entry) bool { return e.MayHaveHappened() && !l.Claimed(e) && !waived(e) })
	if at < 0 {
		delete(l.left, what)
		return nil
	}
	l.left[what] = all[at:]
	return all[at]
}

// HasLeft reports whether there is any intent that Left may return.
func (l *Ledger) HasLeft() bool { return len(l.left) > 0 }

// Claimed reports whether an intent that repeats e was let through in the history
// that goes on: it stands there for what e has done. One that a rollback leaves
// behind in its turn stands for it no more.
func (l *Ledger) Claimed(e *Entry) bool {
	return slices.ContainsFunc(l.repeats[e.Intent.Key], func(x *Entry) bool { return !x.Abandoned && x.letThrough() })
}

// Repeated returns the intents that were found to repeat e. The caller must not
// change the slice.
func (l *Ledger) Repeated(e *Entry) []*Entry { return l.repeats[e.Intent.Key] }

// letThrough reports whether an intent got what it asked for or was allowed to.
func (e *Entry) letThrough() bool {
	return e.State != StateDenied && e.State != StateAwaitingApproval
}

// Happens reports whether an intent's side effect is there, or may be: it was
// attempted and did not fail.
func (e *Entry) Happens() bool {
	switch e.State {
	case StateCommitted, StateInFlight, StateInDoubt, StateAwaitingConfirmation:
		return !e.Reused
	case StateOpen, StateAwaitingApproval, StateAwaitingAnswer:
		return e.Attempt > e.Unused
	default:
		return e.Held != nil // its compensation is under way
	}
}

// MayHaveHappened is Happens, and also true of a failure without proof, or with remains outside.
func (e *Entry) MayHaveHappened() bool {
	switch e.State {
	case StateFailed:
		return e.Held != nil || e.Outcome == OutcomeCompensatable || e.Uncertain && e.Outcome != OutcomeCompensated
	case StateDenied:
		return e.Uncertain // in a fork, which does not know what became of its parent's
	default:
		return e.Happens()
	}
}

// AskedNow returns the records at which an intent was asked for as it is: not those
// that led to a denial before it was decided anew. The caller must not change them.
func (e *Entry) AskedNow() []uint64 { return e.Asked[e.Former:] }

// IsUndone reports whether a rollback has had an intent made up for, or is having it.
func (e *Entry) IsUndone() bool {
	return e.Undone != 0 && (e.Held != nil || e.Outcome == OutcomeCompensated)
}

// Untouched reports whether nothing of an intent was attempted yet. What was given
// back counts as never attempted.
func (e *Entry) Untouched() bool {
	return e.Attempt == e.Unused && (e.State == StateOpen || e.State == StateAwaitingApproval)
}

// OnlyAttempt reports whether nothing of an intent was attempted before the attempt
// that is in flight.
func (e *Entry) OnlyAttempt() bool { return e.State == StateInFlight && e.Attempt == e.Unused+1 }

// Cancel ends an intent of which nothing was attempted. It may be asked for
// again, as if it never had been.
func (l *Ledger) Cancel(e *Entry, record uint64) {
	l.unqueue(e)
	l.endWait(e)
	l.endIntent(e, StateDenied, "", record)
}

// Withdraw ends an intent that is not under way, and of which no further attempt is to be
// made. One that was never attempted may be asked for again, as Cancel has it.
func (l *Ledger) Withdraw(e *Entry, record uint64) {
	if e.Untouched() {
		l.Cancel(e, record)
		return
	}
	l.unqueue(e)
	l.endWait(e)
	l.endIntent(e, StateFailed, OutcomePermanentFailure, record)
}

// unqueue takes an intent out of those that wait for a permit.
func (l *Ledger) unqueue(e *Entry) {
	if e.State != StateOpen {
		return
	}
	if at := slices.Index(l.open, e); at >= 0 {
		l.open = slices.Delete(slices.Clone(l.open), at, at+1)
		l.sorted(e, -1)
	}
	if at := slices.Index(l.waiting, e); at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	}
	e.Waiting = false
}

// Stop has an open intent await approval, for as long as it takes.
func (l *Ledger) Stop(e *Entry) {
	l.unqueue(e)
	l.await(e, StateAwaitingApproval, NoDeadline)
}

// MadeUp notes that a compensation has made up for an intent.
func (l *Ledger) MadeUp(e *Entry) {
	e.Outcome = OutcomeCompensated
	if e.State == StateCommitted {
		l.move(e, StateFailed)
		return
	}
	l.touch(e)
}

// Reuse ends an intent with the outcome of the repeated intent.
func (l *Ledger) Reuse(e *Entry, outcome Outcome, record uint64) {
	l.unqueue(e)
	l.endWait(e)
	e.Reused = true
	l.endIntent(e, outcome.endState(), outcome, record)
}
