package world

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// findLeft finds the intents of the history that a rollback leaves, and those that
// come back with the one that it returns to.
func (k *kernel) findLeft(p *past) {
	to := journal.Seq(p.to.Record)
	for _, e := range k.ledger.AskedAfter(uint64(k.common(k.last, to))) {
		switch {
		case e.For != nil:
		case !k.askedIn(e, to):
			p.left = append(p.left, e)
		case !k.askedIn(e, k.last):
			p.back = append(p.back, e)
		}
	}
}

// findUnbegun takes the word of a rollback that was recorded for what its host had
// not begun.
func (k *kernel) findUnbegun(p *past, b *journal.RolledBack) {
	for _, x := range b.Abandoned {
		e := k.ledger.Entry(x.Key)
		if x.Disposition == journal.Cancelled && x.State == receipt.StateInFlight && e != nil && e.OnlyAttempt() {
			p.unbegun[e] = true
		}
	}
}

// answered is what a compensation is computed of.
type answered struct {
	receipt *receipt.Receipt
	params  journal.Data
}

// readAnswers reads what the compensations of a rollback are computed of.
func (k *kernel) readAnswers(h journal.History, p *past) error {
	for _, e := range p.left {
		e = k.doneBy(e)
		rule := k.rules.effects[e.Intent.Kind]
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

// sideEffects returns what a rollback leaves behind, and what becomes of each.
func (k *kernel) sideEffects(b *journal.RolledBack, p *past) []journal.SideEffect {
	out := []journal.SideEffect{}
	listed := make(map[*receipt.Entry]bool)
	list := func(e *receipt.Entry, d journal.Disposition) {
		if !listed[e] {
			listed[e] = true
			out = append(out, sideEffect(e, d))
		}
	}
	for _, e := range p.left {
		done := k.doneBy(e)
		switch {
		case isOperators(e):
			if e.Happens() {
				list(e, journal.Kept)
			}
		case p.unbegun[e]:
			list(e, journal.Cancelled)
		case !k.askedIn(e, k.last): // it was left behind before
		case e.Untouched():
			list(e, journal.Cancelled)
		case !done.MayHaveHappened() || done != e && k.askedIn(done, journal.Seq(p.to.Record)):
		case b.Compensate && done.Undone == 0 && !k.resultIn(done, journal.Seq(p.to.Record)) && k.undoing(done, p) != nil:
			list(done, journal.Compensated)
		default:
			list(done, known(b))
		}
	}
	for _, e := range p.back {
		if done := k.doneBy(e); done.IsUndone() && !k.inHistory(journal.Seq(done.Undone), journal.Seq(p.to.Record)) {
			list(done, journal.MadeUpFor)
		}
	}
	return out
}

// known is the disposition of what stays as it is.
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

func isOperators(e *receipt.Entry) bool {
	return operatorsCell(e.Intent.Cell)
}

func operatorsCell(name string) bool {
	cell, err := reducer.ParseCell(name)
	return err != nil || cell.Reducer == reducer.Operator
}

// undoing returns the intent that makes up for one that is left behind, or nil.
func (k *kernel) undoing(e *receipt.Entry, p *past) *receipt.Intent {
	a := p.answers[e.Intent.Key]
	if a == nil {
		return nil
	}
	original := *e
	original.Intent.Params = a.params
	in, err := k.compensation(&original, a.receipt)
	if err != nil {
		return nil // it cannot be computed
	}
	return in
}

// abandon does what becomes of the intents that are left behind: those of which
// nothing was attempted are cancelled, the others go on to their end, which waits
// in the ledger for whoever asks again.
func (k *kernel) abandon(b *journal.RolledBack, p *past, id journal.Seq) {
	for _, x := range b.Abandoned {
		switch e := k.ledger.Entry(x.Key); {
		case x.Disposition == journal.Compensated:
			k.makeUpFor(e, p, id)
		case x.Disposition == journal.Cancelled && x.State == receipt.StateInFlight:
			k.tasks = append(k.tasks, taskOf(receipt.Forget, e, e.Attempt))
			k.release(e)
			k.ledger.GiveBack(e)
		}
	}
	for _, e := range p.left {
		if isOperators(e) {
			continue
		}
		if e.Untouched() {
			k.cancel(e, id)
		}
		k.ledger.Abandon(e)
	}
	k.settleHistory(p)
}

// makeUpFor has the compensation of what is left behind asked for.
func (k *kernel) makeUpFor(e *receipt.Entry, p *past, id journal.Seq) {
	in := k.undoing(e, p)
	k.ledger.Abandon(e)
	e.Undone = uint64(id)
	e.Held = receiptEvent(e.Intent.Tag, e.Intent.Kind, receipt.StatusRejected, madeUpFor())
	asker, _ := reducer.ParseCell(in.Cell) // it has been parsed before
	k.ledger.Change(e)
	k.judge(asker, *in, id, e)
}

// settleHistory notes of the intents that a rollback concerns which of them the
// history that goes on has asked for: what comes back is abandoned no more.
func (k *kernel) settleHistory(p *past) {
	for _, e := range k.ledger.AskedAfter(uint64(p.settled)) {
		switch {
		case e.For != nil || isOperators(e):
		case k.askedIn(e, k.last):
			k.ledger.Return(e)
		default:
			k.ledger.Abandon(e)
		}
	}
}

// cancel ends an intent of which nothing was attempted. Nobody is told: nobody
// waits.
func (k *kernel) cancel(e *receipt.Entry, cause journal.Seq) {
	k.release(e)
	why := journal.Explanation("rolled_back", "a rollback left it behind before anything was attempted")
	id := k.writeEnded(e, cause, receipt.StatusCancelled, receipt.OutcomePermanentFailure, why)
	k.ledger.Cancel(e, uint64(id))
}

// repeatAnswers has cells hear what became, since the snapshot, of the intents that
// they waited for.
func (k *kernel) repeatAnswers(p *past, id journal.Seq) {
	k.recalls = slices.DeleteFunc(k.recalls, func(r recall) bool {
		asker, _ := reducer.ParseCell(k.ledger.Entry(r.Key).Intent.Cell)
		c := k.cells.get(asker)
		return c == nil || c.changed > id
	})
	var ended []*receipt.Entry
	for _, c := range p.changed {
		for _, key := range c.asked().awaits {
			e := k.ledger.Entry(key)
			if !k.askedIn(e, k.last) { // it was cancelled here, and decided anew elsewhere
				k.ledger.Claim(e, uint64(id))
			}
			k.ledger.Return(e)
			if d := k.ledger.Decide(key); d != receipt.WaitOtherWorker {
				ended = append(ended, e)
			}
		}
	}
	slices.SortFunc(ended, func(a, b *receipt.Entry) int { return cmp.Compare(a.Finished, b.Finished) })
	for _, e := range ended {
		k.recall(e, id)
	}
}

// paramsOf reads the params of an intent from the record that let it through, or that asked
// a person about it last.
func paramsOf(h journal.History, e *receipt.Entry) (journal.Data, error) {
	body, err := journal.ReadBody(h, journal.Seq(e.Emitted))
	if err != nil {
		return nil, err
	}
	switch made := body.(type) {
	case *journal.IntentEmitted:
		return made.Params, nil
	case *journal.IntentParked:
		return made.Params, nil
	default:
		return nil, fmt.Errorf("world: record #%d made no intent", e.Emitted)
	}
}
