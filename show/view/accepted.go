package view

import (
	"fmt"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// Accepted is what the outside has accepted, and was asked about, or is.
type Accepted struct {
	ID      string      `json:"id"`      // by which the outside knows it
	Message string      `json:"message"` // what the outside has said of it last
	Record  journal.Seq `json:"record"`  // of the receipt that says so
	Until   int64       `json:"until"`   // until when it is asked, nanoseconds since 1970-01-01 UTC; 0: always
	Wanted  bool        `json:"wanted"`  // false: its cell has cancelled it, and the outside is told
}

// accepts returns what a receipt says of what the outside has accepted, after what those
// before it said; where it says nothing of that, the same.
func (a *Accepted) accepts(id journal.Seq, r *receipt.Receipt) *Accepted {
	if r.Outcome() != receipt.OutcomeAccepted {
		return a
	}
	said, err := receipt.DecodeAccepted(r.Payload)
	if err != nil {
		return a // the kernel takes it for a failure
	}
	if a == nil || a.ID != said.ID {
		a = &Accepted{Until: said.Until, Wanted: true}
	}
	a.ID, a.Message, a.Record = said.ID, said.Message, id
	return a
}

// asksOn says what an intent waits for that the outside works on.
func asksOn(e *receipt.Entry) string {
	text := fmt.Sprintf("the outside has accepted it as %q", Brief(e.Accepted()))
	if e.Waiting {
		return fmt.Sprintf("%s, and is asked again what came of it after attempt %d", text, e.Attempt)
	}
	return text + ", and is asked what came of it"
}
