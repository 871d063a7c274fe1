package world

import (
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// cancelTags takes back what a cell has asked for, in the steps before, under the tags
// that a step cancels: a timer does not fire, an intent that is not under way ends, and
// of all others the receipt is told apart, also where it has come already.
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

// wanted returns the intents that a cell waits for and has not cancelled, by those of
// some tags that they have.
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

// cancelIntent notes that a cell has cancelled an intent that it waits for. What is not
// under way ends; an attempt that nobody has begun is given back.
func (f *effects) cancelIntent(c *cell, e *receipt.Entry, step journal.Seq) {
	b := journal.IntentCancelled{Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Cell: c.name, Attempt: e.Attempt}
	id := f.writeRecord(journal.KindCancelled, step, &b)
	of := c.toAsk()
	of.cancelled = append(of.cancelled, e.Intent.Key)
	f.setApart(e, id)
	f.carryOut(e, id)
}

// carryOut does what follows where a cell has cancelled an intent, or a rollback leads back
// to where it has.
func (f *effects) carryOut(e *receipt.Entry, id journal.Seq) {
	switch {
	case e.State == receipt.StateOpen && e.Accepted() != "": // the next attempt tells the outside
		if e.Waiting {
			f.tasks = append(f.tasks, taskOf(receipt.Hasten, e, e.Attempt))
		}
	case e.NotBegun():
		f.endCancelled(e, id)
	case e.State == receipt.StateInFlight:
		f.tasks = append(f.tasks, receipt.Task{Work: receipt.GiveBack, Permit: f.permit(e)})
	}
}

// carryOutAgain has the cancels of cells to which a rollback has led back stand: in the
// history that it left their intents may have been readied for another attempt.
func (p *past) carryOutAgain(f *effects, id journal.Seq) {
	for _, c := range p.changed {
		for _, key := range slices.Clone(c.asked().cancelled) { // what ends leaves it
			f.carryOut(f.ledger.Entry(key), id)
		}
	}
}

// setApart has the cell of an intent told its end apart, from a record on.
func (f *effects) setApart(e *receipt.Entry, since journal.Seq) {
	e.Apart = append(e.Apart, uint64(since))
	f.ledger.Change(e)
}

// isApart reports whether a cell is told the end of an intent apart in the history that
// goes on, also where it has been told one before.
func (f *effects) isApart(e *receipt.Entry) bool { return f.isApartAt(e, f.last) }

func (h *histories) isApartAt(e *receipt.Entry, at journal.Seq) bool {
	return slices.ContainsFunc(e.Apart, func(record uint64) bool { return h.inHistory(journal.Seq(record), at) })
}

// Cancelled reports whether the cell of an intent had cancelled it, or that in the place of
// which it is asked for, in the history that led to a record; 0: that of now.
func (m *Moment) Cancelled(e *receipt.Entry, at journal.Seq) bool {
	if at == 0 {
		return m.k.isApart(e)
	}
	return m.k.isApartAt(e, at)
}

// cancel has the receipts of some tags that wait, and are not told apart yet, be told
// apart. It returns what brought them, by tag.
func (m *mailbox) cancel(tags []string) map[string][]journal.Seq {
	records := make(map[string][]journal.Seq, len(tags))
	for _, tag := range tags {
		records[tag] = nil
	}
	for i, x := range m.pending() {
		if x.name != reducer.ReceiptEvent || isCancelled(x.data) {
			continue
		}
		tag := tagOf(x.data)
		if of, is := records[tag]; is {
			m.pending()[i].data = cancelled(x.data)
			records[tag] = append(of, x.record)
		}
	}
	return records
}

// tagOf returns the tag of a receipt event.
func tagOf(data journal.Data) string {
	raw, err := canon.Lookup(data, "tag")
	if err != nil {
		return ""
	}
	return canon.NewReader(raw).Text()
}

// receiptHead begins the data of a receipt event: a map of 4, or of one more where it is
// told apart.
const receiptHead = 0xa4

func isCancelled(data journal.Data) bool { return data[0] == receiptHead+1 }

// cancelled returns the data of a receipt event that its cell is to tell apart, because
// it has cancelled the intent.
func cancelled(data journal.Data) journal.Data {
	if isCancelled(data) {
		return data
	}
	return slices.Concat(journal.Data{receiptHead + 1}, data[1:], cancelledPair())
}

// cancelledPair is what a receipt event has more that is told apart. It stands last:
// its key is the longest.
func cancelledPair() journal.Data {
	return canon.AppendBool(canon.AppendText(nil, "cancelled"), true)
}
