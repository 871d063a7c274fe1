package world

import (
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// fold applies the cell's records since base, up to f.at and the end of its unit.
func (f *cellFold) fold(head journal.Seq) error {
	ids, err := f.records(head)
	if err != nil {
		return err
	}
	for _, id := range ids {
		rec, err := journal.Read(f.h, id)
		if err != nil {
			return err
		}
		body, err := rec.LoadBody(f.h)
		if err != nil {
			return err
		}
		f.advance(rec.Time)
		if err := f.apply(&rec, body); err != nil {
			return err
		}
	}
	return nil
}

// advance delivers what has fallen due at a tick: all of it comes before what
// else the tick brings.
func (f *cellFold) advance(now manifest.Tick) {
	f.k.now = now
	for x := range f.k.scheduled.due(now) {
		f.k.deliverAll(x.to, mail{record: x.record, name: x.name, data: x.data})
	}
}

// records returns the ids of the records that concern the cell, or everyone of its reducer.
func (f *cellFold) records(head journal.Seq) (ids []journal.Seq, err error) {
	end, err := journal.UnitEnd(f.h, f.at, head)
	if err != nil {
		return nil, err
	}
	for _, c := range []*cell{f.cell, f.everyone} {
		for id, err := range f.h.CellRecords(c.name, f.base) {
			if err != nil {
				return nil, err
			}
			if id > end {
				break
			}
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// apply does to the cell what a record says.
func (f *cellFold) apply(rec *journal.Record, body journal.Body) error {
	switch b := body.(type) {
	case *journal.Submitted:
		f.send(b.Due, b.To, mail{record: rec.ID, name: b.Name, data: b.Data})
	case *journal.Emitted:
		f.send(0, b.To, mail{record: rec.ID, name: b.Name, data: b.Data})
	case *journal.TimerFired:
		return f.fire(rec, b)
	case *journal.Stepped:
		return f.step(rec, b)
	case *journal.TimerSet:
		f.k.timers.add(alarm{at: b.Deadline, record: rec.ID, to: []*cell{f.cell}, name: b.Name, tag: b.Tag, data: b.Data})
	case *journal.TagCancelled:
		f.k.timers.remove(b.Timer)
		for i, x := range f.cell.mail.pending() {
			if slices.Contains(b.Receipts, x.record) {
				f.cell.mail.pending()[i].data = cancelled(x.data)
			}
		}
	case *journal.Failed:
		return f.fail(rec, b)
	case *journal.Resumed:
		return f.resume(b)
	case *journal.Deleted: // the step has done it
	default:
		return f.applyEffect(rec, body)
	}
	return nil
}

// send sends an event to the cell, or to everyone.
func (f *cellFold) send(due manifest.Tick, to []string, x mail) {
	if due > f.k.now {
		f.k.scheduled.add(alarm{at: due, record: x.record, to: f.reached(to), name: x.name, data: x.data})
		return
	}
	f.k.deliverAll(f.reached(to), x)
}

// applyEffect does to the cell what a record about one of its intents says.
func (f *cellFold) applyEffect(rec *journal.Record, body journal.Body) error {
	switch b := body.(type) {
	case *journal.IntentEmitted:
		if b.Decision != governance.Allow.String() && b.Decision != "approved" {
			return errWhole // the ledger had an answer
		}
		return f.noteAsked(b.Key, b.Step, cellFoldAsked{b.Tag, b.Kind})
	case *journal.IntentAwaitingApproval:
		return f.noteAsked(b.Key, b.Step, cellFoldAsked{b.Tag, b.Kind})
	case *journal.IntentCancelled:
		of := f.cell.toAsk()
		of.cancelled = append(of.cancelled, b.Key)
	case *journal.IntentDenied:
		if _, _, err := f.asked(b.Key); err != nil {
			return err
		}
		f.deliverReceipt(rec.ID, b.Key, cellFoldAsked{b.Tag, b.Kind}, receipt.StatusDenied, receipt.Explanation(b.Code, b.Reason))
	case *journal.Finished:
		r, err := receipt.Decode(b.Receipt)
		if err != nil {
			return err
		}
		return f.tellEnd(rec.ID, r.Key, r.Status, r.Payload)
	case *journal.IntentEnded:
		return f.tellEnd(rec.ID, b.Key, b.Status, b.Payload)
	case *journal.IntentWaiting:
		return f.wait(rec, b)
	case *journal.Resolved:
		if !slices.Contains([]journal.Resolution{journal.Approve, journal.Disapprove, journal.Executed, journal.NotExecuted, journal.RetryAnyway, journal.Answer, journal.Stop}, b.How) {
			return errWhole
		}
	case *journal.Started, *journal.Expired, *journal.Due, *journal.Late, *journal.InDoubt, *journal.Rests: // the cell is told nothing yet
	default:
		return errWhole
	}
	return nil
}

// noteAsked notes what an intent asks for: a new one, or one that awaited approval, or was approved
// since. Whether the end of one that a person had asked for is told apart follows from what it
// is in the place of.
func (f *cellFold) noteAsked(key receipt.Key, step receipt.StepID, what cellFoldAsked) error {
	_, known, err := f.asked(key)
	if _, instead := InPlaceOf(step); err == nil && instead && !known {
		err = errWhole
	}
	if err != nil {
		return err
	}
	f.intents[key] = what
	return nil
}

// asked returns what is known of an intent; ok is false where it is new.
func (f *cellFold) asked(key receipt.Key) (what cellFoldAsked, ok bool, err error) {
	if what, ok = f.intents[key]; ok || f.base == 0 {
		return what, ok, nil
	}
	v, err := f.h.IntentVersion(key.Hash, f.base)
	if v == nil || err != nil {
		return what, false, err
	}
	e, err := receipt.DecodeEntry(key, v.Bytes)
	if err != nil {
		return what, false, err
	}
	if _, instead := InPlaceOf(e.Intent.Step); instead && len(e.Apart) > 0 || e.Abandoned || e.For != nil {
		return what, false, errWhole // its end is told apart, or nobody waits for it, or for another's sake
	}
	what = cellFoldAsked{e.Intent.Tag, e.Intent.Kind}
	f.intents[key] = what
	return what, true, nil
}

// tellEnd tells the cell what became of its intent.
func (f *cellFold) tellEnd(id journal.Seq, key receipt.Key, status receipt.Status, payload journal.Data) error {
	what, ok, err := f.asked(key)
	if err != nil {
		return err
	}
	if !ok {
		return errWhole
	}
	f.deliverReceipt(id, key, what, status, payload)
	return nil
}

func (f *cellFold) deliverReceipt(id journal.Seq, key receipt.Key, what cellFoldAsked, status receipt.Status, payload journal.Data) {
	data := f.cell.awaited(key, receiptEvent(what.tag, what.kind, status, payload))
	f.k.deliver(f.cell, mail{record: id, name: reducer.ReceiptEvent, data: data})
}

// wait takes back a receipt that was not the last word on its intent, as the
// record right after it says. What a compensation leads to is the ledger's.
func (f *cellFold) wait(rec *journal.Record, b *journal.IntentWaiting) error {
	m := &f.cell.mail
	last := m.len() - 1
	if b.Outcome == receipt.OutcomeCompensatable || last < 0 || m.pending()[last].record != rec.CausedBy {
		return errWhole
	}
	f.cell.takeBack(b.Key, last)
	return nil
}

// fire delivers what a timer was set with.
func (f *cellFold) fire(rec *journal.Record, b *journal.TimerFired) error {
	set := f.k.timers.remove(rec.CausedBy)
	if set == nil {
		return errWhole
	}
	f.k.deliver(f.cell, mail{record: rec.ID, name: b.Name, data: set.data})
	return nil
}

// next returns the event that the n-th step handles, if the mailbox holds what
// the step's record says.
func (f *cellFold) next(rec *journal.Record, n uint64) (*mail, error) {
	c := f.cell
	if c.halted || c.mail.len() == 0 || c.mail.front().record != rec.CausedBy || c.n+1 != n {
		return nil, errWhole
	}
	return c.mail.front(), nil
}

func (f *cellFold) fail(rec *journal.Record, b *journal.Failed) error {
	if _, err := f.next(rec, b.N); err != nil {
		return err
	}
	if f.cell.halted = b.Halted; !b.Halted {
		f.endTurn()
	}
	return nil
}

func (f *cellFold) resume(b *journal.Resumed) error {
	if !f.cell.halted {
		return errWhole
	}
	f.cell.halted = false
	if b.Skip {
		f.endTurn()
	}
	return nil
}

// endTurn ends a turn. It leaves the cell's history, which nobody is shown, as it is.
func (f *cellFold) endTurn() { f.k.endTurn(f.cell, f.cell.history) }

// step takes a step, and requires that it comes to the state whose hash is in
// its record.
//
// Which manifest was in force is not looked up but found by that hash: the one of
// the image is tried first, then the one of now. A reducer that comes to the same
// states as the right one is as good.
func (f *cellFold) step(rec *journal.Record, b *journal.Stepped) error {
	x, err := f.next(rec, b.N)
	if err != nil {
		return err
	}
	for f.k.rules.manifest == nil || f.k.reduce(f.cell, x) != nil || stateHash(f.k.out.State) != b.State {
		if err := f.nextRules(); err != nil {
			return err
		}
	}
	f.endTurn()
	f.k.setState(f.cell)
	return nil
}

// stateHash is what a cell.stepped says of a state.
func stateHash(state journal.Data) journal.Hash {
	if len(state) == 0 || string(state) == canon.Null {
		return journal.Hash{}
	}
	return canon.Sum(state)
}

// nextRules puts the next manifest in force that may be it.
func (f *cellFold) nextRules() error {
	if len(f.manifests) == 0 {
		return errWhole
	}
	next, err := rulesOf(f.manifests[0], f.h, f.registry, f.guard)
	f.manifests = f.manifests[1:]
	if err != nil {
		return err
	}
	f.k.rules = next
	return nil
}
