package worldtest

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/memory"
)

// Journal is a journal in memory that can fail. What has been waited for survives a
// Crash, what has not is lost. The zero value is empty; it is not safe for concurrent
// use.
type Journal struct {
	memory.Journal // what is durable

	// FailAppend, if set, is asked before every append, with the number of those
	// that came before; an error refuses the append.
	FailAppend func(n int) error
	// FailWait, if set, is asked when an append is waited for. After an error
	// the batch is lost, or, where that is journal.ErrUnknown, durable all the same.
	FailWait func(n int) error
	// FailRead, if set, is asked before anything is read piece by piece of an image.
	FailRead func() error
	// Slow appends nothing before it is waited for.
	Slow bool

	appends int
	queue   []*pending // what is not
}

type pending struct {
	j     *Journal
	n     int
	batch journal.Batch
	image *journal.Image // a checkpoint that was made after it
	done  bool
}

// ErrInjected is what a failing journal of a simulation fails with.
var ErrInjected = errors.New("worldtest: injected failure")

// Append implements journal.Journal.
func (j *Journal) Append(b journal.Batch) (journal.Pending, error) {
	n := j.appends
	j.appends++
	if j.FailAppend != nil {
		if err := j.FailAppend(n); err != nil {
			return nil, err
		}
	}
	head := j.Head()
	if len(j.queue) > 0 {
		head = j.queue[len(j.queue)-1].batch.Head
	}
	if b.After != head {
		return nil, fmt.Errorf("worldtest: append after #%d to a journal that ends at #%d: %w", b.After.ID, head.ID, journal.ErrFenced)
	}
	if err := checkChain(b); err != nil {
		return nil, err
	}
	b.Records = slices.Clone(b.Records) // their bytes do not move
	p := &pending{j: j, n: n, batch: b}
	j.queue = append(j.queue, p)
	return p, nil
}

// checkChain recomputes what a batch says of itself.
func checkChain(b journal.Batch) error {
	chain, id := canon.ResumeChain(b.After.Root), b.After.ID
	for _, s := range b.Records {
		rec, err := journal.DecodeRecord(s.Bytes)
		if err != nil {
			return err
		}
		id++
		if rec.ID != id || s.ID != id || chain.Add(uint64(id), string(rec.Kind), s.Bytes) != s.Root {
			return fmt.Errorf("worldtest: record #%d is not the next in the chain", s.ID)
		}
	}
	if (journal.Head{ID: id, Root: chain.Root()}) != b.Head {
		return fmt.Errorf("worldtest: the batch does not end at its head #%d", b.Head.ID)
	}
	return nil
}

// Wait implements journal.Pending: all batches up to this one become durable.
func (p *pending) Wait() error {
	var failed error
	if p.j.FailWait != nil {
		failed = p.j.FailWait(p.n)
	}
	if failed != nil && !errors.Is(failed, journal.ErrUnknown) {
		return failed
	}
	for !p.done {
		if len(p.j.queue) == 0 {
			return journal.ErrUnknown // lost in a crash
		}
		if err := p.j.makeDurable(p.j.queue[0]); err != nil {
			return err
		}
		p.j.queue = p.j.queue[1:]
	}
	return failed
}

// Done implements journal.Pending: nobody has to wait for memory that is not slow.
func (p *pending) Done() bool { return p.done || !p.j.Slow }

func (j *Journal) makeDurable(p *pending) error {
	p.done = true
	if _, err := j.Journal.Append(p.batch); err != nil {
		return err
	}
	if p.image != nil {
		return j.Journal.Checkpoint(p.image)
	}
	return nil
}

// Crash loses what is not durable.
func (j *Journal) Crash() { j.queue = nil }

// Clone returns a copy of what is durable, as another journal.
func (j *Journal) Clone() *Journal { return &Journal{Journal: *j.Journal.Clone()} }

// Truncate returns a copy that ends with record n, without images.
func (j *Journal) Truncate(n journal.Seq) *Journal { return &Journal{Journal: *j.Journal.Truncate(n)} }

