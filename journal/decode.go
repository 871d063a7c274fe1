package journal

import (
	"bytes"
	"errors"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// decodeFrequent reads the payloads of the kinds that most records have without the
// library, which takes several times as long. It returns nil for what it leaves to the
// library: other kinds, and whatever is wrong.
func decodeFrequent(kind Kind, payload []byte) Body {
	r := canon.NewReader(payload)
	short := false
	hash := func() (h Hash) {
		b := r.Bytes()
		short = short || len(b) != len(h)
		copy(h[:], b)
		return h
	}
	var body Body
	switch kind {
	case KindSubmitted:
		x := new(Submitted)
		if x.UnmarshalCBOR(payload) != nil || x.V != BodyVersion {
			return nil
		}
		return x
	case KindEmitted:
		r.ArrayOf(4)
		body = &Emitted{Version: V(r.Uint()), Name: r.Text(), To: readTexts(r), Data: bytes.Clone(r.Raw())}
	case KindAdvanced:
		r.ArrayOf(3)
		body = &Advanced{Version: V(r.Uint()), To: manifest.Tick(r.Uint()), Still: r.Bool()}
	case KindFinished:
		r.ArrayOf(2)
		body = &Finished{Version: V(r.Uint()), Receipt: bytes.Clone(r.Raw())}
	case KindStepped:
		r.ArrayOf(6)
		body = &Stepped{Version: V(r.Uint()), Cell: r.Text(), N: r.Uint(), Outcome: receipt.Outcome(r.Text()), State: hash(), Gas: r.Uint()}
	case KindTimer:
		r.ArrayOf(6)
		body = &TimerSet{Version: V(r.Uint()), Cell: r.Text(), Name: r.Text(), Deadline: manifest.Tick(r.Uint()), Tag: r.Text(), Data: bytes.Clone(r.Raw())}
	default:
		return nil
	}
	if short || r.Close() != nil || body.version() != BodyVersion {
		return nil
	}
	return body
}

// UnmarshalCBOR parses the payload of an event.submitted.
func (x *Submitted) UnmarshalCBOR(data []byte) error {
	r := canon.NewReader(data)
	r.ArrayOf(7)
	*x = Submitted{Version: V(r.Uint()), Name: r.Text(), Due: manifest.Tick(r.Uint()), Direct: r.Bool(), To: readTexts(r)}
	if !r.Null() {
		r.ArrayOf(3)
		x.Under = r.Text()
		of := r.Bytes()
		x.Nth = r.Uint()
		if r.Err() == nil && (x.Under == "" || len(of) != len(x.Of)) {
			return errors.New("the key of a submit has a name and a hash of 32 bytes")
		}
		copy(x.Of[:], of)
	}
	x.Data = bytes.Clone(r.Raw())
	return r.Close()
}

func readTexts(r *canon.Reader) []string {
	n := r.Array()
	out := make([]string, 0, min(n, 16)) // hostile bytes say any number
	for ; n > 0 && r.Err() == nil; n-- {
		out = append(out, r.Text())
	}
	return out
}
