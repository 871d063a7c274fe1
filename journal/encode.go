package journal

import (
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Append appends the canonical bytes of a payload. What a kernel writes has passed
// its checks, so that nothing in it can be refused.
func Append(b []byte, x Body) []byte {
	if x, ok := x.(interface{ Append(b []byte) []byte }); ok {
		return x.Append(b)
	}
	e, err := canon.Marshal(x)
	if err != nil {
		panic(fmt.Sprintf("journal: payload %T: %v", x, err))
	}
	return append(b, e...)
}

// The encodings below are written by hand, because they are on the path of most
// records; a test holds each equal to the library's
// encoding of the same struct. Data comes last, so that an event's data is the tail of
// its record.

// appendHead begins a payload of so many items, the first of them its version.
func appendHead(b []byte, items int) []byte {
	return canon.AppendUint(canon.AppendArray(b, items), BodyVersion)
}

// Append appends the canonical bytes of an Advanced.
func (x *Advanced) Append(b []byte) []byte {
	b = canon.AppendUint(appendHead(b, 3), uint64(x.To))
	return canon.AppendBool(b, x.Still)
}

// Append appends the canonical bytes of a Submitted.
func (x *Submitted) Append(b []byte) []byte {
	b = appendHead(b, 7)
	b = canon.AppendText(b, x.Name)
	b = canon.AppendUint(b, uint64(x.Due))
	b = canon.AppendBool(b, x.Direct)
	b = canon.AppendTexts(b, x.To)
	if x.Under == "" {
		b = append(b, canon.Null...)
	} else {
		b = canon.AppendText(canon.AppendArray(b, 3), x.Under)
		b = canon.AppendUint(canon.AppendBytes(b, x.Of[:]), x.Nth)
	}
	return canon.AppendRaw(b, x.Data)
}

// MarshalCBOR is Append.
func (x *Submitted) MarshalCBOR() ([]byte, error) { return x.Append(nil), nil }

// Append appends the canonical bytes of a Finished.
func (x *Finished) Append(b []byte) []byte {
	b = appendHead(b, 2)
	return canon.AppendRaw(b, x.Receipt)
}

// Append appends the canonical bytes of a Stepped.
func (x *Stepped) Append(b []byte) []byte {
	b = appendHead(b, 6)
	b = canon.AppendText(b, x.Cell)
	b = canon.AppendUint(b, x.N)
	b = canon.AppendText(b, string(x.Outcome))
	b = canon.AppendBytes(b, x.State[:])
	return canon.AppendUint(b, x.Gas)
}

// Append appends the canonical bytes of a Emitted.
func (x *Emitted) Append(b []byte) []byte {
	b = appendHead(b, 4)
	b = canon.AppendText(b, x.Name)
	b = canon.AppendTexts(b, x.To)
	return canon.AppendRaw(b, x.Data)
}

// Append appends the canonical bytes of a IntentEmitted.
func (x *IntentEmitted) Append(b []byte) []byte {
	b = appendHead(b, 11)
	b = canon.AppendBytes(b, x.Key.Hash[:])
	b = canon.AppendText(b, string(x.Step))
	b = canon.AppendText(b, x.Cell)
	b = canon.AppendText(b, x.Kind)
	b = canon.AppendText(b, x.Tag)
	b = canon.AppendText(b, x.Cap)
	b = canon.AppendUint(b, x.Occurrence)
	b = canon.AppendText(b, x.Decision)
	b = canon.AppendTexts(b, x.Rules)
	return canon.AppendRaw(b, x.Params)
}

// Append appends the canonical bytes of a Started.
func (x *Started) Append(b []byte) []byte {
	b = appendHead(b, 5)
	b = canon.AppendBytes(b, x.Key.Hash[:])
	b = canon.AppendUint(b, x.Attempt)
	b = canon.AppendUint(b, x.Owner)
	return canon.AppendBytes(b, x.Nonce[:])
}

// Append appends the canonical bytes of a TimerSet.
func (x *TimerSet) Append(b []byte) []byte {
	b = appendHead(b, 6)
	b = canon.AppendText(b, x.Cell)
	b = canon.AppendText(b, x.Name)
	b = canon.AppendUint(b, uint64(x.Deadline))
	b = canon.AppendText(b, x.Tag)
	return canon.AppendRaw(b, x.Data)
}

// Append appends the canonical bytes of a TimerFired.
func (x *TimerFired) Append(b []byte) []byte {
	b = appendHead(b, 3)
	b = canon.AppendText(b, x.Cell)
	return canon.AppendText(b, x.Name)
}
