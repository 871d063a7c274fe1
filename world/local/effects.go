package local

import (
	"context"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Emit takes an effect that a person asks for, and returns its key; see
// world.World.Emit.
func (lw *World) Emit(ctx context.Context, b journal.OperatorEffect) (key receipt.Key, err error) {
	err = lw.change(func() error {
		key, err = lw.w.Emit(ctx, b)
		return err
	})
	return key, err
}

// Resolve takes a person's decision about an intent; see world.World.Resolve.
func (lw *World) Resolve(ctx context.Context, b journal.Resolved) error {
	return lw.change(func() error { return lw.w.Resolve(ctx, b) })
}

// Confirm compares recorded results with the outside; see world.World.Confirm.
func (lw *World) Confirm(ctx context.Context) (done world.Confirmation, err error) {
	err = lw.change(func() error {
		done, err = lw.w.Confirm(ctx)
		return err
	})
	return done, err
}

// ConfirmByHand takes a person's word that a recorded result holds.
func (lw *World) ConfirmByHand(ctx context.Context, key receipt.Key, actor, reason string) error {
	return lw.change(func() error { return lw.w.ConfirmByHand(ctx, key, actor, reason) })
}
