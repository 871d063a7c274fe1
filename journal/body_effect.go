package journal

import (
	"strings"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/receipt"
)

// OperatorEffect is the payload of effect.submitted: an effect that a person
// asks for.
type OperatorEffect struct {
	Version
	Actor  string `json:"actor"`
	N      uint64 `json:"n"` // numbers the effects of all operators; it never returns
	Kind   string `json:"kind"`
	Cap    string `json:"cap"`
	Reason string `json:"reason"`
	Params Data   `json:"params"`
}

// Expired is the payload of invocation.expired: the attempt in flight is given
// up, because nobody can tell any more what comes of it.
type Expired struct {
	Version
	Key     receipt.Key `json:"key"`
	Attempt uint64      `json:"attempt"`
	Reason  string      `json:"reason"`
}

// Due is the payload of invocation.due: the backoff before the next attempt is
// over.
type Due struct {
	Version
	Key     receipt.Key `json:"key"`
	Attempt uint64      `json:"attempt"` // the one that failed
}

// Late is the payload of invocation.late: a receipt for an attempt that was
// given up. It changes nothing.
type Late struct {
	Version
	Receipt Data `json:"receipt"`
}

// Resolved is the payload of intent.resolved: a person, or a verifier, decides
// about an intent that waits for that.
type Resolved struct {
	Version
	Key     receipt.Key `json:"key"`
	How     Resolution  `json:"how"`
	Params  Hash        `json:"params_hash"` // what the decision is about
	Actor   string      `json:"actor"`
	Reason  string      `json:"reason"`
	Payload Data        `json:"payload"` // of an executed effect; the params of what is asked for in its place; the answer to what it asks
}

// Resolution is a decision about an intent.
type Resolution string

// The decisions about an intent that awaits a person, about one in doubt, about one that failed (of these
// NotExecuted and RetryAnyway, which have another intent asked for), and about one that is not
// begun.
const (
	Approve     Resolution = "approve"
	Disapprove  Resolution = "deny"
	Executed    Resolution = "executed"     // it happened: it ends with a payload
	NotExecuted Resolution = "not_executed" // it did not: the next attempt may go
	RetryAnyway Resolution = "retry"        // nobody knows, and another attempt does no harm; or it failed, and is asked for again
	Edit        Resolution = "edit"         // it ends, and other params are asked for in its place
	Answer      Resolution = "answer"       // to what it asks: the next attempt may go, and takes the payload along
	Stop        Resolution = "stop"         // what is open or awaits an approval or an answer: no attempt begins any more
)

// Confirmed is the payload of intent.confirmed: whether the outside still is
// what a recorded receipt says.
type Confirmed struct {
	Version
	Key     receipt.Key          `json:"key"`
	Mode    string               `json:"mode"` // one of the manifest's, or "person"
	Verdict receipt.FoundVerdict `json:"verdict"`
	Actor   string               `json:"actor"`
	Reason  string               `json:"reason"`
}

// KeysRotated is the payload of keys.rotated: receipts are signed with another
// key from now on.
type KeysRotated struct {
	Version
	KeyID   string   `json:"key_id"` // signs from now on
	Revoked []string `json:"revoked"`
	Actor   string   `json:"actor"`
}

// IntentAwaitingApproval is the payload of intent.awaiting_approval: an effect that a person has to
// approve.
type IntentAwaitingApproval struct {
	Version
	Key        receipt.Key           `json:"key"`
	Step       receipt.StepID        `json:"step_id"`
	Cell       string                `json:"cell"`
	Kind       string                `json:"kind"`
	Tag        string                `json:"tag"`
	Cap        string                `json:"cap"`
	Occurrence uint64                `json:"occurrence"`
	Rules      []string              `json:"rules"`
	Deadline   uint64                `json:"deadline"` // the tick at which it is denied
	Params     Data                  `json:"params"`
	Reason     string                `json:"reason"` // why it asks though it was let through, or asked, before; empty: it asks for the first time
	Seen       receipt.ApprovalBasis `json:"seen"`   // what an approval is bound to
}

// InDoubt is the payload of intent.in_doubt.
type InDoubt struct {
	Version
	Key     receipt.Key `json:"key"`
	Cell    string      `json:"cell"`
	Attempt uint64      `json:"attempt"`
	Action  string      `json:"action"` // what is done about it, one of the manifest's on_in_doubt
	Reason  string      `json:"reason"`
}

// IntentWaiting is the payload of intent.waiting: the receipt before it was not
// the intent's last word.
type IntentWaiting struct {
	Version
	Key     receipt.Key     `json:"key"`
	Cell    string          `json:"cell"`
	Attempt uint64          `json:"attempt"`
	Outcome receipt.Outcome `json:"outcome"` // retryable: for the next attempt; compensatable: for its compensation; input_required: for a person's answer
}

// IntentEnded is the payload of intent.ended: the end of an intent that no
// receipt of the outside tells.
type IntentEnded struct {
	Version
	Key     receipt.Key     `json:"key"`
	Cell    string          `json:"cell"`
	Step    receipt.StepID  `json:"step_id"`
	Status  receipt.Status  `json:"status"`
	Outcome receipt.Outcome `json:"outcome"`
	Payload Data            `json:"payload"`
}

// IntentCancelled is the payload of intent.cancelled, caused by the step in which a cell
// cancelled an intent that it had asked for: no attempt of it begins any more, and what it
// comes to is told apart. One that was not under way has its end next.
type IntentCancelled struct {
	Version
	Key     receipt.Key `json:"key"`
	Cell    string      `json:"cell"`
	Attempt uint64      `json:"attempt"` // the last that was permitted; 0: none was
}

// MaxTextBytes is how much of an error or a reason, a person's or a program's,
// is journaled.
const MaxTextBytes = 1 << 10

// Text makes foreign text what a journal can hold.
func Text(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if len(text) <= MaxTextBytes {
		return text
	}
	return strings.ToValidUTF8(text[:MaxTextBytes], "") + "…"
}
