package journal

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// OperatorEffect is the payload of effect.submitted: an effect that a person
// asks for.
type OperatorEffect struct {
	_      struct{} `cbor:",toarray"`
	V      uint64   `json:"v"`
	Actor  string   `json:"actor"`
	N      uint64   `json:"n"` // numbers the effects of all operators; it never returns
	Kind   string   `json:"kind"`
	Cap    string   `json:"cap"`
	Reason string   `json:"reason"`
	Params Data     `json:"params"`
}

// Expired is the payload of invocation.expired: the attempt in flight is given
// up, because nobody can tell any more what comes of it.
type Expired struct {
	_       struct{}    `cbor:",toarray"`
	V       uint64      `json:"v"`
	Key     receipt.Key `json:"key"`
	Attempt uint64      `json:"attempt"`
	Reason  string      `json:"reason"`
}

// Due is the payload of invocation.due: the backoff before the next attempt is
// over.
type Due struct {
	_       struct{}    `cbor:",toarray"`
	V       uint64      `json:"v"`
	Key     receipt.Key `json:"key"`
	Attempt uint64      `json:"attempt"` // the one that failed
}

// Late is the payload of invocation.late: a receipt for an attempt that was
// given up. It changes nothing.
type Late struct {
	_       struct{} `cbor:",toarray"`
	V       uint64   `json:"v"`
	Receipt Data     `json:"receipt"`
}

// Resolved is the payload of intent.resolved: a person, or a verifier, decides
// about an intent that waits for that.
type Resolved struct {
	_       struct{}    `cbor:",toarray"`
	V       uint64      `json:"v"`
	Key     receipt.Key `json:"key"`
	How     Resolution  `json:"how"`
	Params  Hash        `json:"params_hash"` // what the decision is about
	Actor   string      `json:"actor"`
	Reason  string      `json:"reason"`
	Payload Data        `json:"payload"` // of an executed effect
}

// Resolution is a decision about an intent.
type Resolution string

// The decisions about a parked intent, and about one in doubt.
const (
	Approve     Resolution = "approve"
	Disapprove  Resolution = "deny"
	Executed    Resolution = "executed"     // it happened: it ends with a payload
	NotExecuted Resolution = "not_executed" // it did not: the next attempt may go
	RetryAnyway Resolution = "retry"        // nobody knows, and another attempt does no harm
)

// Confirmed is the payload of intent.confirmed: whether the outside still is
// what a recorded receipt says.
type Confirmed struct {
	_       struct{}             `cbor:",toarray"`
	V       uint64               `json:"v"`
	Key     receipt.Key          `json:"key"`
	Mode    string               `json:"mode"` // one of the manifest's, or "person"
	Verdict receipt.FoundVerdict `json:"verdict"`
	Actor   string               `json:"actor"`
	Reason  string               `json:"reason"`
}

// KeysRotated is the payload of keys.rotated: receipts are signed with another
// key from now on.
type KeysRotated struct {
	_       struct{} `cbor:",toarray"`
	V       uint64   `json:"v"`
	KeyID   string   `json:"key_id"` // signs from now on
	Revoked []string `json:"revoked"`
	Actor   string   `json:"actor"`
}

// IntentParked is the payload of intent.parked: an effect that a person has to
// approve.
type IntentParked struct {
	_          struct{}       `cbor:",toarray"`
	V          uint64         `json:"v"`
	Key        receipt.Key    `json:"key"`
	Step       receipt.StepID `json:"step_id"`
	Cell       string         `json:"cell"`
	Kind       string         `json:"kind"`
	Tag        string         `json:"tag"`
	Cap        string         `json:"cap"`
	Occurrence uint64         `json:"occurrence"`
	Rules      []string       `json:"rules"`
	Deadline   uint64         `json:"deadline"` // the tick at which it is denied
	Params     Data           `json:"params"`
}

