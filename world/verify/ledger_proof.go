package verify

import (
	"cmp"
	"slices"

	"github.com/worldkernel/worldkernel/receipt"
)

// duplicate reports that something about an intent happened once more than it may.
func (v *verifier) duplicate(place string, key receipt.Key, x *invocation, why string) {
	v.blame(place, key, why, &x.Duplicate, &v.report.Ledger.DuplicateKeys)
}

// orphan reports that something about an intent happened without what it follows
// from.
func (v *verifier) orphan(place string, key receipt.Key, x *invocation, why string) {
	v.blame(place, key, why, &x.Orphan, &v.report.Ledger.OrphanKeys)
}

// blame reports a fault of an intent, and lists its key unless it was listed before.
func (v *verifier) blame(place string, key receipt.Key, why string, listed *bool, keys *[]receipt.Key) {
	v.fault(place, "intent %s: %s", key, why)
	if !*listed {
		*listed, *keys = true, append(*keys, key)
	}
}

// closeLedger judges the intents when the journal has been read.
func (v *verifier) closeLedger() {
	proof := &v.report.Ledger
	for key, x := range v.intents { // order cannot show: sorted below. What was put aside has ended
		switch x.Stage {
		case doubtful, expired:
			proof.InDoubt++
			fallthrough
		case flying:
			proof.PendingIdempotencyKeys = append(proof.PendingIdempotencyKeys, key)
		case awaiting, held, asking:
			proof.Awaiting++
		default: // ended, or not started
		}
	}
	slices.SortFunc(proof.PendingIdempotencyKeys, func(a, b receipt.Key) int {
		return cmp.Compare(v.intents[a].Place, v.intents[b].Place)
	})
	proof.OK = !v.part() && len(proof.DuplicateKeys)+len(proof.OrphanKeys) == 0
}
