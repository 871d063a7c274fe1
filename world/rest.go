package world

import (
	"fmt"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// A capability rests where an answer of the outside says that an attempt under it used more
// than it can have used: the server cannot count, or lies, or max_cost is too low. What is not
// begun under it waits for a person, who is told so. The rest ends when a person approves an
// intent that was parked since.

// rest has the capability of an intent rest since a receipt, by a record.
func (g *gate) rest(e *receipt.Entry, r *receipt.Receipt, charged receipt.Cost, record journal.Seq) {
	b := journal.Rests{
		Version: journal.V(journal.BodyVersion), Key: e.Intent.Key, Cell: e.Intent.Cell, Attempt: e.Attempt,
		Cap: e.Intent.Cap, Said: r.Cost, Charged: charged,
	}
	id := g.note(journal.KindRests, record, &b)
	if g.rests == nil {
		g.rests = make(map[string]journal.Seq)
	}
	g.rests[e.Intent.Cap] = id
}

// restsFor returns why what is asked for under a capability, or parked since a record, waits
// for a person though the rules let it through; empty: it does not. 0 stands for no record.
func (g *gate) restsFor(capability string, parked uint64) string {
	since, rests := g.rests[capability]
	if !rests || parked > uint64(since) {
		return ""
	}
	return fmt.Sprintf("capability %s rests since #%d: a receipt says that an attempt used more than max_cost", capability, since)
}
