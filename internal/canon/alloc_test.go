package canon_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// sample is a record of the usual size.
var sample = canon.Envelope{
	ID: 1_000_000, Time: 86_400, Kind: "event.submitted", CausedBy: 999_999,
	Payload: bytes.Repeat([]byte{0x5a}, 120),
}

func sampleItem(t testing.TB) []byte {
	t.Helper()
	b, err := canon.FromJSON([]byte(`{"customer":"ada","items":[{"id":1,"price":2.5},{"id":2,"price":1e300}],"note":"a text of some length","big":18446744073709551616}`))
	require.NoError(t, err)
	return b
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 1024)
	record := canon.AppendEnvelope(nil, sample)
	item := sampleItem(t)
	var chain canon.Chain
	chain.Add(1, sample.Kind, record)
	for name, c := range map[string]struct {
		most float64
		run  func()
	}{
		"AppendEnvelope": {0, func() { buf = canon.AppendEnvelope(buf[:0], sample) }},
		"DecodeEnvelope": {1, func() { _, _ = canon.DecodeEnvelope(record) }}, // the kind
		"Chain.Add":      {0, func() { chain.Add(2, sample.Kind, record) }},
		"Valid":          {0, func() { _ = canon.Valid(item) }},
		"Lookup":         {0, func() { _, _ = canon.Lookup(item, "customer") }},
	} {
		require.LessOrEqual(t, testing.AllocsPerRun(100, c.run), c.most, name)
	}
}

func BenchmarkAppendEnvelope(b *testing.B) {
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = canon.AppendEnvelope(buf[:0], sample)
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkDecodeEnvelope(b *testing.B) {
	record := canon.AppendEnvelope(nil, sample)
	b.SetBytes(int64(len(record)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = canon.DecodeEnvelope(record)
	}
}

func BenchmarkChainAdd(b *testing.B) {
	record := canon.AppendEnvelope(nil, sample)
	var chain canon.Chain
	b.SetBytes(int64(len(record)))
	b.ReportAllocs()
	for b.Loop() {
		chain.Add(sample.ID, sample.Kind, record)
	}
}

func BenchmarkValid(b *testing.B) {
	item := sampleItem(b)
	b.SetBytes(int64(len(item)))
	b.ReportAllocs()
	for b.Loop() {
		_ = canon.Valid(item)
	}
}

func BenchmarkJSON(b *testing.B) {
	item := sampleItem(b)
	text, err := canon.ToJSON(item)
	require.NoError(b, err)
	b.Run("from", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			_, _ = canon.FromJSON(text)
		}
	})
	b.Run("to", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			_, _ = canon.ToJSON(item)
		}
	})
}
