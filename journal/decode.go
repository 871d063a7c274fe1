package journal

import (
	"bytes"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// decodeFrequent reads the payloads of the kinds that most records have without the
// library, which takes several times as long. It returns what that would, or nil for
// what it leaves to it: other kinds, and whatever is wrong.
func decodeFrequent(kind Kind, payload []byte) Body {
	r := canon.NewReader(payload)
	var body Body
	switch kind {
	case KindSubmitted:
		r.ArrayOf(6)
		body = &Submitted{V: r.Uint(), Name: r.Text(), Due: manifest.Tick(r.Uint()), Direct: r.Bool(), To: readTexts(r), Data: bytes.Clone(r.Raw())}
	case KindEmitted:
		r.ArrayOf(4)
		body = &Emitted{V: r.Uint(), Name: r.Text(), To: readTexts(r), Data: bytes.Clone(r.Raw())}
	case KindFinished:
		r.ArrayOf(2)
		body = &Finished{V: r.Uint(), Receipt: bytes.Clone(r.Raw())}
	case KindStepped:
		r.ArrayOf(6)
		x := &Stepped{V: r.Uint(), Cell: r.Text(), N: r.Uint(), Outcome: receipt.Outcome(r.Text())}
		state := r.Bytes()
		x.Gas = r.Uint()
		if len(state) != len(x.State) {
			return nil
		}
		x.State, body = Hash(state), x
	default:
		return nil
	}
	if r.Close() != nil || body.version() != BodyVersion {
		return nil
	}
	return body
}

func readTexts(r *canon.Reader) []string {
	n := r.Array()
	out := make([]string, 0, min(n, 16)) // hostile bytes say any number
	for ; n > 0 && r.Err() == nil; n-- {
		out = append(out, r.Text())
	}
	return out
}
