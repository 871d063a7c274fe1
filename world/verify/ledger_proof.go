package verify

import "github.com/worldkernel/worldkernel/receipt"

// duplicate reports that something about an intent happened once more than it may.
func (v *verifier) duplicate(place string, key receipt.Key, x *invocation, why string) {
	v.fault(place, "intent %s: %s", key, why)
	if !x.duplicate {
		x.duplicate = true
		v.report.Ledger.DuplicateKeys = append(v.report.Ledger.DuplicateKeys, key)
	}
}

// orphan reports that something about an intent happened without what it follows
// from.
func (v *verifier) orphan(place string, key receipt.Key, x *invocation, why string) {
	v.fault(place, "intent %s: %s", key, why)
	if !x.orphan {
		x.orphan = true
		v.report.Ledger.OrphanKeys = append(v.report.Ledger.OrphanKeys, key)
	}
}

// closeLedger judges the intents when the journal has been read.
func (v *verifier) closeLedger() {
	proof := &v.report.Ledger
	for _, key := range v.order {
		switch v.intents[key].stage {
		case doubtful, expired:
			proof.InDoubt++
			fallthrough
		case flying:
			proof.PendingIdempotencyKeys = append(proof.PendingIdempotencyKeys, key)
		case parked, held:
			proof.Parked++
		default: // ended, or not started
		}
	}
	proof.OK = !v.part() && len(proof.DuplicateKeys)+len(proof.OrphanKeys) == 0
}
