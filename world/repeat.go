package world

import (
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// An intent that equals, but for its key, what a rollback left behind: whether it
// is a repeat, and what is done about it.
//
// What was done once is something to repeat in every history that does not have it.
// In each of these one intent can stand for it: one that took its result, or one
// that was let through though it was a repeat. When a rollback leaves that one
// behind it stands for nothing any more; where it was executed it is something to
// repeat itself.

// possibleRepeat names the rule that asks a person about an intent which equals a side effect
// that a rollback left behind.
const possibleRepeat = "possible_repeat"

// waived reports whether the history of now has a rollback with fresh effects that
// left an intent behind: what follows is meant anew. What was cancelled then and let
// go by a later history was not left by it.
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

// askRepeat takes an effect that repeats what a rollback left behind. It reports
// whether that decides about it.
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

// reuse ends an intent with what the one that it repeats came to.
func (f *effects) reuse(e *receipt.Entry, cause journal.Seq) {
	left := f.ledger.Entry(*e.Repeats)
	why := journal.Explanation(decidedReused, "what intent "+left.Intent.Key.String()+" came to is its result")
	id := f.writeEnded(e, cause, receipt.StatusOK, left.Outcome, why)
	f.ledger.Reuse(e, left.Outcome, uint64(id))
	f.recall(e, id)
}
