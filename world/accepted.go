package world

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// What the outside has accepted and works on: the attempts that follow ask what came
// of it. They do nothing else, so they need nothing of budgets, count as none of those
// that a retry has, and go on until there is an answer.

// accepts has an intent wait for what the outside has accepted. It reports whether the
// receipt names that.
func (f *effects) accepts(e *receipt.Entry, r *receipt.Receipt, id journal.Seq) bool {
	a, err := receipt.DecodeAccepted(r.Payload)
	if err != nil {
		return false
	}
	f.wait(e, id)
	f.ledger.Poll(e, a.ID, a.Until)
	f.tasks = append(f.tasks, taskOf(receipt.Retry, e, e.Attempt))
	return true
}

// asksOn readies an intent for another attempt to ask, where the last one could not, or
// was given back.
func (f *effects) asksOn(e *receipt.Entry, r *receipt.Receipt, id journal.Seq) {
	f.wait(e, id)
	if r.GivenBack() {
		e.Unused++
		f.ledger.Reopen(e, false)
		return
	}
	f.ledger.Poll(e, e.Accepted(), e.AskUntil())
	f.tasks = append(f.tasks, taskOf(receipt.Retry, e, e.Attempt))
}
