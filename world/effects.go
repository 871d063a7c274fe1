package world

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// effects is the life of every intent: what a cell or a person asks for, what the gate says,
// the attempts and their receipts, and what a cell is told of the end.
type effects struct {
	gate

	keys    *receipt.Keyring // nil: receipts are not verified, see Replay
	decoder receipt.Decoder

	ledger    receipt.Ledger
	shelvedAt journal.Seq // what of the ledger is not in memory is as it was then; 0: all is
	counts    occurrences
	operators uint64 // effects submitted by operators
	recalls   []recall
	received  receipt.Receipt       // see genuine
	emitted   journal.IntentEmitted // the last that was noted: so it needs no memory of its own
	finished  journal.Finished      // likewise
}
