package local

import (
	"context"
	"fmt"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
)

// Snapshot makes a snapshot of the world as it is; see world.World.Snapshot.
func (lw *World) Snapshot(ctx context.Context, name, label, actor string) (s snapshot.Snapshot, err error) {
	err = lw.change(func() error {
		s, err = lw.w.Snapshot(ctx, name, label, actor)
		return err
	})
	return s, err
}

// Pin keeps a snapshot whatever the retention says, or lets that decide again.
func (lw *World) Pin(ctx context.Context, b journal.SnapshotPinned) error {
	return lw.change(func() error { return lw.w.Pin(ctx, b) })
}

// Prune lets a snapshot go.
func (lw *World) Prune(ctx context.Context, b journal.SnapshotPruned) error {
	return lw.change(func() error { return lw.w.Prune(ctx, b) })
}

// Retain says how many snapshots are kept. It returns those that this lets go.
func (lw *World) Retain(ctx context.Context, b journal.SnapshotRetention) (pruned []string, err error) {
	err = lw.change(func() error {
		pruned, err = lw.w.Retain(ctx, b)
		return err
	})
	return pruned, err
}

// Rollback returns cells, mailboxes and timers to what they were at a snapshot;
// see world.World.Rollback.
func (lw *World) Rollback(ctx context.Context, b journal.RolledBack) (done *journal.RolledBack, err error) {
	err = lw.change(func() error {
		done, err = lw.w.Rollback(ctx, b)
		return err
	})
	return done, err
}

// Leaves returns what a rollback to a snapshot would leave behind.
func (lw *World) Leaves(b journal.RolledBack) (left []journal.SideEffect, err error) {
	lw.View(func(w *world.Moment) { left, err = w.Leaves(b) })
	return left, err
}

// At returns the world as it was after a record, and what was written at once
// with it. It costs the records since the snapshot before. The error is
// journal.ErrNotFound where there is no such record.
func (lw *World) At(at journal.Seq) (*world.Moment, error) {
	if err := lw.has(at); err != nil {
		return nil, err
	}
	return world.At(lw.store, at, lw.opts.Reducers)
}

// has reports, as journal.ErrNotFound, that there is no such record.
func (lw *World) has(at journal.Seq) error {
	if end := lw.store.Head().ID; at == 0 || at > end {
		return fmt.Errorf("record #%d of %d: %w", at, end, journal.ErrNotFound)
	}
	return nil
}

// ReplayFrom is Replay that begins with the image of a snapshot: with its record,
// or with record 1 where from is 0.
func (lw *World) ReplayFrom(from, to journal.Seq, progress func(done uint64)) (*world.Replayed, error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	cfg := world.ReplayConfig{Keys: lw.verifyKeys(), Registry: lw.opts.Reducers, From: from, To: to}
	if progress != nil {
		cfg.Visit = func(s journal.Scanned) error {
			progress(uint64(s.ID))
			return nil
		}
	}
	return world.Replay(lw.store, cfg)
}
