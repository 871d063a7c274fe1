package manifest

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Governance says who can change a manifest that is in force. Where it lists no
// approvers any key approves; the zero value asks for one such approval.
type Governance struct {
	Approvals uint64     `cbor:"approvals,omitempty" json:"approvals,omitempty"` // different keys that must approve; 0, as it was before there was this key: 1
	FourEyes  bool       `cbor:"four_eyes,omitempty" json:"four_eyes,omitempty"` // the key of who proposes does not count
	Approvers []Approver `cbor:"approvers,omitempty" json:"approvers,omitempty"`
}

// Approver is a person whose key counts.
type Approver struct {
	Name string    `cbor:"name" json:"name"`
	File string    `cbor:"file,omitempty" json:"file,omitempty"` // the key's path, for messages
	Key  PublicKey `cbor:"key" json:"key"`
}

// Needed returns how many approvals a change needs, at least 1.
func (g Governance) Needed() uint64 { return max(1, g.Approvals) }

// Approver returns who holds a key. It reports whether it is listed.
func (g Governance) Approver(key PublicKey) (Approver, bool) {
	i := slices.IndexFunc(g.Approvers, func(a Approver) bool { return a.Key == key })
	if i < 0 {
		return Approver{}, false
	}
	return g.Approvers[i], true
}

// IsZero reports whether g has no bytes in a manifest. An empty list is none.
func (g Governance) IsZero() bool {
	return g.Approvals == 0 && !g.FourEyes && len(g.Approvers) == 0
}

// PublicKey is an Ed25519 public key (RFC 8032 5.1.5), a byte string in CBOR. It
// prints as lower-case hex. The zero value is "no key".
type PublicKey [32]byte

// String returns k in lower-case hex.
func (k PublicKey) String() string { return hex.EncodeToString(k[:]) }

// IsZero reports whether k is the zero value.
func (k PublicKey) IsZero() bool { return k == PublicKey{} }

// MarshalText returns k in lower-case hex.
func (k PublicKey) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// UnmarshalText parses 64 hex digits.
func (k *PublicKey) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(k) {
		return fmt.Errorf("manifest: %q is not a public key: want %d hex digits", text, 2*len(k))
	}
	copy(k[:], b)
	return nil
}

// MarshalCBOR returns k as a byte string of 32 bytes.
func (k PublicKey) MarshalCBOR() ([]byte, error) { return canon.AppendBytes(nil, k[:]), nil }

// UnmarshalCBOR parses a byte string of 32 bytes.
func (k *PublicKey) UnmarshalCBOR(data []byte) error {
	return canon.UnmarshalBytes(data, k[:], "public key")
}
