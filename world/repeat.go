package world

import (
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// An intent is a repeat if it equals, but for its key, a side effect that a rollback left behind.
// This file says what is done about repeats.
//
// A side effect can be repeated in every history that does not contain it. In each of these one
// intent can stand for it: the intent that reused its result, or an intent that was let through
// although it was a repeat. If a rollback leaves that intent behind, it stands for the side effect
// no more; if it was executed, it is itself a side effect that can be repeated.

// possibleRepeat names the rule that asks a person about an intent which equals a side effect
// that a rollback left behind.
const possibleRepeat = "possible_repeat"

// waived reports whether a rollback with fresh effects, in the present history, left an intent behind. Then
// what equals it is not a repeat. An intent that was decided again after that rollback was not left by it.
func (g *ground) waived(e *receipt.Entry) bool {
	return slices.ContainsFunc(g.fresh, func(turn journal.Seq) bool {
		return e.Emitted < uint64(turn) && g.inHistory(turn, g.last) && !g.askedIn(e, turn)
	})
}

// askedIn reports whether an intent, as it is, was asked for in the history that led
// to a record.
func (h *histories) askedIn(e *receipt.Entry, of journal.Seq) bool {
	return slices.ContainsFunc(e.AskedNow(), func(record uint64) bool { return h.inHistory(journal.Seq(record), of) })
}

// askRepeat takes an effect that repeats what a rollback left behind. It reports whether the effect is decided
// with that.
func (f *effects) askRepeat(c *cell, in receipt.Intent, left *receipt.Entry, step journal.Seq) bool {
	switch onRepeat := f.rules.effects[in.Kind].OnRepeat; {
	case onRepeat == manifest.RepeatRun:
		return false
	case onRepeat == manifest.RepeatReuse && f.ledger.hasResult(left):
		id := f.writeEmitted(&in, &governance.Decision{Rules: []string{possibleRepeat}}, decidedReused, step)
		e := f.ledger.Emit(in, uint64(id))
		f.ledger.Repeat(e, left)
		c.await(in.Key)
		f.reuse(e, id)
	default:
		why := ""
		if len(f.rests) > 0 {
			why = f.restsFor(f.decide(c.id(), &in, false).Cap, 0)
		}
		e := f.askApproval(in, []string{possibleRepeat}, why, step)
		f.ledger.Repeat(e, left)
		c.await(in.Key)
	}
	return true
}

// reuse ends an intent with the result of the intent that it repeats.
func (f *effects) reuse(e *receipt.Entry, cause journal.Seq) {
	left := f.ledger.Entry(*e.Repeats)
	why := receipt.Explanation(decidedReused, "what intent "+left.Intent.Key.String()+" came to is its result")
	id := f.writeEnded(e, cause, receipt.StatusOK, left.Outcome, why)
	f.ledger.Reuse(e, left.Outcome, uint64(id))
	f.recall(e, id)
}
