package world

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// void is a journal that keeps nothing but what a world needs to go on.
type void struct{ blobs map[Hash][]byte }

func (v void) Append(b Batch) (Pending, error) {
	for _, blob := range b.Blobs {
		v.blobs[blob.Hash] = blob.Bytes
	}
	return v, nil
}
func (void) Wait() error                        { return nil }
func (void) Done() bool                         { return true }
func (void) Notify(func())                      {}
func (void) Checkpoint(*Image) error            { return nil }
func (void) Image(Seq) (*Image, error)          { return nil, nil }
func (void) Part(Seq, []string) (*Image, error) { return nil, ErrNotFound }
func (void) Scan(Seq) iter.Seq2[Scanned, error] { return func(func(Scanned, error) bool) {} }
func (void) Record(Seq) ([]byte, error)         { return nil, ErrNotFound }
func (v void) Blob(h Hash) ([]byte, error)      { return v.blobs[h], nil }

type benchAccount struct {
	Count uint64 `cbor:"count"`
	Total uint64 `cbor:"total"`
}

type benchCredit struct {
	To string `cbor:"to"`
	By uint64 `cbor:"by"`
}

// BenchmarkEvent is the road of one event through the kernel, without a disk.
func BenchmarkEvent(b *testing.B) {
	registry := new(reducer.Registry)
	registry.Register("account", "1", reducer.Typed(1, func(_ *reducer.Context, a benchAccount, c benchCredit) (benchAccount, error) {
		return benchAccount{Count: a.Count + 1, Total: a.Total + c.By}, nil
	}))
	m := manifest.Manifest{
		World:    "bench",
		Reducers: map[string]manifest.Reducer{"account": {Engine: manifest.EngineGo, Name: "account", Version: "1"}},
		Events:   map[string]manifest.Event{"credited": {}},
		Routing:  []manifest.Route{{Event: "credited", Reducer: "account", Key: "event.data.to"}},
	}.WithDefaults()
	journal := void{blobs: make(map[Hash][]byte)}
	w, err := Create(Config{
		Journal: journal, History: journal, Registry: registry,
		NewHost: func(string, *manifest.Manifest) (Host, error) { return nil, nil },
	}, Genesis{ID: "bench", Manifest: &m})
	require.NoError(b, err)
	const cells = 10_000
	data := make([]Data, cells)
	for i := range data {
		data[i], err = canon.Marshal(benchCredit{To: fmt.Sprint("c", i), By: 7})
		require.NoError(b, err)
	}
	ctx := context.Background()
	run := func(n int) {
		events := func(yield func(Submission, error) bool) {
			for i := range n {
				if !yield(Submission{Name: "credited", Data: data[i%cells]}, nil) {
					return
				}
			}
		}
		_, err := w.SubmitAll(ctx, events)
		require.NoError(b, err)
		require.NoError(b, w.Step(ctx))
	}
	run(cells)
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= cells {
		run(min(left, cells))
	}
}