// Bodies returns the bodies of a journal's records that are of one type, in order.
func Bodies[B journal.Body](t testing.TB, j *Journal) (out []B) {
	t.Helper()
	for _, s := range j.Records() {
		rec, err := journal.DecodeRecord(s.Bytes)
		require.NoError(t, err)
		require.NoError(t, rec.Load(j))
		body, err := rec.Body()
		require.NoError(t, err)
		if b, ok := body.(B); ok {
			out = append(out, b)
		}
	}
	return out
}

// TreeOf returns the tree over records.
func TreeOf(records []journal.Stored) *checkpoint.Tree {
	tree := new(checkpoint.Tree)
	for _, s := range records {
		tree.Add(s.Bytes)
	}
	return tree
}

// Checkpoint implements journal.Journal: it becomes durable after the appends
// before it, never earlier.
func (j *Journal) Checkpoint(img *journal.Image) error {
	if len(j.queue) > 0 {
		j.queue[len(j.queue)-1].image = img
	} else {
		j.Add(img)
	}
	return nil
}

// shown returns the images that were given to Checkpoint, durable or not.
func (j *Journal) shown() (*journal.Images, error) {
	if j.FailRead != nil {
		if err := j.FailRead(); err != nil {
			return nil, err
		}
	}
	shown := &j.Images
	for _, p := range j.queue {
		if p.image != nil {
			if shown == &j.Images {
				clone := j.Images.Clone()
				shown = &clone
			}
			shown.Add(p.image)
		}
	}
	return shown, nil
}

// asked returns what the images answer that are shown.
func asked[T any](j *Journal, ask func(*journal.Images) (*T, error)) (*T, error) {
	shown, err := j.shown()
	if err != nil {
		return nil, err
	}
	return ask(shown)
}

// listed is asked for lists.
func listed[T any](j *Journal, ask func(*journal.Images) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		shown, err := j.shown()
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		ask(shown)(yield)
	}
}

// Core implements journal.Versions.
func (j *Journal) Core(at journal.Seq) (*journal.Image, error) {
	return asked(j, func(x *journal.Images) (*journal.Image, error) { return x.Core(at) })
}

// CellVersion implements journal.Versions.
func (j *Journal) CellVersion(cell string, at journal.Seq) (*journal.CellVersion, error) {
	return asked(j, func(x *journal.Images) (*journal.CellVersion, error) { return x.CellVersion(cell, at) })
}

// IntentVersion implements journal.Versions.
func (j *Journal) IntentVersion(key journal.Hash, at journal.Seq) (*journal.IntentVersion, error) {
	return asked(j, func(x *journal.Images) (*journal.IntentVersion, error) { return x.IntentVersion(key, at) })
}

// CellVersions implements journal.Versions.
func (j *Journal) CellVersions(prefix string, at journal.Seq) iter.Seq2[journal.CellVersion, error] {
	return listed(j, func(x *journal.Images) iter.Seq2[journal.CellVersion, error] { return x.CellVersions(prefix, at) })
}

// IntentVersions implements journal.Versions.
func (j *Journal) IntentVersions(at journal.Seq) iter.Seq2[journal.IntentVersion, error] {
	return listed(j, func(x *journal.Images) iter.Seq2[journal.IntentVersion, error] { return x.IntentVersions(at) })
}

// CountVersion implements journal.Versions.
func (j *Journal) CountVersion(key journal.CountKey, at journal.Seq) (*journal.CountVersion, error) {
	return asked(j, func(x *journal.Images) (*journal.CountVersion, error) { return x.CountVersion(key, at) })
}

// CountVersions implements journal.Versions.
func (j *Journal) CountVersions(at journal.Seq) iter.Seq2[journal.CountVersion, error] {
	return listed(j, func(x *journal.Images) iter.Seq2[journal.CountVersion, error] { return x.CountVersions(at) })
}

// Chained is a history that computes the chain as it reads.
type Chained struct{ journal.History }

// ScanChain implements journal.Chainer.
func (c Chained) ScanChain(after journal.Head) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		chain := canon.ResumeChain(after.Root)
		for s, err := range c.Scan(after.ID) {
			s.Root = chain.Add(uint64(s.Record.ID), string(s.Record.Kind), s.Bytes)
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}
