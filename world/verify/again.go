package verify

import (
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// What rollbacks and forks do to intents: the part of the proof that knows which
// history goes on.

// The decisions that intent.emitted can hold, and the rules of intent.awaiting_approval that
// are the kernel's own.
const (
	byGate   = "allow"
	byLeave  = "approved"
	recorded = "recorded"
	waits    = "waits"
	rejected = "rejected"
	reused   = "reused"

	possibleRepeat = "possible_repeat"
)

// turning is where a rollback led: the history before record goes on from to.
type turning struct {
	record journal.Seq
	to     journal.Seq
}

// reached reports whether an intent was asked for in the history that goes on.
func (v *verifier) reached(x *invocation) bool { return slices.ContainsFunc(x.Asked, v.inHistory) }

func (v *verifier) inHistory(record journal.Seq) bool {
	end := v.now
	for _, t := range slices.Backward(v.turnings) {
		if t.record > end {
			continue
		}
		if record >= t.record {
			break
		}
		end = t.to
	}
	return record <= end
}

// emitted takes a decision that lets an intent go, or that answers it out of the
// ledger.
func (v *verifier) emitted(place string, b *journal.IntentEmitted) {
	switch b.Decision {
	case byGate, byLeave:
		v.decided(place, b.Key, ready)
	case recorded, waits, rejected:
		v.claimed(place, b)
	case reused:
		x := v.invocation(b.Key)
		if len(v.turnings) == 0 {
			v.orphan(place, b.Key, x, "it has the result of another one, and no rollback left any behind")
		}
		v.decided(place, b.Key, ending)
	default:
		v.orphan(place, b.Key, v.invocation(b.Key), "its decision is none: "+b.Decision)
	}
}

// claimed takes that an intent is asked for which the ledger knows: a rollback has
// led to its step again.
func (v *verifier) claimed(place string, b *journal.IntentEmitted) {
	x := v.decidedOn(b.Key)
	may := map[string][]stage{
		recorded: {answered, ended},
		waits:    {awaiting, ready, flying, doubtful, resolved, held, asking, compensating},
		rejected: {compensated},
	}[b.Decision]
	switch {
	case x.Stage == unknown && !x.Hidden:
		v.orphan(place, b.Key, x, "its decision is "+b.Decision+", and nobody had asked for it")
	case v.reached(x):
		v.duplicate(place, b.Key, x, "it is asked for again, and no rollback led to its step")
	case !x.is(may...):
		v.orphan(place, b.Key, x, "its decision is "+b.Decision+", and that is not where it stands")
	case x.Hidden && b.Decision != waits:
		x.move(may[0])
	}
	x.Asked = append(x.Asked, v.now)
}

// awaits takes that an intent waits for approval: by a decision of the gate, or
// because a fork leaves to its parent what was open.
func (v *verifier) awaits(place string, b *journal.IntentAwaitingApproval) {
	if m := v.rules.all; m != nil && b.Seen != governance.ApprovalBasis(m, b.Kind, b.Cap, b.Rules) {
		v.fault(place, "intent %s: what its approval is bound to is not what the manifest in force says", b.Key)
	}
	x := v.invocation(b.Key)
	switch {
	case b.Reason != "" && x.is(ready, resolved, awaiting, approved): // other rules are in force, or it starts later than it was judged
		x.move(awaiting)
	case !v.forks():
		if slices.Contains(b.Rules, possibleRepeat) && len(v.turnings) == 0 {
			v.orphan(place, b.Key, x, "it is said to repeat another one, and no rollback left any behind")
		}
		v.decided(place, b.Key, awaiting)
	case x.is(ready, resolved):
		x.move(awaiting)
	default:
		v.orphan(place, b.Key, x, "a fork asks a person about it, and it was not open")
	}
}

// rolledBack takes that cells are again what they were at a snapshot. What it says
// of compensations ends the intents that they are for a second time.
func (v *verifier) rolledBack(place string, b *journal.RolledBack) {
	v.turnings = append(v.turnings, turning{record: v.now, to: b.SnapshotLen + 1}) // the snapshot.created
	for _, left := range b.Abandoned {
		x := v.decidedOn(left.Key)
		switch {
		case x.Stage == unknown && !x.Hidden:
			v.orphan(place, left.Key, x, "a rollback left it behind, and nobody had asked for it")
		case left.Disposition == journal.Cancelled && left.State == receipt.StateInFlight:
			v.withdrawn(place, left.Key, x)
		case left.Disposition != journal.Compensated:
		case !x.is(answered):
			v.orphan(place, left.Key, x, "it is to be made up for, and it has not happened")
		default:
			x.move(compensating)
		}
	}
}

// withdrawn takes that a rollback ended an attempt which nobody had begun.
func (v *verifier) withdrawn(place string, key receipt.Key, x *invocation) {
	if !x.is(flying) {
		v.orphan(place, key, x, "its attempt was taken back, and none was in flight")
	}
	x.Returned++
	x.move(ready)
}

// cancelledByCell takes that a cell has cancelled what it waits for.
func (v *verifier) cancelledByCell(place string, b *journal.IntentCancelled) {
	x := v.decidedOn(b.Key)
	switch {
	case x.Stage == unknown && !x.Hidden:
		v.orphan(place, b.Key, x, "its cell cancelled it, and nobody had asked for it")
	case !v.reached(x) && !x.Hidden:
		v.orphan(place, b.Key, x, "its cell cancelled it, and a rollback had left it behind")
	case x.Cell != "" && x.Cell != b.Cell:
		v.orphan(place, b.Key, x, "another cell than its own cancelled it")
	case slices.ContainsFunc(x.Cancelled, v.inThisWorld):
		v.duplicate(place, b.Key, x, "its cell had cancelled it before")
	}
	if !x.Hidden && !x.Accepted && slices.Contains([]stage{awaiting, ready, resolved, asking}, x.Stage) {
		v.owed = &b.Key
	}
	x.Cancelled = append(x.Cancelled, v.now)
}

// lookAtOwed names the intent that the record before has cancelled, if it had to end with
// this one. The body is nil where it is gone.
func (v *verifier) lookAtOwed(place string, kind journal.Kind, body journal.Body) {
	owed := v.owed
	v.owed = nil
	if owed == nil || kind == journal.KindEnded && body == nil {
		return
	}
	if b, ended := body.(*journal.IntentEnded); !ended || b.Key != *owed {
		v.orphan(place, *owed, v.invocation(*owed), "its cell cancelled it, and it did not end at once")
	}
}

// inThisWorld reports whether a record is in the history that goes on, and no parent's.
func (v *verifier) inThisWorld(record journal.Seq) bool {
	return record > v.fork && v.inHistory(record)
}

// endsCancelled reports whether a record is the end that follows where a cell has
// cancelled an intent: at once, when the attempt is given back, or when a rollback leads
// back to there.
func (v *verifier) endsCancelled(x *invocation) bool {
	last := len(x.Cancelled) - 1
	return v.cause != 0 && last >= 0 &&
		(x.Cancelled[last] == v.cause || (x.By == v.cause || v.byRollback()) && slices.ContainsFunc(x.Cancelled, v.inHistory))
}

// byRollback reports whether a record follows from the last rollback.
func (v *verifier) byRollback() bool {
	return len(v.turnings) > 0 && v.turnings[len(v.turnings)-1].record == v.cause
}

// cancelled takes that an intent ended of which nothing was attempted: by its cell, by a
// rollback, or by the receipt that gave the attempt back after one.
func (v *verifier) cancelled(place string, key receipt.Key, x *invocation) {
	switch {
	case !x.is(ready, awaiting) || x.Last.Attempt > x.Returned && !x.Hidden:
		v.orphan(place, key, x, "it was cancelled, and it was attempted or had ended")
	case v.endsCancelled(x):
	case !v.byRollback() && x.By != v.cause || v.reached(x):
		v.orphan(place, key, x, "it was cancelled, and no rollback left it behind")
	}
	x.move(cancelled)
}

// forked takes that another world begins: all that is known is its parent's.
func (v *verifier) forked(place string, b *journal.Forked) {
	if v.report.WorldID != "" && b.Parent != v.report.WorldID {
		v.fault(place, "it is a fork of world %s, and this is world %s", b.Parent, v.report.WorldID)
	}
	v.fork = v.now
	v.inherit()
	v.report.WorldID = b.World
}

// forks reports whether a record is part of what a fork does.
func (v *verifier) forks() bool { return v.fork != 0 && v.cause == v.fork }

// goneWord notes a payload that nobody can read any more. It may have been about any
// intent that is not settled: each has the benefit of the doubt, once; see invocation.
func (v *verifier) goneWord(kind journal.Kind) {
	switch {
	case kind == journal.KindRollback:
		v.turnings = append(v.turnings, turning{record: v.now}) // to where, nobody can tell
	case kind == journal.KindIntent || kind == journal.KindAwaitingApproval || kind == journal.KindDenied:
		v.unnamed++
	case !strings.HasPrefix(string(kind), "intent.") && !strings.HasPrefix(string(kind), "invocation."):
		return
	}
	v.gone++
}
