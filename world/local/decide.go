package local

import (
	"context"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Confirm is a person's word that a recorded result holds: see
// world.World.ConfirmByHand.
const Confirm journal.Resolution = "confirm"

// noReason is journaled where a person need not give a reason and gave none.
const noReason = "no reason was given"

// Decide takes a person's decision about an intent as it was seen, which is refused where it
// stands elsewhere by now; Confirm is among them. Who approves or denies need not say why. What is
// permitted and not begun can be stopped: see Hold.
func (lw *World) Decide(ctx context.Context, b *journal.Resolved, stood *receipt.Entry) error {
	giveReason(b)
	if b.How == journal.Stop {
		release, err := lw.Hold(ctx)
		if err != nil {
			return err
		}
		defer release()
	}
	return lw.Update(func(w *world.World) (err error) {
		e, _ := w.Intent(b.Key)
		takenBack := b.How == journal.Stop && stood.State == receipt.StateInFlight && e.NotBegun() && e.Attempt-e.Unused == stood.Attempt-stood.Unused-1
		if takenBack {
			stood = &e
		}
		if err := w.Unchanged(stood); err != nil {
			return err
		}
		if b.How != Confirm {
			_, err = w.Resolve(ctx, *b)
			return err
		}
		if e, ok := w.Intent(b.Key); ok && e.Params != b.Params {
			return world.ErrOtherParams
		}
		_, err = w.ConfirmByHand(ctx, b.Key, b.Actor, b.Reason)
		return err
	})
}

// DecideAll takes a person's decisions about several intents as one durable batch, each about
// an intent as it stood; see world.World.ResolveAll. Confirm is not among them.
func (lw *World) DecideAll(ctx context.Context, all []journal.Resolved, stood []receipt.Entry) (refused []error, err error) {
	for i := range all {
		giveReason(&all[i])
	}
	err = lw.Update(func(w *world.World) error {
		refused, err = w.ResolveAll(ctx, all, stood)
		return err
	})
	return refused, err
}

func giveReason(b *journal.Resolved) {
	needsNone := b.How == journal.Approve || b.How == journal.Disapprove || b.How == world.Reuse
	if needsNone && b.Reason == "" {
		b.Reason = noReason
	}
}
