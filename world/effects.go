package world

import (
	"github.com/worldkernel/worldkernel/journal"
)

// effects has the life of every intent: the request of a cell or a person, the decision of the gate, attempts
// with their receipts, and the event by which the cell learns the outcome.
type effects struct {
	gate

	receipts

	ledger    ledger
	counts    occurrences
	operators uint64 // number of effects submitted by persons
	recalls   []recall
	finished  journal.Finished // scratch: the body of the last invocation.finished
}
