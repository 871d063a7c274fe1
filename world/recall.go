package world

import (
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// recall is a recorded result that a cell is to be told, because a rollback led back to a step that asks for
// it. The cell is told at the next barrier. If the effect's kind has a verifier, the result is confirmed
// first.
type recall struct {
	_       struct{} `cbor:",toarray"`
	Key     receipt.Key
	Record  journal.Seq // that made it due: the cause of the step that handles it
	Confirm bool        // it has to be compared with the outside first
}

// Decisions about intents that the ledger knows already; the gate is not asked.
const (
	decidedRecorded = "recorded" // it has ended: the cell is told the recorded end
	decidedWaits    = "waits"    // it is under way: the cell is told its end
	decidedRejected = "rejected" // it happened and was made up for
	decidedReused   = "reused"   // it equals one that happened: the cell is told what that came to
)

// askAgain takes an effect of a step that is taken again after a rollback. It reports whether the ledger has
// an answer.
func (f *effects) askAgain(c *cell, in *receipt.Intent, step journal.Seq) bool {
	e := f.ledger.known(in.Key)
	if e == nil {
		return false
	}
	var decision string
	switch f.ledger.Decide(in.Key) {
	case receipt.AllowExecute:
		return false
	case receipt.ReturnRecordedResult:
		decision = decidedRecorded
	case receipt.WaitOtherWorker:
		decision = decidedWaits
	default:
		decision = decidedRejected
	}
	in.Cap = e.Intent.Cap
	id := f.writeEmitted(in, &governance.Decision{}, decision, step)
	f.ledger.Claim(e, uint64(id))
	c.await(in.Key)
	switch decision {
	case decidedRecorded:
		f.recall(e, id)
	case decidedRejected:
		f.bring(e, id, receiptEvent(in.Tag, in.Kind, receipt.StatusRejected, madeUpFor()))
	}
	return true
}

// recall has a cell told the end of its intent at the next barrier.
func (f *effects) recall(e *receipt.Entry, record journal.Seq) {
	rule := f.rules.effects[e.Intent.Kind]
	confirm := e.State == receipt.StateCommitted && !e.Attested && !e.Reused && rule != nil && rule.Verify != nil
	f.recalls = append(f.recalls, recall{Key: e.Intent.Key, Record: record, Confirm: confirm})
}

// pendingRecall returns the place of the recall of an intent, or -1.
func (f *effects) pendingRecall(key receipt.Key) int {
	return slices.IndexFunc(f.recalls, func(r recall) bool { return r.Key == key })
}

// deliverRecalled delivers the recalled results at a barrier. The records that it reads must be durable.
func (f *effects) deliverRecalled(h journal.History) error {
	if len(f.recalls) == 0 || f.scheduler.left > 0 {
		return nil
	}
	var later []recall
	for _, r := range f.recalls {
		e := f.ledger.Entry(r.Key)
		if r.Confirm || f.isOnItsWayBack(e) {
			later = append(later, r)
			continue
		}
		status, payload, err := f.recorded(h, e)
		if err != nil {
			return err
		}
		f.bring(e, r.Record, receiptEvent(e.Intent.Tag, e.Intent.Kind, status, payload))
	}
	f.recalls = later
	return nil
}

// isOnItsWayBack reports whether the result that an intent reused is being compensated. The outcome of the
// compensation decides what the cell is told.
func (f *effects) isOnItsWayBack(e *receipt.Entry) bool {
	return e.Reused && f.ledger.doneBy(e).IsUndone() && f.ledger.doneBy(e).Held != nil
}

// recorded reads what an ended intent's cell was told.
func (f *effects) recorded(h journal.History, e *receipt.Entry) (receipt.Status, journal.Data, error) {
	if e.Reused {
		if e = f.ledger.Entry(*e.Repeats); e == nil {
			return "", nil, fmt.Errorf("world: the ledger lacks an intent that was repeated")
		}
	}
	body, err := journal.ReadBody(h, journal.Seq(e.Finished))
	if err != nil {
		return "", nil, err
	}
	switch b := body.(type) {
	case *journal.Finished:
		r, err := receipt.Decode(b.Receipt)
		if err != nil {
			return "", nil, fmt.Errorf("world: record #%d: %w", e.Finished, err)
		}
		if e.Outcome == receipt.OutcomeCompensated && r.Outcome() == receipt.OutcomeSideEffectCommitted {
			return receipt.StatusRejected, madeUpFor(), nil // by a rollback
		}
		return r.Status, r.Payload, nil
	case *journal.IntentEnded:
		return b.Status, b.Payload, nil
	case *journal.IntentDenied:
		return receipt.StatusDenied, receipt.Explanation(b.Code, b.Reason), nil
	}
	return "", nil, fmt.Errorf("world: record #%d does not end intent %s", e.Finished, e.Intent.Key)
}

func madeUpFor() journal.Data {
	return receipt.Explanation(string(receipt.OutcomeCompensated), "it happened and was made up for; the same step cannot do it again")
}
