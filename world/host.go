package world

import (
	"context"

	"github.com/worldkernel/worldkernel/receipt"
)

// Host performs the effects that the ledger permitted. It does so in its own
// goroutines; the World calls it from one.
type Host interface {
	// Start begins to perform effects, whose permits are durable, and returns
	// at once. A deterministic effect may be started again under the same
	// permit, after a crash.
	Start(permits []receipt.Permit)
	// Await returns the next answer, in any order, and blocks until there is
	// one or ctx ends. It is called only while started effects are unanswered.
	Await(ctx context.Context) (Answer, error)
}

// Answer is what became of one permit.
type Answer struct {
	Key     receipt.Key
	Receipt []byte // signed and canonical
	Err     error  // where no receipt could be made: the effect stays in flight
}
