package verify

import "github.com/worldkernel/worldkernel/receipt"

// invocation is what the journal has said of one intent so far.
type invocation struct {
	decided   bool
	inFlight  bool // started, no end yet
	ended     bool
	duplicate bool // reported
	orphan    bool // reported
}

func (v *verifier) invocation(key receipt.Key) *invocation {
	x := v.intents[key]
	if x == nil {
		x = new(invocation)
		v.intents[key] = x
		v.order = append(v.order, key)
	}
	return x
}

// decided takes a decision of the gate.
func (v *verifier) decided(place string, key receipt.Key) {
	x := v.invocation(key)
	if x.decided {
		v.duplicate(place, key, x, "it was decided before")
	}
	x.decided = true
}

// started takes a permit: it needs a decision, and there is one for an intent.
func (v *verifier) started(place string, key receipt.Key) {
	x := v.invocation(key)
	switch {
	case !x.decided:
		v.orphan(place, key, x, "it was started without a decision of the gate")
	case x.inFlight || x.ended:
		v.duplicate(place, key, x, "it was started before")
	}
	x.inFlight = true
}

// finished takes the end of an attempt.
func (v *verifier) finished(place string, key receipt.Key) {
	x := v.invocation(key)
	switch {
	case x.inFlight:
	case x.ended:
		v.duplicate(place, key, x, "it was finished before")
	default:
		v.orphan(place, key, x, "it was finished and never started")
	}
	x.inFlight, x.ended = false, true
}

func (v *verifier) duplicate(place string, key receipt.Key, x *invocation, why string) {
	v.fault(place, "intent %s: %s", key, why)
	if !x.duplicate {
		x.duplicate = true
		v.report.Ledger.DuplicateKeys = append(v.report.Ledger.DuplicateKeys, key)
	}
}

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
		if v.intents[key].inFlight {
			proof.PendingIdempotencyKeys = append(proof.PendingIdempotencyKeys, key)
		}
	}
	proof.OK = len(proof.DuplicateKeys)+len(proof.OrphanKeys) == 0
}
