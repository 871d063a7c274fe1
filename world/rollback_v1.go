package world

import (
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
)

// The rules of rollback.applied before its version 2: journals from then replay under
// them. The ledger's side is receipt/again_v1.go.

// turnedAsV1 reports whether the last rollback was one of version 1: its rules hold
// until the next.
func (k *kernel) turnedAsV1() bool {
	return len(k.rollbacks) > 0 && k.rollbackV < journal.RollbackVersion
}

// matchV1 notes that an intent like one that was left behind was let through. Today's
// rules look for that intent instead.
func (k *kernel) matchV1(left *receipt.Entry) {
	if k.turnedAsV1() {
		k.ledger.Match(left)
	}
}

// askedInV1 is askedIn as it was: a denial counted like what was done later.
func (k *kernel) askedInV1(e *receipt.Entry, of journal.Seq) bool {
	return slices.ContainsFunc(e.Asked, func(record uint64) bool { return k.inHistory(journal.Seq(record), of) })
}

// undoingV1 reports whether a compensation can be asked for under the key that it had
// then, which the parent of a fork may have used.
func (k *kernel) undoingV1(e *receipt.Entry, p *past) bool {
	in := k.undoing(e, p)
	return in != nil && strings.HasSuffix(string(in.Step), "!compensate")
}

// sideEffectsV1 is sideEffects as it was before rollback.applied had its version 2.
func (k *kernel) sideEffectsV1(b *journal.RolledBack, p *past) []journal.SideEffect {
	out := []journal.SideEffect{}
	for _, e := range p.left {
		switch {
		case e.Abandoned || !e.HappensV1():
		case isOperators(e):
			out = append(out, sideEffect(e, journal.Kept))
		case b.Compensate && k.undoingV1(e, p):
			out = append(out, sideEffect(e, journal.Compensated))
		default:
			out = append(out, sideEffect(e, known(b)))
		}
	}
	return out
}
