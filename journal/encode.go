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
// records or differ between versions; a test holds each equal to the library's
// encoding of the same struct. Data comes last, so that an event's data is the tail of
// its record.

// appendHead begins a payload of so many items, the first of them its version.
func appendHead(b []byte, items int, version uint64) []byte {
	return canon.AppendUint(canon.AppendArray(b, items), version)
}

// Append appends the canonical bytes of a Created.
func (x *Created) Append(b []byte) []byte {
	b = appendHead(b, 6+x.Engines.items(x.V), x.V)
	b = canon.AppendText(b, x.World)
	b = canon.AppendText(b, x.Name)
	b = canon.AppendUint(b, x.Seed)
	b = canon.AppendBytes(b, x.Manifest[:])
	b = canon.AppendText(b, x.Kernel)
	return x.Engines.append(b, x.V)
}

// Append appends the canonical bytes of a Forked.
func (x *Forked) Append(b []byte) []byte {
	items := 9
	if x.Seed != nil {
		items++
	}
	b = appendHead(b, items, x.V)
	b = canon.AppendText(b, x.World)
	b = canon.AppendText(b, x.Parent)
	b = canon.AppendUint(b, uint64(x.At))
	b = canon.AppendBytes(b, x.ChainRoot[:])
	b = canon.AppendText(b, string(x.Effects))
	b = canon.AppendTexts(b, x.Live)
	b = canon.AppendBytes(b, x.Manifest[:])
	b = canon.AppendText(b, x.Actor)
	if x.Seed != nil {
		b = canon.AppendUint(b, *x.Seed)
	}
	return b
}

// MarshalCBOR is Append.
func (x *Forked) MarshalCBOR() ([]byte, error) { return x.Append(nil), nil }

// Append appends the canonical bytes of a Advanced, in the version that it names.
func (x *Advanced) Append(b []byte) []byte {
	b = appendHead(b, 1+int(x.V), x.V)
	b = canon.AppendUint(b, uint64(x.To))
	if x.V < StillVersion {
		return b
	}
	return canon.AppendBool(b, x.Still)
}

// MarshalCBOR is Append.
func (x *Advanced) MarshalCBOR() ([]byte, error) { return x.Append(nil), nil }

// Append appends the canonical bytes of a Submitted, in the version that it names.
func (x *Submitted) Append(b []byte) []byte {
	items := 9
	if x.V < KeyedVersion {
		items = 6
	}
	b = appendHead(b, items, max(x.V, BodyVersion))
	b = canon.AppendText(b, x.Name)
	b = canon.AppendUint(b, uint64(x.Due))
	b = canon.AppendBool(b, x.Direct)
	b = canon.AppendTexts(b, x.To)
	if x.V >= KeyedVersion {
		b = canon.AppendText(b, x.Under)
		b = canon.AppendBytes(b, x.Of[:])
		b = canon.AppendUint(b, x.Nth)
	}
	return canon.AppendRaw(b, x.Data)
}

// MarshalCBOR is Append.
func (x *Submitted) MarshalCBOR() ([]byte, error) { return x.Append(nil), nil }

// Append appends the canonical bytes of a Finished.
func (x *Finished) Append(b []byte) []byte {
	b = appendHead(b, 2, BodyVersion)
	return canon.AppendRaw(b, x.Receipt)
}

// Append appends the canonical bytes of a Resumed, in the version that it names.
func (x *Resumed) Append(b []byte) []byte {
	items := 5
	if x.V < ResumedVersion {
		items = 3
	}
	b = appendHead(b, items, x.V)
	b = canon.AppendBool(canon.AppendText(b, x.Cell), x.Skip)
	if x.V < ResumedVersion {
		return b
	}
	return canon.AppendText(canon.AppendText(b, x.Actor), x.Reason)
}

// Append appends the canonical bytes of a Stepped.
func (x *Stepped) Append(b []byte) []byte {
	b = appendHead(b, 6, BodyVersion)
	b = canon.AppendText(b, x.Cell)
	b = canon.AppendUint(b, x.N)
	b = canon.AppendText(b, string(x.Outcome))
	b = canon.AppendBytes(b, x.State[:])
	return canon.AppendUint(b, x.Gas)
}

// Append appends the canonical bytes of a Emitted.
func (x *Emitted) Append(b []byte) []byte {
	b = appendHead(b, 4, BodyVersion)
	b = canon.AppendText(b, x.Name)
	b = canon.AppendTexts(b, x.To)
	return canon.AppendRaw(b, x.Data)
}

// Append appends the canonical bytes of a IntentEmitted.
func (x *IntentEmitted) Append(b []byte) []byte {
	b = appendHead(b, 11, BodyVersion)
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
	b = appendHead(b, 5, BodyVersion)
	b = canon.AppendBytes(b, x.Key.Hash[:])
	b = canon.AppendUint(b, x.Attempt)
	b = canon.AppendUint(b, x.Owner)
	return canon.AppendBytes(b, x.Nonce[:])
}

// Append appends the canonical bytes of a TimerSet.
func (x *TimerSet) Append(b []byte) []byte {
	b = appendHead(b, 5+int(x.V-BodyVersion), x.V)
	b = canon.AppendText(b, x.Cell)
	b = canon.AppendText(b, x.Name)
	b = canon.AppendUint(b, uint64(x.Deadline))
	if x.V == TaggedTimerVersion {
		b = canon.AppendText(b, x.Tag)
	}
	return canon.AppendRaw(b, x.Data)
}

// Append appends the canonical bytes of a TimerFired.
func (x *TimerFired) Append(b []byte) []byte {
	b = appendHead(b, 3, BodyVersion)
	b = canon.AppendText(b, x.Cell)
	return canon.AppendText(b, x.Name)
}
