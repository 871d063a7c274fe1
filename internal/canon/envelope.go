package canon

import (
	"crypto/sha256"
	"strconv"
)

// Envelope is a record of a journal (docs/journal-format.md, "Records"), as bytes:
//
//	[ id, time, kind, caused_by, payload ]
//	id, time, caused_by   unsigned integers
//	kind                  text
//	payload               a byte string; or, for a payload that is kept as a
//	                      blob, the array [ SHA-256 of the blob, its length ]
//
// It is encoded by hand because it is on the path of every record; a fuzz test
// holds it equal to the library's encoding of the same struct.
type Envelope struct {
	ID       uint64
	Time     uint64 // ticks
	Kind     string
	CausedBy uint64
	Payload  []byte // nil where Blob is set
	Blob     Hash   // the zero hash where Payload is in place
	BlobSize uint64 // bytes
}

// AppendEnvelope appends the canonical bytes of e.
func AppendEnvelope(b []byte, e Envelope) []byte {
	b = append(b, majorArray|5)
	b = AppendUint(b, e.ID)
	b = AppendUint(b, e.Time)
	b = AppendText(b, e.Kind)
	b = AppendUint(b, e.CausedBy)
	if e.Blob.IsZero() {
		return AppendBytes(b, e.Payload)
	}
	b = append(b, majorArray|2)
	b = AppendBytes(b, e.Blob[:])
	return AppendUint(b, e.BlobSize)
}

// DecodeEnvelope parses the canonical bytes of one record. The payload is part
// of data. The error is a *SyntaxError.
func DecodeEnvelope(data []byte) (Envelope, error) {
	return DecodeEnvelopeAs(data, func(kind []byte) string { return string(kind) })
}

// DecodeEnvelopeAs is DecodeEnvelope without an allocation, if kindOf has none:
// it returns the string that a kind's bytes stand for.
func DecodeEnvelopeAs(data []byte, kindOf func(kind []byte) string) (Envelope, error) {
	r := Reader{data: data}
	var e Envelope
	r.ArrayOf(5)
	e.ID = r.Uint()
	e.Time = r.Uint()
	e.Kind = kindOf(r.TextBytes())
	e.CausedBy = r.Uint()
	if r.err == nil && r.off < len(data) && data[r.off]&0xe0 == majorArray {
		r.ArrayOf(2)
		start := r.off
		name := r.Bytes()
		if r.err == nil && len(name) != len(e.Blob) {
			r.fail(start, "a blob's name is a hash of 32 bytes")
		}
		copy(e.Blob[:], name)
		if r.err == nil && e.Blob.IsZero() {
			r.fail(start, "a blob's name is not the zero hash")
		}
		e.BlobSize = r.Uint()
	} else {
		e.Payload = r.Bytes()
	}
	if err := r.Close(); err != nil {
		return Envelope{}, err
	}
	return e, nil
}

// Chain computes the roots of a journal:
//
//	root_0 is empty
//	root_i = SHA-256(root_{i-1} ‖ "\n" ‖ id ‖ " " ‖ kind ‖ " " ‖ base64(record))
//
// with the id in decimal, standard base64 with padding, and the stored bytes
// of the whole record. The zero value stands before record 1; a Chain keeps a
// scratch buffer and is not safe for concurrent use.
type Chain struct {
	root    Hash // zero: before record 1
	scratch []byte
}

// ResumeChain returns a Chain whose last root is root.
func ResumeChain(root Hash) *Chain { return &Chain{root: root} }

// Root returns the root of the last record, or the zero hash before the first.
func (c *Chain) Root() Hash { return c.root }

// Resume goes on from a root that was computed elsewhere.
func (c *Chain) Resume(root Hash) { c.root = root }

// Add appends one record and returns its root.
func (c *Chain) Add(id uint64, kind string, record []byte) Hash {
	b := c.scratch[:0]
	if !c.root.IsZero() {
		b = append(b, c.root[:]...)
	}
	b = append(b, '\n')
	b = strconv.AppendUint(b, id, 10)
	b = append(b, ' ')
	b = append(b, kind...)
	b = append(b, ' ')
	b = appendBase64(b, record)
	c.root, c.scratch = sha256.Sum256(b), b
	return c.root
}
