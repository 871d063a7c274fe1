package world

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// void is a journal that keeps nothing but what a world needs to go on.
type void struct{ blobs map[journal.Hash][]byte }

func (v void) Append(b journal.Batch) (journal.Pending, error) {
	for _, blob := range b.Blobs {
		v.blobs[blob.Hash] = blob.Bytes
	}
	return v, nil
}
func (void) Wait() error                                        { return nil }
func (void) Done() bool                                         { return true }
func (void) Notify(func())                                      {}
func (void) Checkpoint(*journal.Image) error                    { return nil }
func (void) Image(journal.Seq) (*journal.Image, error)          { return nil, nil }
func (void) Part(journal.Seq, []string) (*journal.Image, error) { return nil, journal.ErrNotFound }
func (void) Scan(journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(func(journal.Scanned, error) bool) {}
}
func (void) Record(journal.Seq) ([]byte, error)    { return nil, journal.ErrNotFound }
func (v void) Blob(h journal.Hash) ([]byte, error) { return v.blobs[h], nil }

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
	registry := reducer.Registry{"account@1": reducer.Typed(1, func(_ *reducer.Context, a benchAccount, c benchCredit) (benchAccount, error) {
		return benchAccount{Count: a.Count + 1, Total: a.Total + c.By}, nil
	})}
	m := manifest.Manifest{
		World:    "bench",
		Reducers: map[string]manifest.Reducer{"account": {Engine: manifest.EngineGo, Name: "account", Version: "1"}},
		Events:   map[string]manifest.Event{"credited": {}},
		Routing:  []manifest.Route{{Event: "credited", Reducer: "account", Key: "event.data.to"}},
	}.WithDefaults()
	kept := void{blobs: make(map[journal.Hash][]byte)}
	w, err := Create(Config{
		Journal: kept, History: kept, Registry: registry,
		NewHost: func(string, *manifest.Manifest) (Host, error) { return nil, nil },
	}, Genesis{ID: "bench", Manifest: &m})
	require.NoError(b, err)
	const cells = 10_000
	data := make([]journal.Data, cells)
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
		_, _, err := w.SubmitAll(ctx, events)
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
