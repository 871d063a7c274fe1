package world

import (
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// cancelTags takes back what a cell asked for in earlier steps, under the tags that a step cancels. A timer does
// not fire, and an intent that is not under way ends. The receipts of all other intents, also receipts that wait
// in the mailbox, are marked as cancelled.
func (k *kernel) cancelTags(c *cell, step journal.Seq) {
	receipts := c.mail.cancel(k.out.Cancels)
	intents := k.wanted(c, k.out.Cancels)
	for _, tag := range k.out.Cancels {
		if timer := k.stopTimer(c, tag); timer != 0 || receipts[tag] != nil {
			k.writeCancelled(c, tag, timer, receipts[tag], step)
		}
		for _, e := range intents[tag] {
			k.cancelIntent(c, e, step)
		}
	}
}

// wanted returns, by tag, the intents with these tags that a cell waits for and has not cancelled.
func (f *effects) wanted(c *cell, tags []string) map[string][]*receipt.Entry {
	out := make(map[string][]*receipt.Entry, len(tags))
	for _, tag := range tags {
		out[tag] = nil
	}
	for _, key := range c.asked().awaits {
		e := f.ledger.Entry(key)
		if of, is := out[e.Intent.Tag]; is && !slices.Contains(c.asks.cancelled, key) {
			out[e.Intent.Tag] = append(of, e)
		}
	}
	return out
}

// cancelIntent records that a cell has cancelled an intent that it waits for. An intent that is not under way
// ends; an attempt that has not begun is given back.
func (f *effects) cancelIntent(c *cell, e *receipt.Entry, step journal.Seq) {
	b := journal.IntentCancelled{Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Cell: c.name, Attempt: e.Attempt}
	id := f.writeRecord(journal.KindCancelled, step, &b)
	of := c.toAsk()
	of.cancelled = append(of.cancelled, e.Intent.Key)
	f.setApart(e, id)
	f.carryOut(e, id)
}

// carryOut carries out the cancellation of an intent by its cell: when the cell cancels, and when a rollback
// returns to a state after that.
func (f *effects) carryOut(e *receipt.Entry, id journal.Seq) {
	switch {
	case e.State == receipt.StateOpen && e.Accepted() != "": // the next attempt tells the outside
		if e.Waiting {
			f.tasks = append(f.tasks, e.Task(receipt.Hasten, e.Attempt))
		}
	case e.NotBegun():
		f.endCancelled(e, id)
	case e.State == receipt.StateInFlight:
		f.tasks = append(f.tasks, receipt.Task{Work: receipt.GiveBack, Permit: f.permit(e)})
	}
}

// carryOutAgain carries out the cancellations in the cells that a rollback has returned: in the history that it
// left, these intents may have been readied for another attempt.
func (p *past) carryOutAgain(f *effects, id journal.Seq) {
	for _, c := range p.changed {
		for _, key := range slices.Clone(c.asked().cancelled) { // an intent that ends leaves the list
			f.carryOut(f.ledger.Entry(key), id)
		}
	}
}

// setApart has the end of an intent told to its cell as cancelled, from a record on.
func (f *effects) setApart(e *receipt.Entry, since journal.Seq) {
	e.Apart = append(e.Apart, uint64(since))
	f.ledger.Change(e)
}

// isApart reports whether the present history tells a cell the end of an intent as cancelled, even if the cell was
// told another end before.
func (f *effects) isApart(e *receipt.Entry) bool { return f.isApartAt(e, f.last) }

func (h *histories) isApartAt(e *receipt.Entry, at journal.Seq) bool {
	return slices.ContainsFunc(e.Apart, func(record uint64) bool { return h.inHistory(journal.Seq(record), at) })
}

// Cancelled reports whether a cell had cancelled its intent, or the intent that this one replaces, in the history
// that led to a record; 0: the present history.
func (m *Moment) Cancelled(e *receipt.Entry, at journal.Seq) bool {
	if at == 0 {
		return m.k.isApart(e)
	}
	return m.k.isApartAt(e, at)
}
