package verify

import (
	"slices"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// stage is where an intent stands, by what the journal has said of it.
type stage uint8

const (
	unknown  stage = iota // nobody decided about it
	denied                // for good
	parked                // waits for approval
	approved              // a person did; the gate has still to agree
	refused               // a person did; the denial follows at once
	ready                 // an attempt may be started
	flying                // an attempt is in flight
	expired               // nobody can tell what came of it; what is done about that follows at once
	doubtful              // an attempt is in doubt
	resolved              // it did not happen, or does no harm twice: an attempt may be started, or the kernel ends it
	answered              // a receipt has ended the last attempt
	held                  // and a person has to confirm it
	ending                // the kernel ends it at once, or when its compensation has ended
	ended                 // the kernel has ended it
)

// tried is an attempt, as its permit names it.
type tried struct {
	attempt uint64
	nonce   receipt.Nonce
}

// invocation is what the journal has said of one intent so far.
type invocation struct {
	stage     stage
	last      tried   // the attempt that was started last
	given     []tried // given up without a receipt; one may still come
	duplicate bool    // reported
	orphan    bool    // reported
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

// ledger holds a record against what is known of its intent.
func (v *verifier) ledger(place string, body world.Body) {
	switch b := body.(type) {
	case *world.IntentEmitted:
		v.decided(place, b.Key, ready)
	case *world.IntentParked:
		v.decided(place, b.Key, parked)
	case *world.IntentDenied:
		v.decided(place, b.Key, denied)
	case *world.Started:
		v.started(place, b)
	case *world.IntentWaiting:
		v.waiting(place, b)
	case *world.Expired:
		v.expired(place, b)
	case *world.InDoubt:
		v.inDoubt(place, b)
	case *world.Resolved:
		v.resolved(place, b)
	case *world.Confirmed:
		v.confirmed(place, b)
	case *world.IntentEnded:
		v.ended(place, b.Key)
	}
}

// decided takes a decision of the gate. What is parked gets a second one: a
// denial, or leave after an approval.
func (v *verifier) decided(place string, key receipt.Key, to stage) {
	x := v.invocation(key)
	switch {
	case x.stage == unknown, x.stage == approved && to != parked, to == denied && (x.stage == parked || x.stage == refused):
		x.stage = to
	case to == ready && (x.stage == parked || x.stage == refused):
		v.orphan(place, key, x, "it was allowed and nobody had approved it")
	default:
		v.duplicate(place, key, x, "it was decided before")
	}
}

// started takes a permit: it needs a decision, and the attempt before must be
// over.
func (v *verifier) started(place string, b *world.Started) {
	x := v.invocation(b.Key)
	v.report.Ledger.Attempts++
	switch {
	case x.stage <= refused:
		v.orphan(place, b.Key, x, "it was started without a decision of the gate")
	case x.stage != ready && x.stage != resolved:
		v.duplicate(place, b.Key, x, "it was started before")
	case b.Attempt != x.last.attempt+1:
		v.duplicate(place, b.Key, x, "the attempt is not the next one")
	}
	x.stage, x.last = flying, tried{b.Attempt, b.Nonce}
}

// finished takes a receipt: the end of the attempt in flight or in doubt.
func (v *verifier) finished(place string, r *receipt.Receipt) {
	x := v.invocation(r.Key)
	at := tried{r.Attempt, r.Nonce}
	switch {
	case x.last.attempt == 0:
		v.orphan(place, r.Key, x, "it was finished and never started")
	case at != x.last && !slices.Contains(x.given, at):
		v.orphan(place, r.Key, x, "its receipt answers no attempt that was started")
	case x.stage != flying && x.stage != doubtful:
		v.duplicate(place, r.Key, x, "it was finished or given up before")
		return
	}
	x.stage = answered
}

// late takes a receipt for an attempt that was given up.
func (v *verifier) late(place string, r *receipt.Receipt) {
	x := v.invocation(r.Key)
	at := slices.Index(x.given, tried{r.Attempt, r.Nonce})
	if at < 0 {
		v.orphan(place, r.Key, x, "its late receipt answers no attempt that was given up")
		return
	}
	x.given = slices.Delete(x.given, at, at+1)
}

// waiting says that the receipt before it was not the last word: another
// attempt may follow, or a compensation that ends it.
func (v *verifier) waiting(place string, b *world.IntentWaiting) {
	x := v.invocation(b.Key)
	switch {
	case x.stage != answered || b.Attempt != x.last.attempt:
		v.orphan(place, b.Key, x, "it waits without a receipt before")
	case b.Outcome == receipt.OutcomeRetryableFailure:
		x.stage = ready
	default:
		x.stage = ending
	}
}

func (v *verifier) expired(place string, b *world.Expired) {
	x := v.invocation(b.Key)
	if x.stage != flying || b.Attempt != x.last.attempt {
		v.orphan(place, b.Key, x, "an attempt expired that was not in flight")
		return
	}
	x.stage = expired
}

// inDoubt says what is done about an attempt that expired.
func (v *verifier) inDoubt(place string, b *world.InDoubt) {
	x := v.invocation(b.Key)
	switch {
	case x.stage != expired || b.Attempt != x.last.attempt:
		v.orphan(place, b.Key, x, "an attempt is in doubt that has not expired")
	case b.Action == manifest.InDoubtRetry:
		x.giveUp(ready)
	case b.Action == manifest.InDoubtFail:
		x.giveUp(ending)
	default:
		x.stage = doubtful
	}
}

// giveUp ends the attempt without a receipt.
func (x *invocation) giveUp(to stage) {
	x.given = append(x.given, x.last)
	x.stage = to
}

// resolved takes a decision about what is parked or in doubt.
func (v *verifier) resolved(place string, b *world.Resolved) {
	x := v.invocation(b.Key)
	owed := map[world.Resolution]stage{
		world.Approve: parked, world.Disapprove: parked,
		world.Executed: doubtful, world.NotExecuted: doubtful, world.RetryAnyway: doubtful,
	}[b.How]
	switch {
	case b.How == world.Disapprove && x.stage == held:
		x.stage = ending
	case owed == unknown || x.stage != owed:
		v.orphan(place, b.Key, x, "a decision about it, and none was owed")
	case b.How == world.Approve:
		x.stage = approved
	case b.How == world.Disapprove:
		x.stage = refused
	case b.How == world.Executed:
		x.giveUp(ending)
	default:
		x.giveUp(resolved)
	}
}

// confirmed takes what a verifier, or a person, says about a recorded result.
func (v *verifier) confirmed(place string, b *world.Confirmed) {
	x := v.invocation(b.Key)
	switch {
	case x.stage == held:
		x.stage = answered
	case x.stage != answered:
		v.orphan(place, b.Key, x, "it was confirmed without a receipt")
	case b.Verdict == world.Happened:
	case b.Mode == manifest.VerifyWarn:
		v.report.Ledger.ConfirmedNot++
	case b.Mode == manifest.VerifyHuman:
		x.stage = held
	default:
		x.stage = ending
	}
}

// ended takes the kernel's own end of an intent: after a decision, a
// compensation, or a result that was not confirmed.
func (v *verifier) ended(place string, key receipt.Key) {
	x := v.invocation(key)
	switch x.stage {
	case resolved, ending:
		x.stage = ended
	case ended, denied, answered:
		v.duplicate(place, key, x, "it had ended before")
	default:
		v.orphan(place, key, x, "it ended and nothing had decided that")
	}
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
	proof.OK = len(proof.DuplicateKeys)+len(proof.OrphanKeys) == 0
}
