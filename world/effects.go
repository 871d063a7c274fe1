package world

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
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

// receipts reads receipts, and says which are genuine.
type receipts struct {
	*ground

	keys     *receipt.Keyring // nil: receipts are not verified, see Replay
	decoder  receipt.Decoder
	received receipt.Receipt // see genuine
}

// ledger is the ledger of all intents, and what of it is out of memory.
type ledger struct {
	receipt.Ledger
	*ground

	shelf     *shelf
	shelvedAt journal.Seq // what of the ledger is not in memory is as it was then; 0: all is
}
