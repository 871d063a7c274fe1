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
	OutcomeRetryableFailure    Outcome = "retryable_failure"     // nothing was left behind, or doing it again does no harm
	OutcomeCompensatable       Outcome = "compensatable_failure" // it failed and left something behind
	OutcomeCompensated         Outcome = "compensated"           // what it had left behind was made up for
	OutcomeInputRequired       Outcome = "input_required"        // it asks a person: the payload is a Question
	OutcomeAccepted            Outcome = "accepted"              // the outside works on it: the payload is an Accepted
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
	Exact      bool   `cbor:"exact,omitempty" json:"exact,omitempty"` // what Cost does not name was not used; else nobody knows
	StartedAt  int64  `cbor:"started_at" json:"started_at"`           // nanoseconds since 1970-01-01 UTC
	FinishedAt int64  `cbor:"finished_at" json:"finished_at"`         // likewise; the kernel computes with neither

	// What the adapter made of a failure; empty: a status other than ok is a
	// permanent_failure.
	Class Outcome `cbor:"outcome,omitempty" json:"outcome,omitempty"`
	// Nothing left this machine: the call that was spent on it is returned.
	Unsent      bool         `cbor:"unsent,omitempty" json:"unsent,omitempty"`
	ExternalRef string       `cbor:"external_ref,omitempty" json:"external_ref,omitempty"` // the outside's name for what it did
	StateChange *StateChange `cbor:"state_change,omitempty" json:"state_change,omitempty"`

	KeyID string `cbor:"key_id" json:"key_id"`
	Hash  Hash   `cbor:"hash,omitzero" json:"hash"`
	MAC   Hash   `cbor:"mac,omitzero" json:"mac"`
}

// StateChange says what of the outside an effect has changed, so that it can be
// compared later. Fields that the outside does not give are empty.
type StateChange struct {
	Resource    string `cbor:"resource" json:"resource"` // e.g. a URL or a path
	Version     string `cbor:"version,omitempty" json:"version,omitempty"`
	ETag        string `cbor:"etag,omitempty" json:"etag,omitempty"`
	ContentHash Hash   `cbor:"content_hash,omitzero" json:"content_hash,omitzero"`
	ExternalRef string `cbor:"external_ref,omitempty" json:"external_ref,omitempty"`
}

// New returns an unsigned receipt for one attempt.
func New(world string, p Permit, status Status, payload Data) Receipt {
	return Receipt{
		Version: ReceiptVersion, World: world, Key: p.Key, Kind: p.Kind,
		ParamsHash: canon.Sum(p.Params), Cap: p.Cap, Attempt: p.Attempt, Nonce: p.Nonce,
		Status: status, Payload: payload,
	}
}

// Outcome returns what a receipt says of its attempt.
func (r *Receipt) Outcome() Outcome {
	switch {
	case r.Status == StatusOK:
		return OutcomeSideEffectCommitted
	case r.Class != "":
		return r.Class
	default:
		return OutcomePermanentFailure
	}
}

// GivenBack reports whether a host that stopped has made a receipt for an attempt
// that nobody had begun.
func (r *Receipt) GivenBack() bool {
	return r.Status == StatusCancelled && r.Unsent && r.Outcome() == OutcomeRetryableFailure
}

// Refused reports whether the outside says that it did nothing, and that no more was used
// than the bytes of the exchange.
func (r *Receipt) Refused() bool {
	return r.Status != StatusOK && r.Exact && r.Cost.Tokens == 0 && r.Cost.Micros == 0
}

// checkClass refuses what no adapter can make of an effect.
func (r *Receipt) checkClass() error {
	switch r.Class {
	case "", OutcomePermanentFailure:
	case OutcomeRetryableFailure, OutcomeCompensatable, OutcomeInputRequired, OutcomeAccepted:
		if r.Status == StatusOK {
			return ErrClass
		}
	default:
		return ErrClass
	}
	return nil
}

// Why a receipt is refused. Each leaves the world unchanged.
var (
	ErrNotCanonical  = errors.New("receipt: not the canonical form of what it says")
	ErrVersion       = errors.New("receipt: unknown version")
	ErrStatus        = errors.New("receipt: unknown status")
	ErrClass         = errors.New("receipt: unknown outcome, or not one of its status")
	ErrUnknownIntent = errors.New("receipt: the world has no such intent")
	ErrDuplicate     = errors.New("receipt: the intent is answered already")
	ErrLate          = errors.New("receipt: the attempt that it answers was given up")
	ErrWrongWorld    = errors.New("receipt: made for another world")
	ErrWrongAttempt  = errors.New("receipt: not for the attempt that is in flight")
	ErrWrongIntent   = errors.New("receipt: kind, params or capability are not the intent's")
	ErrUnknownKey    = errors.New("receipt: signed with a key that the keyring does not hold")
	ErrRevokedKey    = errors.New("receipt: signed with a revoked key")
	ErrBadHash       = errors.New("receipt: the hash is not that of its content")
	ErrBadMAC        = errors.New("receipt: the signature is not valid")
	ErrOverSize      = errors.New("receipt: larger than limits.receipt")
)
