package local

import (
	"context"
	"iter"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
)

// A World is a journal.History: reading what it has recorded waits for nobody who
// changes it. Of slices that are returned none is used again.
var _ journal.History = (*World)(nil)

// Head returns the last record there is, which may be on its way to the disk: see
// Await.
func (lw *World) Head() journal.Head { return lw.store.Head() }

// Await blocks until a record after one is durable. The error is that of ctx, or why
// there will be none: with journal.Last it waits for that. Any number of callers may
// wait, also while the world is being closed.
func (lw *World) Await(ctx context.Context, after journal.Seq) error {
	return lw.store.Await(ctx, after)
}

// AwaitRecords waits as Await does, and yields the durable records after one.
func (lw *World) AwaitRecords(ctx context.Context, after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return lw.store.AwaitRecords(ctx, after)
}

// Record implements journal.History.
func (lw *World) Record(id journal.Seq) ([]byte, error) { return lw.store.Record(id) }

// Blob implements journal.History.
func (lw *World) Blob(h journal.Hash) ([]byte, error) { return lw.store.Blob(h) }

// Image implements journal.History.
func (lw *World) Image(at journal.Seq) (*journal.Image, error) { return lw.store.Image(at) }

// Part implements journal.History.
func (lw *World) Part(at journal.Seq, cells []string) (*journal.Image, error) {
	return lw.store.Part(at, cells)
}

// Scan implements journal.History.
func (lw *World) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return lw.store.Scan(after)
}

// CellRecords yields, in order, the records after one that name a cell, or an intent
// of it.
func (lw *World) CellRecords(cell string, after journal.Seq) iter.Seq2[journal.Seq, error] {
	return lw.store.CellRecords(cell, after)
}

// Checkpoints yields the signed checkpoints of the records from one to another.
func (lw *World) Checkpoints(from, to journal.Seq) iter.Seq2[store.Signed, error] {
	return lw.store.Checkpoints(from, to)
}

// StoreStats counts what the world's store has done.
func (lw *World) StoreStats() store.Stats { return lw.store.Stats() }

// Epoch says which owner of its log this is, counted; 0: the world lies in a directory.
func (lw *World) Epoch() uint64 { return lw.store.Epoch() }
