package world

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// findLeft finds the intents that a rollback leaves behind, and the intents that come back.
func (p *past) findLeft(f *effects) {
	to := journal.Seq(p.to.Record)
	for _, e := range f.ledger.AskedAfter(uint64(f.common(f.last, to))) {
		switch {
		case e.For != nil:
		case !f.askedIn(e, to):
			p.left = append(p.left, e)
		case !f.askedIn(e, f.last):
			p.back = append(p.back, e)
		}
	}
}

// findUnbegun finds, in a recorded rollback, the attempts that its host had not begun.
func (p *past) findUnbegun(f *effects, b *journal.RolledBack) {
	for _, x := range b.Abandoned {
		e := f.ledger.Entry(x.Key)
		if x.Disposition == journal.Cancelled && x.State == receipt.StateInFlight && e != nil && e.OnlyAttempt() {
			p.unbegun[e] = true
		}
	}
}

// answered is the input of a compensation.
type answered struct {
	receipt *receipt.Receipt
	params  journal.Data
}

// readAnswers reads the inputs of a rollback's compensations.
func (p *past) readAnswers(f *effects, h journal.History) error {
	for _, e := range p.left {
		e = f.ledger.doneBy(e)
		rule := f.rules.effects[e.Intent.Kind]
		if e.State != receipt.StateCommitted || rule == nil || rule.compensation == nil || p.answers[e.Intent.Key] != nil {
			continue
		}
		body, err := journal.ReadBody(h, journal.Seq(e.Finished))
		if err != nil {
			return err
		}
		finished, ok := body.(*journal.Finished)
		if !ok {
			continue // a person said that it happened: there is no receipt
		}
		a := new(answered)
		if a.receipt, err = receipt.Decode(finished.Receipt); err != nil {
			return fmt.Errorf("world: record #%d: %w", e.Finished, err)
		}
		if a.params, err = paramsOf(h, e); err != nil {
			return err
		}
		p.answers[e.Intent.Key] = a
	}
	return nil
}

// sideEffects returns the side effects that a rollback leaves behind, with their dispositions.
func (p *past) sideEffects(f *effects, b *journal.RolledBack) []journal.SideEffect {
	out := []journal.SideEffect{}
	listed := make(map[*receipt.Entry]bool)
	list := func(e *receipt.Entry, d journal.Disposition) {
		if !listed[e] {
			listed[e] = true
			out = append(out, sideEffect(e, d))
		}
	}
	for _, e := range p.left {
		done := f.ledger.doneBy(e)
		switch {
		case isOperators(e):
			if e.Happens() {
				list(e, journal.Kept)
			}
		case p.unbegun[e]:
			list(e, journal.Cancelled)
		case !f.askedIn(e, f.last): // an earlier rollback left it
		case e.Untouched():
			list(e, journal.Cancelled)
		case !done.MayHaveHappened() || done != e && f.askedIn(done, journal.Seq(p.to.Record)):
		case b.Compensate && done.Undone == 0 && !f.ledger.resultIn(done, journal.Seq(p.to.Record)) && p.undoing(f, done) != nil:
			list(done, journal.Compensated)
		default:
			list(done, known(b))
		}
	}
	for _, e := range p.back {
		if done := f.ledger.doneBy(e); done.IsUndone() && !f.inHistory(journal.Seq(done.Undone), journal.Seq(p.to.Record)) {
			list(done, journal.MadeUpFor)
		}
	}
	return out
}

// known returns the disposition of an effect that stays as it is.
func known(b *journal.RolledBack) journal.Disposition {
	if b.Ack {
		return journal.Acknowledged
	}
	return journal.Kept
}

func sideEffect(e *receipt.Entry, d journal.Disposition) journal.SideEffect {
	return journal.SideEffect{
		Key: e.Intent.Key, Step: e.Intent.Step, Cell: e.Intent.Cell, Kind: e.Intent.Kind, State: e.State,
		Record: journal.Seq(max(e.Emitted, e.Started, e.Finished)), Disposition: d,
	}
}

