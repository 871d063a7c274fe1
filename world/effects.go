package world

import (
	"github.com/worldkernel/worldkernel/journal"
)

// effects is the life of every intent: what a cell or a person asks for, what the gate says,
// the attempts and their receipts, and what a cell is told of the end.
type effects struct {
	gate

	receipts

	ledger    ledger
	counts    occurrences
	operators uint64 // effects submitted by operators
	recalls   []recall
	finished  journal.Finished // the last that was noted: so it needs no memory of its own
}
