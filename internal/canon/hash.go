package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Hash is a SHA-256 digest. It prints as lower-case hex. The zero value is "no
// hash": SHA-256 gives it for no known input.
type Hash [sha256.Size]byte

// Sum returns the SHA-256 of data.
func Sum(data []byte) Hash { return sha256.Sum256(data) }

// SumBehind returns the SHA-256 of head followed by data, without a copy of data unless it is short. It may write behind
// the end of head.
func SumBehind(head, data []byte) (h Hash) {
	if len(data) < 1<<10 {
		return Sum(append(head, data...))
	}
	sum := sha256.New()
	sum.Write(bytes.Clone(head)) // so the caller's head can stay on its stack
	sum.Write(data)
	return Hash(sum.Sum(h[:0]))
}

// String returns h in lower-case hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether h is the zero value.
func (h Hash) IsZero() bool { return h == Hash{} }

// MarshalText returns h in lower-case hex.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText parses 64 hex digits.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(string(text))
	return err
}

// MarshalCBOR returns h as a byte string of 32 bytes.
func (h Hash) MarshalCBOR() ([]byte, error) { return AppendBytes(nil, h[:]), nil }

// UnmarshalCBOR parses a byte string of 32 bytes.
func (h *Hash) UnmarshalCBOR(data []byte) error { return UnmarshalBytes(data, h[:], "hash") }

// UnmarshalBytes parses a byte string of as many bytes as to has. What it is, such as
// a hash, stands in the error.
func UnmarshalBytes(data, to []byte, what string) error {
	r := NewReader(data)
	b := r.Bytes()
	if err := r.Close(); err != nil {
		return err
	}
	if len(b) != len(to) {
		return fmt.Errorf("canon: a %s has %d bytes, not %d", what, len(to), len(b))
	}
	copy(to, b)
	return nil
}

// ParseHash parses 64 hex digits.
func ParseHash(s string) (Hash, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(Hash{}) {
		return Hash{}, fmt.Errorf("canon: %q is not a hash: want %d hex digits", s, 2*len(Hash{}))
	}
	return Hash(b), nil
}
