package receipt

import (
	"errors"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Status says how an effect ended.
type Status string

// The statuses. New ones are only appended; decoding refuses others.
const (
	StatusOK        Status = "ok"
	StatusError     Status = "error" // the outside answered, with an error
	StatusTimeout   Status = "timeout"
	StatusDenied    Status = "denied"   // by the gate, made by the kernel
	StatusRejected  Status = "rejected" // by the ledger, made by the kernel
	StatusCancelled Status = "cancelled"
)

// Known reports whether s is one of the statuses above.
func (s Status) Known() bool {
	switch s {
	case StatusOK, StatusError, StatusTimeout, StatusDenied, StatusRejected, StatusCancelled:
		return true
	}
	return false
}

// Outcome says what a step or an intent came to.
type Outcome string

// Outcomes of cell steps and of intents. New ones are only appended.
const (
	OutcomePure                Outcome = "pure"    // of a step without effects
	OutcomeSuccess             Outcome = "success" // of a step with effects
	OutcomeSideEffectCommitted Outcome = "side_effect_committed"
	OutcomePermanentFailure    Outcome = "permanent_failure"
)

// Cost is what an effect used up, in the units of budgets.
type Cost struct {
	Calls  uint64 `cbor:"calls,omitempty" json:"calls,omitempty"`
	Tokens uint64 `cbor:"tokens,omitempty" json:"tokens,omitempty"`
	Bytes  uint64 `cbor:"bytes,omitempty" json:"bytes,omitempty"`
	Micros uint64 `cbor:"micros,omitempty" json:"micros,omitempty"` // millionths of a unit of money
}

// ReceiptVersion is the version of the format of receipts.
const ReceiptVersion = 1

// Receipt is the signed answer to one attempt of an intent.
type Receipt struct {
	Version    uint64 `cbor:"version" json:"version"`
	World      string `cbor:"world" json:"world"` // the world's id
	Key        Key    `cbor:"key" json:"key"`
	Kind       string `cbor:"kind" json:"kind"`
	ParamsHash Hash   `cbor:"params_hash" json:"params_hash"`
	Cap        string `cbor:"cap" json:"cap"`
	Attempt    uint64 `cbor:"attempt" json:"attempt"`
	Nonce      Nonce  `cbor:"nonce" json:"nonce"`
	Status     Status `cbor:"status" json:"status"`
	Payload    Data   `cbor:"payload" json:"payload"`
	Cost       Cost   `cbor:"cost" json:"cost"`
	StartedAt  int64  `cbor:"started_at" json:"started_at"`   // nanoseconds since 1970-01-01 UTC
	FinishedAt int64  `cbor:"finished_at" json:"finished_at"` // likewise; the kernel computes with neither
	KeyID      string `cbor:"key_id" json:"key_id"`
	Hash       Hash   `cbor:"hash,omitzero" json:"hash"`
	MAC        Hash   `cbor:"mac,omitzero" json:"mac"`
}

// New returns an unsigned receipt for one attempt.
func New(world string, p Permit, status Status, payload Data) Receipt {
	return Receipt{
		Version: ReceiptVersion, World: world, Key: p.Key, Kind: p.Kind,
		ParamsHash: canon.Sum(p.Params), Cap: p.Cap, Attempt: p.Attempt, Nonce: p.Nonce,
		Status: status, Payload: payload,
	}
}

// Outcome returns what a receipt makes of its intent.
func (r *Receipt) Outcome() Outcome {
	if r.Status == StatusOK {
		return OutcomeSideEffectCommitted
	}
	return OutcomePermanentFailure
}

// Why a receipt is refused. Each leaves the world unchanged.
var (
	ErrNotCanonical  = errors.New("receipt: not the canonical form of what it says")
	ErrVersion       = errors.New("receipt: unknown version")
	ErrStatus        = errors.New("receipt: unknown status")
	ErrUnknownIntent = errors.New("receipt: the world has no such intent")
	ErrDuplicate     = errors.New("receipt: the intent is answered already")
	ErrWrongWorld    = errors.New("receipt: made for another world")
	ErrWrongAttempt  = errors.New("receipt: not for the attempt that is in flight")
	ErrWrongIntent   = errors.New("receipt: kind, params or capability are not the intent's")
	ErrUnknownKey    = errors.New("receipt: signed with a key that the keyring does not hold")
	ErrRevokedKey    = errors.New("receipt: signed with a revoked key")
	ErrBadHash       = errors.New("receipt: the hash is not that of its content")
	ErrBadMAC        = errors.New("receipt: the signature is not valid")
	ErrOverSize      = errors.New("receipt: larger than limits.receipt")
)
