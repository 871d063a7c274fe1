package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
)

// Why a file does not hold a snapshot of this world.
var (
	ErrNotSaved   = errors.New("this is not a saved snapshot, or not as it was saved")
	ErrSavedOther = errors.New("the snapshot was saved from another world")
)

// SaveSnapshot writes a bundle of the records up to the record of a snapshot that is kept.
// VerifyBundle proves cells, mailboxes and timers from it, and ReadSnapshot finds the
// snapshot again. The errors are those of ExportBundle, too.
func (lw *World) SaveSnapshot(ctx context.Context, w io.Writer, name string) (snapshot.Snapshot, error) {
	s, err := lw.findSnapshot(name)
	if err != nil {
		return s, err
	}
	return s, lw.ExportBundle(ctx, w, BundleOptions{To: journal.Seq(s.Record)})
}

// ReadSnapshot returns the snapshot whose record is the last of a bundle, once it has
// found that the records of the bundle are those of this world. The errors are ErrNotSaved,
// ErrSavedOther, and snapshot.ErrNoSnapshot where the world has let it go.
func (lw *World) ReadSnapshot(ctx context.Context, from io.Reader) (s snapshot.Snapshot, err error) {
	r, err := openBundle(ctx, from, lw.opts.Bounds.withDefaults())
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrNotSaved, err)
	}
	defer r.Close() //nolint:errcheck // only read
	for damage := range r.Damage() {
		return s, fmt.Errorf("%w: %w", ErrNotSaved, damage)
	}
	h := r.Header()
	switch err := sameRecords(r, lw.store, h.First, h.Last); {
	case errors.Is(err, errUnequal) && h.World != lw.keys.World(): // a fork has the records of its parent
		return s, fmt.Errorf("%w: it is of %s, this is %s", ErrSavedOther, h.World, lw.keys.World())
	case errors.Is(err, errUnequal):
		return s, fmt.Errorf("%w: %w", ErrNotSaved, err)
	case err != nil:
		return s, err
	}
	rec, err := journal.Read(lw.store, h.Last)
	if err != nil {
		return s, err
	}
	body, err := rec.LoadBody(lw.store)
	if err != nil {
		return s, err
	}
	made, ok := body.(*journal.SnapshotCreated)
	if !ok {
		return s, fmt.Errorf("%w: its last record is %s", ErrNotSaved, rec.Kind)
	}
	return lw.findSnapshot(made.SnapshotHash().String())
}

func (lw *World) findSnapshot(name string) (s snapshot.Snapshot, err error) {
	lw.View(func(m *world.Moment) { s, err = m.FindSnapshot(name) })
	return s, err
}

// sameRecords compares the records of two journals from one to another.
func sameRecords(a, b journal.History, first, last journal.Seq) error {
	next, stop := iter.Pull2(b.Scan(first - 1))
	defer stop()
	for x, err := range a.Scan(first - 1) {
		y, failed, _ := next()
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		if x.ID != y.ID || x.Link != y.Link || string(x.Bytes) != string(y.Bytes) {
			return fmt.Errorf("%w: record #%d", errUnequal, x.ID)
		}
		if first = x.ID + 1; x.ID == last {
			break
		}
	}
	if first <= last {
		return fmt.Errorf("%w: record #%d is not there", errUnequal, first)
	}
	return nil
}