// InDoubt is the payload of intent.in_doubt.
type InDoubt struct {
	_       struct{}    `cbor:",toarray"`
	V       uint64      `json:"v"`
	Key     receipt.Key `json:"key"`
	Cell    string      `json:"cell"`
	Attempt uint64      `json:"attempt"`
	Action  string      `json:"action"` // what is done about it, one of the manifest's on_in_doubt
	Reason  string      `json:"reason"`
}

// IntentWaiting is the payload of intent.waiting: the receipt before it was not
// the intent's last word.
type IntentWaiting struct {
	_       struct{}        `cbor:",toarray"`
	V       uint64          `json:"v"`
	Key     receipt.Key     `json:"key"`
	Cell    string          `json:"cell"`
	Attempt uint64          `json:"attempt"`
	Outcome receipt.Outcome `json:"outcome"` // retryable: for the next attempt; compensatable: for its compensation
}

// IntentEnded is the payload of intent.ended: the end of an intent that no
// receipt of the outside tells.
type IntentEnded struct {
	_       struct{}        `cbor:",toarray"`
	V       uint64          `json:"v"`
	Key     receipt.Key     `json:"key"`
	Cell    string          `json:"cell"`
	Step    receipt.StepID  `json:"step_id"`
	Status  receipt.Status  `json:"status"`
	Outcome receipt.Outcome `json:"outcome"`
	Payload Data            `json:"payload"`
}

func (x *OperatorEffect) version() uint64 { return x.V }
func (x *Expired) version() uint64        { return x.V }
func (x *Due) version() uint64            { return x.V }
func (x *Late) version() uint64           { return x.V }
func (x *Resolved) version() uint64       { return x.V }
func (x *Confirmed) version() uint64      { return x.V }
func (x *KeysRotated) version() uint64    { return x.V }
func (x *IntentParked) version() uint64   { return x.V }
func (x *InDoubt) version() uint64        { return x.V }
func (x *IntentWaiting) version() uint64  { return x.V }
func (x *IntentEnded) version() uint64    { return x.V }

// Append implements Body. None of these is on the path of every effect.
func (x *OperatorEffect) Append(b []byte) []byte { return appendStruct(b, x) }

// Append implements Body.
func (x *Expired) Append(b []byte) []byte { return appendStruct(b, x) }

// Append implements Body.
func (x *Due) Append(b []byte) []byte { return appendStruct(b, x) }

// Append implements Body.
func (x *Late) Append(b []byte) []byte { return appendStruct(b, x) }

// Append implements Body.
func (x *Resolved) Append(b []byte) []byte { return appendStruct(b, x) }

// Append implements Body.
func (x *Confirmed) Append(b []byte) []byte { return appendStruct(b, x) }

// Append implements Body.
func (x *KeysRotated) Append(b []byte) []byte { return appendStruct(b, x) }

// Append implements Body.
func (x *IntentParked) Append(b []byte) []byte { return appendStruct(b, x) }

// Append implements Body.
func (x *InDoubt) Append(b []byte) []byte { return appendStruct(b, x) }

// Append implements Body.
func (x *IntentWaiting) Append(b []byte) []byte { return appendStruct(b, x) }

// Append implements Body.
func (x *IntentEnded) Append(b []byte) []byte { return appendStruct(b, x) }

// appendStruct appends the library's encoding. What a kernel writes has passed
// its checks, so that nothing in it can be refused.
func appendStruct(b []byte, x any) []byte {
	e, err := canon.Marshal(x)
	if err != nil {
		panic(fmt.Sprintf("journal: payload %T: %v", x, err))
	}
	return append(b, e...)
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

// Explanation is what a cell is told where no receipt of the outside is.
func Explanation(code, reason string) Data {
	b := canon.AppendMap(nil, 2)
	b = canon.AppendText(canon.AppendText(b, "code"), code)
	return canon.AppendText(canon.AppendText(b, "reason"), reason)
}
