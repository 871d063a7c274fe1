package world

import (
	"context"

	"github.com/worldkernel/worldkernel/receipt"
)

// Host performs the effects that the ledger permitted. It does so in its own
// goroutines; the World calls it from one.
type Host interface {
	// Live reports whether effects of a kind touch the outside: then nobody may
	// repeat an attempt, and its answer is admitted when it comes. The others are
	// deterministic: the same permit gets the same receipt, whenever it is asked.
	Live(kind string) bool
	// Start begins to do tasks, whose records are durable, and returns at once.
	// The answers to Recover and Withdraw are there when it returns.
	Start(tasks []receipt.Task)
	// Answers returns the answers that have come, oldest first, each once. It does
	// not block. After an error nothing more will come.
	Answers() ([]receipt.Answer, error)
	// Wait blocks until Answers has something to return, Wake is called, or ctx
	// ends. Unlike the others, these two may be called beside them.
	Wait(ctx context.Context) error
	// Wake ends every Wait until Answers is called.
	Wake()
}
