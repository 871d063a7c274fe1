package receipt

import (
	"fmt"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Encode returns the canonical bytes of r. A text that is not UTF-8 or a
// payload that is not canonical is an error.
func (r *Receipt) Encode() ([]byte, error) {
	if err := r.checkParts(); err != nil {
		return nil, err
	}
	return r.appendTo(make([]byte, 0, r.sizeHint())), nil
}

// checkParts refuses what appendTo would write as it is though it has no canonical form.
func (r *Receipt) checkParts() error {
	texts := [...]string{r.World, r.Kind, r.Cap, string(r.Status), string(r.Class), r.ExternalRef, r.KeyID}
	for _, text := range append(texts[:], r.StateChange.texts()...) {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%w: the text %q is not UTF-8", ErrNotCanonical, text)
		}
	}
	if len(r.Payload) == 0 {
		return nil
	}
	if err := canon.ValidInside(r.Payload, 1); err != nil {
		return fmt.Errorf("%w: payload: %w", ErrNotCanonical, err)
	}
	return nil
}

// texts returns the texts of what an effect has changed; nil: of nothing.
func (s *StateChange) texts() []string {
	if s == nil {
		return nil
	}
	return []string{s.Resource, s.Version, s.ETag, s.ExternalRef}
}

// Decode parses the canonical bytes of a receipt: see [Decoder.Decode].
func Decode(data []byte) (*Receipt, error) {
	r, d := new(Receipt), Decoder{again: make([]byte, 0, len(data))}
	if err := d.Decode(data, r); err != nil {
		return nil, err
	}
	return r, nil
}

// contentHash is the hash of r without its fields hash and mac.
func (r *Receipt) contentHash() Hash {
	bare := *r
	bare.Hash, bare.MAC = Hash{}, Hash{}
	var buf [1 << 10]byte // keeps the common case off the heap
	b := buf[:0]
	if n := bare.sizeHint(); n > len(buf) {
		b = make([]byte, 0, n)
	}
	return canon.Sum(bare.appendTo(b))
}

// sizeHint is at least the length of the encoding: the fields of fixed size
// and the names of all take less than 640 bytes.
func (r *Receipt) sizeHint() int {
	n := 640 + len(r.World) + len(r.Kind) + len(r.Cap) + len(r.Status) + len(r.Payload) + len(r.KeyID) + len(r.Class) + len(r.ExternalRef)
	if s := r.StateChange; s != nil {
		n += len(s.Resource) + len(s.Version) + len(s.ETag) + len(s.ExternalRef)
	}
	return n
}

// appendTo appends r as a map whose keys stand in the order of their encoded
// bytes: by length, then by letter. It is written by hand because every receipt
// takes this way three times; a test holds it equal to canon.Marshal.
func (r *Receipt) appendTo(b []byte) []byte {
	return r.appendTail(canon.AppendRaw(r.appendHead(b), r.Payload))
}

// appendHead is the part of appendTo before the payload.
func (r *Receipt) appendHead(b []byte) []byte {
	b = canon.AppendMap(b, 14+count(!r.Hash.IsZero(), !r.MAC.IsZero(), r.Exact, r.Unsent, r.Class != "", r.ExternalRef != "", r.StateChange != nil))
	b = canon.AppendText(canon.AppendText(b, "cap"), r.Cap)
	b = canon.AppendBytes(canon.AppendText(b, "key"), r.Key.Hash[:])
	if !r.MAC.IsZero() {
		b = canon.AppendBytes(canon.AppendText(b, "mac"), r.MAC[:])
	}
	b = r.Cost.appendTo(canon.AppendText(b, "cost"))
	if !r.Hash.IsZero() {
		b = canon.AppendBytes(canon.AppendText(b, "hash"), r.Hash[:])
	}
	b = canon.AppendText(canon.AppendText(b, "kind"), r.Kind)
	if r.Exact {
		b = canon.AppendBool(canon.AppendText(b, "exact"), true)
	}
	b = canon.AppendBytes(canon.AppendText(b, "nonce"), r.Nonce[:])
	b = canon.AppendText(canon.AppendText(b, "world"), r.World)
	b = canon.AppendText(canon.AppendText(b, "key_id"), r.KeyID)
	b = canon.AppendText(canon.AppendText(b, "status"), string(r.Status))
	if r.Unsent {
		b = canon.AppendBool(canon.AppendText(b, "unsent"), true)
	}
	b = canon.AppendUint(canon.AppendText(b, "attempt"), r.Attempt)
	if r.Class != "" {
		b = canon.AppendText(canon.AppendText(b, "outcome"), string(r.Class))
	}
	return canon.AppendText(b, "payload")
}

// appendTail is the part behind it.
func (r *Receipt) appendTail(b []byte) []byte {
	b = canon.AppendUint(canon.AppendText(b, "version"), r.Version)
	b = canon.AppendInt(canon.AppendText(b, "started_at"), r.StartedAt)
	b = canon.AppendInt(canon.AppendText(b, "finished_at"), r.FinishedAt)
	b = canon.AppendBytes(canon.AppendText(b, "params_hash"), r.ParamsHash[:])
	b = appendOptional(b, "external_ref", r.ExternalRef)
	if r.StateChange != nil {
		b = r.StateChange.appendTo(canon.AppendText(b, "state_change"))
	}
	return b
}

func (s *StateChange) appendTo(b []byte) []byte {
	b = canon.AppendMap(b, 1+count(s.ETag != "", s.Version != "", !s.ContentHash.IsZero(), s.ExternalRef != ""))
	b = appendOptional(b, "etag", s.ETag)
	b = appendOptional(b, "version", s.Version)
	b = canon.AppendText(canon.AppendText(b, "resource"), s.Resource)
	if !s.ContentHash.IsZero() {
		b = canon.AppendBytes(canon.AppendText(b, "content_hash"), s.ContentHash[:])
	}
	return appendOptional(b, "external_ref", s.ExternalRef)
}

// appendOptional appends a pair unless its value is empty.
func appendOptional(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	return canon.AppendText(canon.AppendText(b, key), value)
}

// count returns how many of the conditions hold.
func count(conditions ...bool) int {
	n := 0
	for _, is := range conditions {
		if is {
			n++
		}
	}
	return n
}

func (c Cost) appendTo(b []byte) []byte {
	units := [...]struct {
		name string
		n    uint64
	}{{"bytes", c.Bytes}, {"calls", c.Calls}, {"micros", c.Micros}, {"tokens", c.Tokens}}
	b = canon.AppendMap(b, count(c.Bytes > 0, c.Calls > 0, c.Micros > 0, c.Tokens > 0))
	for _, u := range units {
		if u.n > 0 {
			b = canon.AppendUint(canon.AppendText(b, u.name), u.n)
		}
	}
	return b
}