// undoing returns the intent that compensates an intent left behind, or nil.
func (p *past) undoing(f *effects, e *receipt.Entry) *receipt.Intent {
	a := p.answers[e.Intent.Key]
	if a == nil {
		return nil
	}
	original := *e
	original.Intent.Params = a.params
	in, err := f.compensation(&original, a.receipt)
	if err != nil {
		return nil // it cannot be computed
	}
	return in
}

// abandon carries out the dispositions of the intents left behind. An intent without an attempt is cancelled. Any
// other goes on to its end, which waits in the ledger until a step asks for the intent again.
func (p *past) abandon(f *effects, b *journal.RolledBack, id journal.Seq) {
	for _, x := range b.Abandoned {
		switch e := f.ledger.Entry(x.Key); {
		case x.Disposition == journal.Compensated:
			p.makeUpFor(f, e, id)
		case x.Disposition == journal.Cancelled && x.State == receipt.StateInFlight:
			f.tasks = append(f.tasks, e.Task(receipt.Forget, e.Attempt))
			f.release(e)
			f.ledger.GiveBack(e)
		}
	}
	for _, e := range p.left {
		if isOperators(e) {
			continue
		}
		if e.Untouched() {
			f.cancel(e, id)
		}
		f.ledger.Abandon(e)
	}
	p.settleHistory(f)
}

// makeUpFor asks for the compensation of an intent left behind.
func (p *past) makeUpFor(f *effects, e *receipt.Entry, id journal.Seq) {
	in := p.undoing(f, e)
	f.ledger.Abandon(e)
	e.Undone = uint64(id)
	e.Held = receiptEvent(e.Intent.Tag, e.Intent.Kind, receipt.StatusRejected, madeUpFor())
	asker, _ := reducer.ParseCell(in.Cell) // it has been parsed before
	f.ledger.Change(e)
	f.judge(asker, *in, id, e)
}

// settleHistory notes in the ledger which of the intents that a rollback concerns belong to the history that goes on.
func (p *past) settleHistory(f *effects) {
	for _, e := range f.ledger.AskedAfter(uint64(p.settled)) {
		switch {
		case e.For != nil || isOperators(e):
		case f.askedIn(e, f.last):
			f.ledger.Return(e)
		default:
			f.ledger.Abandon(e)
		}
	}
}

// repeatAnswers tells cells the ends, since the snapshot, of the intents that they waited for.
func (p *past) repeatAnswers(f *effects, id journal.Seq) {
	f.recalls = slices.DeleteFunc(f.recalls, func(r recall) bool {
		c := f.cells.named(f.ledger.Entry(r.Key).Intent.Cell)
		return c == nil || c.changed > id
	})
	var ended []*receipt.Entry
	for _, c := range p.changed {
		for _, key := range c.asked().awaits {
			e := f.ledger.Entry(key)
			if !f.askedIn(e, f.last) { // it was cancelled in this history, and decided anew in another
				f.ledger.Claim(e, uint64(id))
			}
			f.ledger.Return(e)
			if d := f.ledger.Decide(key); d != receipt.WaitOtherWorker {
				ended = append(ended, e)
			}
		}
	}
	slices.SortFunc(ended, func(a, b *receipt.Entry) int { return cmp.Compare(a.Finished, b.Finished) })
	for _, e := range ended {
		f.recall(e, id)
	}
}

// paramsOf reads the params of an intent from the record that allowed it, or that last asked a person about it.
func paramsOf(h journal.History, e *receipt.Entry) (journal.Data, error) {
	body, err := journal.ReadBody(h, journal.Seq(e.Emitted))
	if err != nil {
		return nil, err
	}
	switch made := body.(type) {
	case *journal.IntentEmitted:
		return made.Params, nil
	case *journal.IntentAwaitingApproval:
		return made.Params, nil
	default:
		return nil, fmt.Errorf("world: record #%d made no intent", e.Emitted)
	}
}
