package verify

import (
	"cmp"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// stage is where an intent stands, by what the journal has said of it.
type stage uint8

const (
	unknown      stage = iota // nobody decided about it
	denied                    // for good, or until a rollback leads to it again
	cancelled                 // by its cell or a rollback, before anything was attempted; the same
	awaiting                  // waits for approval
	approved                  // a person did; the gate has still to agree
	refused                   // a person did; the denial follows at once
	edited                    // a person did, and another is asked for in its place; its end follows at once
	ready                     // an attempt may be started
	flying                    // an attempt is in flight
	expired                   // nobody can tell what came of it; what is done about that follows at once
	doubtful                  // an attempt is in doubt
	resolved                  // it did not happen, or does no harm twice: an attempt may be started, or the kernel ends it
	answered                  // a receipt has ended the last attempt
	held                      // and a person has to confirm it
	ending                    // the kernel ends it at once
	asking                    // the last attempt asked a person, who has not answered
	compensating              // the kernel ends it when its compensation has ended
	ended                     // the kernel has ended it
	compensated               // it happened and was made up for
)

// tried is an attempt, as its permit names it.
type tried struct {
	_       struct{} `cbor:",toarray"`
	Attempt uint64
	Nonce   receipt.Nonce
}

// invocation is what the journal has said of one intent so far.
type invocation struct {
	_         struct{} `cbor:",toarray"`
	Stage     stage
	Place     uint64        // in the order in which the journal first names intents
	Cell      string        // that asked for it; "": nobody knows
	Last      tried         // the attempt that was started last
	Given     []tried       // given up without a receipt; one may still come
	Returned  uint64        // attempts that were given back: nothing was done
	By        journal.Seq   // the receipt that gave the last of them back
	Asked     []journal.Seq // records at which it was asked for: several where rollbacks led there again
	Accepted  bool          // the outside works on it: attempts only ask
	Failed    bool          // the last that was said of its end is that it failed
	Cancelled []journal.Seq // records in which its cell cancelled it
	Hidden    bool          // a payload that is gone may have said more of it
	Gone      uint64        // how many such payloads had come by when it was last looked at
	Duplicate bool          // reported
	Orphan    bool          // reported

	saved bool // it has been put aside once
}

// is reports whether an intent is, or may be, at one of some stages.
func (x *invocation) is(stages ...stage) bool { return x.Hidden || slices.Contains(stages, x.Stage) }

// rests reports whether nothing is under way with an intent, and all that is known of it can
// leave memory.
func (x *invocation) rests() bool {
	return x.settled() || x.Stage == denied || x.Stage == cancelled
}

// settled reports whether an intent happened or failed for good: nothing that the journal goes
// on to say leads away from there unseen.
func (x *invocation) settled() bool {
	return x.Stage == answered || x.Stage == ended || x.Stage == compensated
}

// move takes the journal's word for where an intent stands now.
func (x *invocation) move(to stage) { x.Stage, x.Hidden = to, false }

// attempted reports whether an attempt was made that was not given back.
func (x *invocation) attempted() bool { return x.Last.Attempt > x.Returned }

// giveUp ends the attempt without a receipt.
func (x *invocation) giveUp(to stage) {
	x.Accepted = false
	x.Given = append(x.Given, x.Last)
	x.move(to)
}

// invocation returns what is known of an intent that a decision is about.
func (v *verifier) invocation(key receipt.Key) *invocation {
	x := v.intents[key]
	if x == nil {
		x = v.bring(key)
		v.intents[key] = x
	}
	if x.Gone < v.gone && !x.settled() {
		x.Hidden = true
	}
	x.Gone = v.gone
	return x
}

// askedBy notes which cell asks for an intent.
func (v *verifier) askedBy(key receipt.Key, cell string) {
	x := v.invocation(key)
	x.Cell = cmp.Or(x.Cell, cell)
}

// decidedOn returns what is known of an intent that must have been decided about.
// The decision may be among those whose payloads are gone.
func (v *verifier) decidedOn(key receipt.Key) *invocation {
	x := v.invocation(key)
	if x.Stage == unknown && v.unnamed > 0 {
		v.unnamed--
		x.Hidden = true
	}
	return x
}

// ledger holds a record against what is known of its intent. r is the receipt in it,
// nil where there is none.
func (v *verifier) ledger(place string, body journal.Body, r *receipt.Receipt) {
	switch b := body.(type) {
	case *journal.Finished:
		if r != nil {
			v.finished(place, r)
			if v.effects[r.Kind].Verify == nil {
				v.report.Ledger.NoVerifier++
			}
		}
	case *journal.Late:
		if r != nil {
			v.late(place, r)
		}
	case *journal.RolledBack:
		v.rolledBack(place, b)
	case *journal.IntentEmitted:
		v.askedBy(b.Key, b.Cell)
		v.emitted(place, b)
	case *journal.IntentAwaitingApproval:
		v.askedBy(b.Key, b.Cell)
		v.awaits(place, b)
	case *journal.IntentDenied:
		v.askedBy(b.Key, b.Cell)
		v.decided(place, b.Key, denied)
	case *journal.Started:
		v.started(place, b)
	case *journal.IntentWaiting:
		v.waiting(place, b)
	case *journal.Expired:
		v.expired(place, b)
	case *journal.InDoubt:
		v.inDoubt(place, b)
	case *journal.Resolved:
		v.resolved(place, b)
	case *journal.Confirmed:
		v.confirmed(place, b)
	case *journal.IntentCancelled:
		v.cancelledByCell(place, b)
	case *journal.IntentEnded:
		v.ended(place, b)
	}
}

// decided takes a decision of the gate. What awaits approval gets a second one: a
// denial, or leave after an approval. What was allowed is judged again when its turn comes, and
// under other rules: it is denied, unless it was attempted before, or a person is asked. What
// was denied or cancelled gets another where a rollback led to it again.
func (v *verifier) decided(place string, key receipt.Key, to stage) {
	x := v.invocation(key)
	switch {
	case (x.Stage == denied || x.Stage == cancelled) && !v.reached(x):
		x.Asked = []journal.Seq{v.now}
		x.move(to)
	case x.Stage == unknown, x.Hidden:
		x.Asked = append(x.Asked, v.now)
		x.move(to)
	case to == ready && x.is(approved), to == denied && x.is(ready, awaiting, approved, refused) && !x.attempted():
		x.move(to)
	case to == ready && x.is(awaiting, refused):
		v.orphan(place, key, x, "it was allowed and nobody had approved it")
	default:
		v.duplicate(place, key, x, "it was decided before")
	}
}

// started takes a permit: it needs a decision, and the attempt before must be
// over.
func (v *verifier) started(place string, b *journal.Started) {
	x := v.decidedOn(b.Key)
	v.report.Ledger.Attempts++
	switch {
	case x.Stage < ready && !x.Hidden:
		v.orphan(place, b.Key, x, "it was started without a decision of the gate")
	case !x.is(ready, resolved):
		v.duplicate(place, b.Key, x, "it was started before")
	case b.Attempt != x.Last.Attempt+1:
		v.duplicate(place, b.Key, x, "the attempt is not the next one")
	case !x.Accepted && slices.ContainsFunc(x.Cancelled, v.inThisWorld):
		v.duplicate(place, b.Key, x, "it was started after its cell had cancelled it")
	}
	x.move(flying)
	x.Last = tried{Attempt: b.Attempt, Nonce: b.Nonce}
}

// finished takes a receipt: the end of the attempt in flight or in doubt.
func (v *verifier) finished(place string, r *receipt.Receipt) {
	x := v.invocation(r.Key)
	at := tried{Attempt: r.Attempt, Nonce: r.Nonce}
	switch {
	case x.Last.Attempt == 0:
		v.orphan(place, r.Key, x, "it was finished and never started")
	case at != x.Last && !slices.Contains(x.Given, at):
		v.orphan(place, r.Key, x, "its receipt answers no attempt that was started")
	case !x.is(flying, doubtful):
		v.duplicate(place, r.Key, x, "it was finished or given up before")
		return
	}
	if r.GivenBack() {
		x.Returned, x.By = x.Returned+1, v.now
	}
	x.Failed = r.Status != receipt.StatusOK
	x.move(answered)
}

// late takes a receipt for an attempt that was given up.
func (v *verifier) late(place string, r *receipt.Receipt) {
	x := v.invocation(r.Key)
	at := slices.Index(x.Given, tried{Attempt: r.Attempt, Nonce: r.Nonce})
	if at < 0 {
		if !x.Hidden {
			v.orphan(place, r.Key, x, "its late receipt answers no attempt that was given up")
		}
		return
	}
	x.Given = slices.Delete(x.Given, at, at+1)
}

// waiting says that the receipt before it was not the last word: another
// attempt may follow, or a compensation that ends it.
func (v *verifier) waiting(place string, b *journal.IntentWaiting) {
	x := v.decidedOn(b.Key)
	switch {
	case !x.is(answered) || b.Attempt != x.Last.Attempt:
		v.orphan(place, b.Key, x, "it waits without a receipt before")
	case b.Outcome == receipt.OutcomeRetryableFailure:
		x.move(ready)
	case b.Outcome == receipt.OutcomeAccepted:
		x.Accepted = true
		x.move(ready)
	case b.Outcome == receipt.OutcomeInputRequired:
		x.Accepted = false
		x.move(asking)
	default:
		x.move(compensating)
	}
}

func (v *verifier) expired(place string, b *journal.Expired) {
	x := v.decidedOn(b.Key)
	if !x.is(flying) || b.Attempt != x.Last.Attempt {
		v.orphan(place, b.Key, x, "an attempt expired that was not in flight")
		return
	}
	x.move(expired)
}

// inDoubt says what is done about an attempt that expired, or that is the parent's
// where a fork leaves it.
func (v *verifier) inDoubt(place string, b *journal.InDoubt) {
	x := v.decidedOn(b.Key)
	before := expired
	if v.forks() {
		before = flying
	}
	switch {
	case !x.is(before) || b.Attempt != x.Last.Attempt:
		v.orphan(place, b.Key, x, "an attempt is in doubt that has not expired")
	case b.Action == manifest.InDoubtRetry:
		x.giveUp(ready)
	case b.Action == manifest.InDoubtFail:
		x.giveUp(ending)
	default:
		x.move(doubtful)
	}
}

// resolved takes a decision about what awaits a person or is in doubt.
func (v *verifier) resolved(place string, b *journal.Resolved) {
	x := v.decidedOn(b.Key)
	wanted := map[journal.Resolution]stage{
		journal.Approve: awaiting, journal.Disapprove: awaiting, world.Reuse: awaiting, journal.Edit: awaiting,
		journal.Executed: doubtful, journal.NotExecuted: doubtful, journal.RetryAnyway: doubtful,
		journal.Answer: asking,
	}[b.How]
	switch {
	case b.How == journal.Stop && (!x.Accepted || x.Hidden) && x.is(ready, resolved, awaiting, asking):
		x.move(refused)
	case b.How == journal.Disapprove && (x.Stage == held || x.Stage == asking):
		x.move(ending)
	case (b.How == journal.NotExecuted || b.How == journal.RetryAnyway) && (x.Stage == answered || x.Stage == ended) && x.Failed:
		// It stays as it is: another one is asked for.
	case wanted == unknown || !x.is(wanted):
		v.orphan(place, b.Key, x, "a decision about it, and none was asked for")
	case b.How == journal.Approve:
		x.move(approved)
	case b.How == journal.Answer:
		x.move(ready)
	case b.How == journal.Disapprove:
		x.move(refused)
	case b.How == journal.Edit:
		x.move(edited)
	case b.How == world.Reuse:
		x.move(ending)
	case b.How == journal.Executed:
		x.giveUp(ending)
	default:
		x.giveUp(resolved)
	}
}

// byPerson is the mode of a confirmation that no verifier gave.
const byPerson = "person"

// confirmed takes what a verifier, or a person, says about a recorded result:
// before its cell handles it, or is told it again after a rollback.
func (v *verifier) confirmed(place string, b *journal.Confirmed) {
	x := v.decidedOn(b.Key)
	switch {
	case b.Mode == byPerson && x.is(held):
		x.move(answered)
	case b.Mode == byPerson:
		v.orphan(place, b.Key, x, "a person confirmed it and was not asked")
	case !x.is(answered):
		v.orphan(place, b.Key, x, "it was confirmed without a receipt")
	case b.Verdict == receipt.Happened:
	case b.Mode == manifest.VerifyWarn:
		v.report.Ledger.ConfirmedNot++
	case b.Mode == manifest.VerifyHuman:
		x.move(held)
	default:
		x.move(ending)
	}
}

// ended takes the kernel's own end of an intent: after a decision, a
// compensation, a rollback, or a result that was not confirmed.
func (v *verifier) ended(place string, b *journal.IntentEnded) {
	x := v.decidedOn(b.Key)
	x.Failed = b.Outcome != receipt.OutcomeSideEffectCommitted
	switch {
	case b.Status == receipt.StatusCancelled && x.Stage == edited:
		x.move(cancelled)
	case b.Status == receipt.StatusCancelled:
		v.cancelled(place, b.Key, x)
	case x.Hidden, x.Stage == compensating:
		x.move(endedAs(b.Outcome))
	case x.is(resolved, ending), x.is(ready, awaiting, asking) && v.endsCancelled(x):
		x.move(ended)
	case x.is(ready, awaiting, approved, refused, asking) && x.attempted() && !slices.ContainsFunc(x.Cancelled, v.inThisWorld): // no further attempt is allowed
		x.move(ended)
	case x.is(ended, denied, cancelled, answered, compensated):
		v.duplicate(place, b.Key, x, "it had ended before")
	default:
		v.orphan(place, b.Key, x, "it ended and nothing had decided that")
	}
}

// endedAs returns the stage of an intent whose compensation has ended.
func endedAs(outcome receipt.Outcome) stage {
	switch outcome {
	case receipt.OutcomeCompensated:
		return compensated
	case receipt.OutcomeSideEffectCommitted: // a rollback asked for the compensation in vain: its receipt still counts
		return answered
	default:
		return ended
	}
}
