// Package receipt holds what a world asks of the outside and what it is
// answered: intents and their identity, receipts and their signatures, and the
// ledger that lets every intent be executed at most once
// (docs/journal-format.md, "An intent").
//
// A receipt's bytes are its canonical CBOR, a map with the keys of [Receipt]'s
// struct tags. Its hash is the SHA-256 of that map without the keys hash and
// mac; its mac is HMAC-SHA256 of "worldkernel/receipt/v1" ‖ hash under a key
// derived for the world and the key epoch (see [Keyring]).
package receipt

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Hash is a SHA-256 digest.
type Hash = canon.Hash

// Data is a canonical CBOR item; it prints as JSON.
type Data = canon.Raw

// Key is an intent's id and idempotency key: the same step asking the same
// thing has the same key, in every replay and after every rollback.
type Key struct{ canon.Hash }

// ParseKey parses 64 hex digits.
func ParseKey(s string) (Key, error) {
	h, err := canon.ParseHash(s)
	return Key{h}, err
}

// History is h_n: what a cell has seen up to its step n.
//
//	h_n = H(h_{n-1} ‖ canonical[name, key, data]), h_0 = the world's lineage, empty at first
type History = canon.Hash

// StepID names one effect of one step: CELL@N.I~HHHHHHHHHHHHHHHH.
type StepID string

// NewStepID returns the id of the i-th effect (from 0) of step n of a cell
// whose history with that step is h.
func NewStepID(cell string, n uint64, i int, h History) StepID {
	var buf [320]byte // a reducer's name, a key of at most 256 bytes, and numbers
	b := append(buf[:0], cell...)
	b = append(b, '@')
	b = strconv.AppendUint(b, n, 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(i), 10)
	b = append(b, '~')
	return StepID(hex.AppendEncode(b, h[:8]))
}

// Intent is an effect that a cell asked for, with its identity.
type Intent struct {
	_ struct{} `cbor:",toarray"`

	Key    Key    `json:"key"`
	Step   StepID `json:"step_id"`
	Cell   string `json:"cell"` // "reducer/key"
	Kind   string `json:"kind"`
	Params Data   `json:"params"`
	Tag    string `json:"tag"`
	Cap    string `json:"cap"` // the capability that allows it

	// Occurrence counts the intents of the same kind and params that the cell's
	// history held before: cassettes are looked up by it, never by key.
	Occurrence uint64 `json:"occurrence"`
}

// Request is what intents that ask for the same have in common. Their keys differ between worlds,
// and between parts of a history that a rollback has left.
type Request struct {
	Cell, Kind string
	Params     Hash
	Occurrence uint64
}

// Request returns what the intent asks for.
func (in *Intent) Request() Request {
	return Request{in.Cell, in.Kind, canon.Sum(in.Params), in.Occurrence}
}

// Request returns what the intent asks for, whose params may be gone.
func (e *Entry) Request() Request {
	return Request{e.Intent.Cell, e.Intent.Kind, e.Params, e.Intent.Occurrence}
}

// NewKey returns the idempotency key of an intent:
//
//	H( world_id ‖ 0x00 ‖ step_id ‖ 0x00 ‖ kind ‖ 0x00 ‖ canonical(params) )
func NewKey(world string, step StepID, kind string, params Data) Key {
	var buf [1024]byte // keeps the common case off the heap
	b := append(append(buf[:0], world...), 0)
	b = append(append(b, step...), 0)
	b = append(append(b, kind...), 0)
	return Key{canon.SumBehind(b, params)}
}

// External returns what adapters hand to the outside as idempotency key.
func (k Key) External(world string) string {
	const scheme = "worldkernel:"
	var buf [256]byte // keeps the common case off the heap
	b := append(append(append(buf[:0], scheme...), world...), ':')
	return string(hex.AppendEncode(b, k.Hash[:]))
}

// Trace returns the ids of an attempt, which begins at 1, where the outside records
// what it does for it, in hex as in W3C Trace Context: of the trace the first 16 bytes
// of the key, and of the span the attempt's number.
func (k Key) Trace(attempt uint64) (trace, span string) {
	return hex.EncodeToString(k.Hash[:16]), fmt.Sprintf("%016x", attempt)
}

// TraceParent is the traceparent of W3C Trace Context (level 1, section 3.2) that
// adapters hand to the outside with an attempt.
func (k Key) TraceParent(attempt uint64) string {
	trace, span := k.Trace(attempt)
	return "00-" + trace + "-" + span + "-01"
}

// Nonce fences one attempt: a receipt must carry the nonce of the attempt that
// is in flight.
type Nonce [16]byte

// NewNonce returns the nonce of the attempt whose permit is the record that
// follows the given chain root: the first 16 bytes of H(root ‖ key ‖ attempt),
// with the attempt as 8 bytes big-endian.
func NewNonce(root Hash, key Key, attempt uint64) Nonce {
	var buf [72]byte
	b := append(append(buf[:0], root[:]...), key.Hash[:]...)
	b = binary.BigEndian.AppendUint64(b, attempt)
	h := sha256.Sum256(b)
	return Nonce(h[:16])
}

// String returns n in hex.
func (n Nonce) String() string { return hex.EncodeToString(n[:]) }

// MarshalText returns n in hex.
func (n Nonce) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, n[:]), nil }

// MarshalCBOR returns n as a byte string of 16 bytes.
func (n Nonce) MarshalCBOR() ([]byte, error) { return canon.AppendBytes(nil, n[:]), nil }

// UnmarshalCBOR parses a byte string of 16 bytes.
func (n *Nonce) UnmarshalCBOR(data []byte) error {
	return canon.UnmarshalBytes(data, n[:], "nonce")
}

// Permit is the ledger's leave to execute one attempt of an intent. Until the
// record that grants it is durable nobody may act on it.
type Permit struct {
	Intent
	Attempt uint64
	Nonce   Nonce
	Time    int64   // the world's calendar time, nanoseconds since 1970-01-01 UTC
	Inputs  []Input // what attempts before it have asked, with the answers; not to be changed

	// What the outside calls what an attempt before had it accept: this one asks what
	// came of that, and does nothing else. Empty: it does what the intent asks for.
	Accepted string
	// Until when that is asked, in nanoseconds since 1970-01-01 UTC: see Accepted.Until.
	AskUntil int64
	// The cell has cancelled what the outside has accepted: tell the outside, and ask.
	Unwanted bool
}
