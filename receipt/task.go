package receipt

// Work is what a host is to do with an attempt.
type Work uint8

// The kinds of work of a host. Each but Forget, and GiveBack of what was begun, is answered once,
// unless the process ends. Recover of what a worker elsewhere still performs is answered as Perform
// is.
const (
	Perform  Work = iota // perform the attempt
	Recover              // a process that has ended performed it, perhaps: answer with the stored result, that it is lost, or that it is Unbegun
	Retry                // wait for the backoff before the next attempt, then answer Due
	Verify               // nobody can tell whether it happened: ask the effect's verifier
	Confirm              // compare the outside with the stored receipt: see Task.Receipt
	Forget               // its receipt is in the journal: the stored result can go
	Withdraw             // never perform the attempt, unless it was begun already
	GiveBack             // likewise, and answer with a receipt that gives the attempt back; one that only asks what came of something ends at once
	Hasten               // the wait that Retry began is over: answer Due
)

// Task is a piece of work for a host. Of the permit's intent, Retry and Forget
// have key and kind only.
type Task struct {
	Work
	Permit
	Receipt []byte // Confirm: the receipt that the journal holds
}

// Answer is the outcome of a task. Just one of Receipt (with Checked), Due, Lost, Found, Unbegun
// and Err is set.
type Answer struct {
	Key     Key
	Attempt uint64
	Work    Work

	Receipt []byte   // signed and canonical; durable where the effect is live
	Checked *Checked // the same, where the host has looked at it already; nil or nothing: it has not
	Due     bool     // the backoff is over
	Lost    string   // why nobody can tell whether the attempt happened
	Found   *Found   // what a verifier says
	Unbegun bool     // Withdraw, Recover: it was not begun, and never will be but by another Perform
	Err     error    // a deterministic effect has no answer: it stays in flight and the world stops
}

// Found is what a verifier found out about an effect.
type Found struct {
	Verdict FoundVerdict
	Final   bool   // NotHappened, and the outside sees to it that it never will
	Payload Data   // Happened: what the cell is told; empty: null
	Reason  string // one sentence: what was asked and what the answer was
}

// FoundVerdict says whether the outside shows an effect.
type FoundVerdict string

// The findings of a verifier. An effect in doubt happened, did not happen, or nobody can tell; a
// recorded receipt is confirmed (Happened) or not.
const (
	Happened    FoundVerdict = "happened"
	NotHappened FoundVerdict = "not_happened"
	Unknown     FoundVerdict = "unknown"
)

// Queued are attempts that are permitted and not begun: their numbers, by intent.
type Queued map[Key]uint64

// Has reports whether an intent is in flight and its attempt is not begun.
func (q Queued) Has(e *Entry) bool {
	attempt, ok := q[e.Intent.Key]
	return ok && e.State == StateInFlight && e.Attempt == attempt && e.Accepted() == ""
}
