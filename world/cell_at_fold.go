package world

import (
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// fold applies the cell's records since base.
func (f *cellFold) fold() error {
	for id, err := range f.records() {
		if err != nil {
			return err
		}
		if id > f.at {
			if f.unit, err = journal.UnitEnd(f.h, f.unit, id); f.unit < id || err != nil {
				return err
			}
		}
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
	f.now = now
	for x := range f.waiting.due(now) {
		if x.to == nil || f.cell.there() {
			f.deliver(mail{record: x.record, name: x.name, data: x.data})
		}
	}
}

// records yields the ids of the records after base that concern the cell, or everyone of its
// reducer.
func (f *cellFold) records() iter.Seq2[journal.Seq, error] {
	return merged(f.h.CellRecords(f.name, f.base), f.h.CellRecords(f.everyone, f.base))
}

// merged yields what two ascending sequences do, in order and each once.
func merged(a, b iter.Seq2[journal.Seq, error]) iter.Seq2[journal.Seq, error] {
	return func(yield func(journal.Seq, error) bool) {
		next, stop := iter.Pull2(b)
		defer stop()
		other, failed, more := next()
		for id, err := range a {
			for ; more && failed == nil && err == nil && other <= id; other, failed, more = next() {
				if other < id && !yield(other, nil) {
					return
				}
			}
			if failed != nil {
				yield(0, failed)
				return
			}
			if !yield(id, err) || err != nil {
				return
			}
		}
		for ; more; other, failed, more = next() {
			if !yield(other, failed) || failed != nil {
				return
			}
		}
	}
}

func (f *cellFold) deliver(x mail) {
	f.cell.born = true
	f.cell.mail.push(x, nil)
}

// apply does to the cell what a record says.
func (f *cellFold) apply(rec *journal.Record, body journal.Body) error {
	switch b := body.(type) {
	case *journal.Submitted:
		f.receive(b.Due, b.To, mail{record: rec.ID, name: b.Name, data: b.Data})
	case *journal.Emitted:
		f.receive(0, b.To, mail{record: rec.ID, name: b.Name, data: b.Data})
	case *journal.TimerFired:
		return f.fire(rec, b)
	case *journal.Stepped:
		return f.step(rec, b)
	case *journal.TimerSet:
		f.timers.add(alarm{at: b.Deadline, record: rec.ID, name: b.Name, tag: b.Tag, data: b.Data})
	case *journal.TagCancelled:
		f.timers.remove(b.Timer)
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

// receive takes an event that was sent, to the cell or to everyone.
func (f *cellFold) receive(due manifest.Tick, to []string, x mail) {
	var everyones []*cell
	if !slices.Contains(to, f.name) {
		everyones = []*cell{everyone(f.cell.id().Reducer)}
	}
	switch {
	case due > f.now:
		f.waiting.add(alarm{at: due, record: x.record, to: everyones, name: x.name, data: x.data})
	case everyones == nil || f.cell.there():
		f.deliver(x)
	}
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
		f.deliverReceipt(rec.ID, b.Key, cellFoldAsked{b.Tag, b.Kind}, receipt.StatusDenied, journal.Explanation(b.Code, b.Reason))
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
	f.deliver(mail{record: id, name: reducer.ReceiptEvent, data: data})
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
	set := f.timers.remove(rec.CausedBy)
	if set == nil {
		return errWhole
	}
	f.deliver(mail{record: rec.ID, name: b.Name, data: set.data})
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
		f.cell.n++
		f.cell.mail.pop(nil)
	}
	return nil
}

func (f *cellFold) resume(b *journal.Resumed) error {
	if !f.cell.halted {
		return errWhole
	}
	f.cell.halted = false
	if b.Skip {
		f.cell.n++
		f.cell.mail.pop(nil)
	}
	return nil
}

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
	var out reducer.Output
	for f.rule == nil || f.reduce(x, &out) != nil || stateHash(out.State) != b.State {
		if f.rule, err = f.nextRule(); err != nil {
			return err
		}
		out.Reset()
	}
	c := f.cell
	c.n++
	c.mail.pop(nil)
	c.state = nil
	if !b.State.IsZero() {
		c.state = slices.Clone(out.State)
	}
	return nil
}

func (f *cellFold) reduce(x *mail, out *reducer.Output) error {
	c := f.cell
	return reducer.Reduce(f.rule.impl, &reducer.Input{
		Cell: c.id(), Step: c.n + 1, State: c.state,
		Event: reducer.Event{Name: x.name, Data: x.data}, Time: f.now, Limits: f.rule.limits,
		Seed: reducer.Seed{World: f.seed, Cell: c.id(), Step: c.n + 1}, Bounds: f.guard.stepBounds(),
	}, out)
}

// stateHash is what a cell.stepped says of a state.
func stateHash(state journal.Data) journal.Hash {
	if len(state) == 0 || string(state) == canon.Null {
		return journal.Hash{}
	}
	return canon.Sum(state)
}

// nextRule returns the cell's reducer in the next manifest that may be in force.
func (f *cellFold) nextRule() (*reducerRule, error) {
	if len(f.rules) == 0 {
		return nil, errWhole
	}
	hash := f.rules[0]
	f.rules = f.rules[1:]
	m, err := manifestOf(hash, f.h)
	if err != nil {
		return nil, err
	}
	def, ok := m.Reducers[f.cell.id().Reducer]
	if !ok {
		return f.nextRule()
	}
	r := rules{manifest: m, table: programEngines()}
	if r.engines, err = r.table.enginesOf(m); err != nil {
		return nil, err
	}
	return r.compileReducer(f.cell.id().Reducer, def, f.h, f.registry)
}
