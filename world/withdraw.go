package world

import (
	"iter"

	"github.com/worldkernel/worldkernel/receipt"
)

// withdraw has the host take back what it has not begun of the attempts that a
// rollback leaves behind, and notes them: but for those of intents that were
// attempted before, which go on to their end. It returns the tasks that begin them after
// all, where the rollback is refused.
func (w *World) withdraw(p *past) ([]receipt.Task, error) {
	if w.host == nil {
		return nil, nil
	}
	var asked []receipt.Task
	for _, e := range p.left {
		if e.OnlyAttempt() && !isOperators(e) && w.host.Live(&e.Intent) {
			asked = append(asked, receipt.Task{Work: receipt.Withdraw, Permit: w.k.permit(e)})
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	w.host.Start(asked)
	answers, err := w.host.Answers()
	if err != nil {
		return nil, err
	}
	var begin []receipt.Task
	for _, a := range answers {
		if a.Work != receipt.Withdraw {
			w.came = append(w.came, a)
			continue
		}
		if e := w.k.ledger.Entry(a.Key); a.Unbegun && w.inFlight(a.Key, a.Attempt) {
			p.unbegun[e] = true
			begin = append(begin, receipt.Task{Work: receipt.Perform, Permit: w.k.permit(e)})
		}
	}
	w.findGivenBack(p)
	return begin, nil
}

// findGivenBack notes the attempts that a host gave back which has ended since: the
// world has not looked at their receipts yet, and after the rollback they answer
// nothing any more.
func (w *World) findGivenBack(p *past) {
	for e := range w.givenBack() {
		if e.OnlyAttempt() {
			p.unbegun[e] = true
		}
	}
}

// givenBack returns the intents whose attempts were given back, by receipts that the world has
// not looked at.
func (w *World) givenBack() iter.Seq[*receipt.Entry] {
	return func(yield func(*receipt.Entry) bool) {
		for _, a := range w.came {
			if a.Receipt == nil {
				continue
			}
			r, err := w.k.genuine(a.Receipt)
			if err != nil || !r.GivenBack() || w.k.ledger.Check(r) != nil {
				continue
			}
			if !yield(w.k.ledger.Entry(r.Key)) { // the receipt's, whomever the answer names
				return
			}
		}
	}
}
