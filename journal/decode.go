package journal

import (
	"bytes"
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// decodeFrequent reads the payloads of the kinds that most records have without the
// library, which takes several times as long, and those of version 1 whose struct has
// another shape today. It returns nil for what it leaves to the library: other kinds,
// and whatever is wrong.
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
		r.ArrayOf(6)
		body = &Submitted{Version: V(r.Uint()), Name: r.Text(), Due: manifest.Tick(r.Uint()), Direct: r.Bool(), To: readTexts(r), Data: bytes.Clone(r.Raw())}
	case KindEmitted:
		r.ArrayOf(4)
		body = &Emitted{Version: V(r.Uint()), Name: r.Text(), To: readTexts(r), Data: bytes.Clone(r.Raw())}
	case KindAdvanced:
		r.ArrayOf(2)
		body = &Advanced{Version: V(r.Uint()), To: manifest.Tick(r.Uint())}
	case KindFinished:
		r.ArrayOf(2)
		body = &Finished{Version: V(r.Uint()), Receipt: bytes.Clone(r.Raw())}
	case KindStepped:
		r.ArrayOf(6)
		body = &Stepped{Version: V(r.Uint()), Cell: r.Text(), N: r.Uint(), Outcome: receipt.Outcome(r.Text()), State: hash(), Gas: r.Uint()}
	case KindTimer:
		r.ArrayOf(5)
		body = &TimerSet{Version: V(r.Uint()), Cell: r.Text(), Name: r.Text(), Deadline: manifest.Tick(r.Uint()), Data: bytes.Clone(r.Raw())}
	case KindCreated:
		r.ArrayOf(8)
		body = &Created{Version: V(r.Uint()), World: r.Text(), Name: r.Text(), Seed: r.Uint(), Manifest: hash(), Kernel: r.Text(), Engines: readEngineFields(r)}
	case KindApplied:
		r.ArrayOf(8)
		body = &Applied{Version: V(r.Uint()), Proposal: r.Uint(), Manifest: hash(), Base: hash(), Actor: r.Text(), Kernel: r.Text(), Engines: readEngineFields(r)}
	case KindResumed:
		r.ArrayOf(3)
		body = &Resumed{Version: V(r.Uint()), Cell: r.Text(), Skip: r.Bool()}
	default:
		return nil
	}
	if short || r.Close() != nil || body.version() != BodyVersion {
		return nil
	}
	return body
}

// UnmarshalCBOR parses what Append appends: a seed is there where the version says so,
// and nowhere else.
func (x *Forked) UnmarshalCBOR(data []byte) error {
	r := canon.NewReader(data)
	var failed error
	hash := func() (h Hash) {
		if err := canon.UnmarshalBytes(r.Raw(), h[:], "hash"); err != nil && r.Err() == nil {
			failed = err
		}
		return h
	}
	items := r.Array()
	*x = Forked{
		Version: V(r.Uint()), World: r.Text(), Parent: r.Text(), At: Seq(r.Uint()), ChainRoot: hash(),
		Effects: ForkEffects(r.Text()), Live: readTexts(r), Manifest: hash(), Actor: r.Text(),
	}
	want := 9
	if x.V >= ForkSeedVersion {
		seed := r.Uint()
		x.Seed, want = &seed, 10
	}
	if err := r.Close(); err != nil {
		return err
	}
	if items != want {
		return fmt.Errorf("it has %d items, version %d has %d", items, x.V, want)
	}
	return failed
}

func readTexts(r *canon.Reader) []string {
	n := r.Array()
	out := make([]string, 0, min(n, 16)) // hostile bytes say any number
	for ; n > 0 && r.Err() == nil; n-- {
		out = append(out, r.Text())
	}
	return out
}
