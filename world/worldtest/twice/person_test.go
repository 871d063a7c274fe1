package twice

import (
	"context"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// decide has a person decide about an intent that waits for one.
func (l *life) decide(ctx context.Context) error {
	var waiting []receipt.Entry
	for _, e := range l.Intents() {
		if e.State.AwaitsPerson() || e.State == receipt.StateInDoubt {
			waiting = append(waiting, e)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	_, err := l.decideOn(ctx, &waiting[l.rng.IntN(len(waiting))], l.rng.IntN(8) == 0)
	return err
}

// decideOn has a person decide about an intent. She knows the truth and tells it,
// unless she is rash: then she has it done again without looking. It reports
// whether she could decide.
func (l *life) decideOn(ctx context.Context, e *receipt.Entry, rash bool) (bool, error) {
	b := journal.Resolved{Key: e.Intent.Key, Params: e.Params, Actor: "ada", Reason: "she looked"}
	if e.State.AwaitsPerson() {
		b.How = l.approval(e)
	} else {
		b.How = l.truth(e.Intent.Key)
	}
	if rash && e.State == receipt.StateInDoubt {
		l.struck.Count("decision without a look")
		b.How = journal.RetryAnyway
	}
	if b.How == "" {
		return false, nil
	}
	if b.How == journal.Approve && e.State == receipt.StateAwaitingConfirmation {
		return true, worldtest.ErrorOf(l.ConfirmByHand(ctx, b.Key, b.Actor, b.Reason))
	}
	err := worldtest.ErrorOf(l.Resolve(ctx, b))
	if err == nil {
		l.count(string(b.How))
		l.tell("%s %s, %s", b.How, brief(b.Key), l.history.deals[b.Key])
	}
	return true, err
}

// approval is what she says about an intent that awaits her.
func (l *life) approval(e *receipt.Entry) journal.Resolution {
	how := pick(l.rng, journal.Approve, journal.Approve, journal.Disapprove, world.Reuse)
	if how == world.Reuse && !l.reusable(e) {
		return journal.Disapprove
	}
	return how
}

func (l *life) reusable(e *receipt.Entry) bool {
	return e.Repeats != nil && l.entry(*e.Repeats).State == receipt.StateCommitted
}

// truth is what she says about an intent in doubt: nothing while a request for it
// may still arrive.
func (l *life) truth(key receipt.Key) journal.Resolution {
	switch times, coming := l.bank.happened(key); {
	case times > 0:
		return journal.Executed
	case coming || l.teller.at(key):
		return ""
	default:
		return journal.NotExecuted
	}
}
