package world

import (
	"errors"
	"fmt"
	"iter"

	"github.com/worldkernel/worldkernel/journal"
)

// ErrNotKept says that a world of which nothing is kept was asked for what it has done.
var ErrNotKept = errors.New("nothing is kept of what this world does")

// nowhere is the journal and the history of a world of which nothing is kept: it has the
// contents that the world was made of.
type nowhere struct{ journal.Blobs }

// Append implements journal.Journal.
func (nowhere) Append(journal.Batch) (journal.Pending, error) { return passed{}, nil }

// Checkpoint implements journal.Journal.
func (nowhere) Checkpoint(*journal.Image) error { return nil }

// Notify implements journal.Journal.
func (nowhere) Notify(func()) {}

// Record implements journal.History.
func (nowhere) Record(id journal.Seq) ([]byte, error) { return nil, notKept(id) }

// Image implements journal.History.
func (nowhere) Image(journal.Seq) (*journal.Image, error) { return nil, nil } //nolint:nilnil // there is none

// Part implements journal.History.
func (nowhere) Part(at journal.Seq, _ []string) (*journal.Image, error) { return nil, notKept(at) }

// Scan implements journal.History.
func (nowhere) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) { yield(journal.Scanned{}, notKept(after+1)) }
}

func notKept(id journal.Seq) error { return fmt.Errorf("world: record #%d: %w", id, ErrNotKept) }

// passed is an append of which nothing is kept.
type passed struct{}

func (passed) Wait() error { return nil }
func (passed) Done() bool  { return true }

// ExecutionHash returns the execution hash of all that has happened up to the moment. It
// reads the history, unless nothing is kept of that: the error is that of reading it.
func (m *Moment) ExecutionHash() (journal.Hash, error) {
	if x := m.k.execution; x != nil {
		return x.Clone().Hash(), m.k.failed
	}
	x, err := journal.ExecutionOf(m.past, m.k.last)
	if err != nil {
		return journal.Hash{}, err
	}
	return x.Hash(), nil
}
