package journal

import "github.com/worldkernel/worldkernel/internal/canon"

// The encodings below are written by hand because they are on the path of
// every record; a test holds each equal to the library's encoding of the same
// struct. Data comes last, so that an event's data is the tail of its record.

func (x *Created) version() uint64 { return x.V }

// Append implements Body.
func (x *Created) Append(b []byte) []byte {
	b = canon.AppendArray(b, 6+x.Engines.items(x.V))
	b = canon.AppendUint(b, x.V)
	b = canon.AppendText(b, x.World)
	b = canon.AppendText(b, x.Name)
	b = canon.AppendUint(b, x.Seed)
	b = canon.AppendBytes(b, x.Manifest[:])
	b = canon.AppendText(b, x.Kernel)
	return x.Engines.append(b, x.V)
}

func (x *Advanced) version() uint64 { return x.V }

// Append implements Body.
func (x *Advanced) Append(b []byte) []byte {
	b = canon.AppendArray(b, 2)
	b = canon.AppendUint(b, BodyVersion)
	return canon.AppendUint(b, uint64(x.To))
}

func (x *Submitted) version() uint64 { return x.V }

// Append implements Body.
func (x *Submitted) Append(b []byte) []byte {
	b = canon.AppendArray(b, 6)
	b = canon.AppendUint(b, BodyVersion)
	b = canon.AppendText(b, x.Name)
	b = canon.AppendUint(b, uint64(x.Due))
	b = canon.AppendBool(b, x.Direct)
	b = canon.AppendTexts(b, x.To)
	return canon.AppendRaw(b, x.Data)
}

func (x *Finished) version() uint64 { return x.V }

// Append implements Body.
func (x *Finished) Append(b []byte) []byte {
	b = canon.AppendArray(b, 2)
	b = canon.AppendUint(b, BodyVersion)
	return canon.AppendRaw(b, x.Receipt)
}

func (x *Resumed) version() uint64 { return x.V }

// Append implements Body.
func (x *Resumed) Append(b []byte) []byte {
	b = canon.AppendArray(b, 3)
	b = canon.AppendUint(b, BodyVersion)
	b = canon.AppendText(b, x.Cell)
	return canon.AppendBool(b, x.Skip)
}

func (x *Stepped) version() uint64 { return x.V }

// Append implements Body.
func (x *Stepped) Append(b []byte) []byte {
	b = canon.AppendArray(b, 6)
	b = canon.AppendUint(b, BodyVersion)
	b = canon.AppendText(b, x.Cell)
	b = canon.AppendUint(b, x.N)
	b = canon.AppendText(b, string(x.Outcome))
	b = canon.AppendBytes(b, x.State[:])
	return canon.AppendUint(b, x.Gas)
}

func (x *Failed) version() uint64 { return x.V }

// Append implements Body.
func (x *Failed) Append(b []byte) []byte {
	b = canon.AppendArray(b, 5)
	b = canon.AppendUint(b, BodyVersion)
	b = canon.AppendText(b, x.Cell)
	b = canon.AppendUint(b, x.N)
	b = canon.AppendBool(b, x.Parked)
	return canon.AppendText(b, x.Error)
}

func (x *Deleted) version() uint64 { return x.V }

// Append implements Body.
func (x *Deleted) Append(b []byte) []byte {
	b = canon.AppendArray(b, 3)
	b = canon.AppendUint(b, BodyVersion)
	b = canon.AppendText(b, x.Cell)
	return canon.AppendUint(b, x.N)
}

func (x *Emitted) version() uint64 { return x.V }

// Append implements Body.
func (x *Emitted) Append(b []byte) []byte {
	b = canon.AppendArray(b, 4)
	b = canon.AppendUint(b, BodyVersion)
	b = canon.AppendText(b, x.Name)
	b = canon.AppendTexts(b, x.To)
	return canon.AppendRaw(b, x.Data)
}

func (x *Dropped) version() uint64 { return x.V }

// Append implements Body.
func (x *Dropped) Append(b []byte) []byte {
	b = canon.AppendArray(b, 3)
	b = canon.AppendUint(b, BodyVersion)
	b = canon.AppendText(b, x.Name)
	return canon.AppendText(b, x.Reason)
}

func (x *IntentEmitted) version() uint64 { return x.V }

// Append implements Body.
func (x *IntentEmitted) Append(b []byte) []byte {
	b = canon.AppendArray(b, 11)
	b = canon.AppendUint(b, BodyVersion)
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

func (x *IntentDenied) version() uint64 { return x.V }

// Append implements Body.
func (x *IntentDenied) Append(b []byte) []byte {
	b = canon.AppendArray(b, 12)
	b = canon.AppendUint(b, BodyVersion)
	b = canon.AppendBytes(b, x.Key.Hash[:])
	b = canon.AppendText(b, string(x.Step))
	b = canon.AppendText(b, x.Cell)
	b = canon.AppendText(b, x.Kind)
	b = canon.AppendText(b, x.Tag)
	b = canon.AppendText(b, x.Cap)
	b = canon.AppendUint(b, x.Occurrence)
	b = canon.AppendText(b, x.Code)
	b = canon.AppendText(b, x.Reason)
	b = canon.AppendTexts(b, x.Rules)
	return canon.AppendRaw(b, x.Params)
}

func (x *Started) version() uint64 { return x.V }

// Append implements Body.
func (x *Started) Append(b []byte) []byte {
	b = canon.AppendArray(b, 5)
	b = canon.AppendUint(b, BodyVersion)
	b = canon.AppendBytes(b, x.Key.Hash[:])
	b = canon.AppendUint(b, x.Attempt)
	b = canon.AppendUint(b, x.Owner)
	return canon.AppendBytes(b, x.Nonce[:])
}

func (x *TimerSet) version() uint64 { return x.V }

// Append implements Body.
func (x *TimerSet) Append(b []byte) []byte {
	b = canon.AppendArray(b, 5)
	b = canon.AppendUint(b, BodyVersion)
	b = canon.AppendText(b, x.Cell)
	b = canon.AppendText(b, x.Name)
	b = canon.AppendUint(b, uint64(x.Deadline))
	return canon.AppendRaw(b, x.Data)
}

func (x *TimerFired) version() uint64 { return x.V }

// Append implements Body.
func (x *TimerFired) Append(b []byte) []byte {
	b = canon.AppendArray(b, 3)
	b = canon.AppendUint(b, BodyVersion)
	b = canon.AppendText(b, x.Cell)
	return canon.AppendText(b, x.Name)
}
