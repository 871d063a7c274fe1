package local

import (
	"context"
	"fmt"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

// At returns the world as it was after a record, and what was written at once
// with it. It costs the records since the image before; where that is far away, as in a
// copy that was made anew from a log, it leaves images for those who look next. The error is
// journal.ErrNotFound where there is no such record.
func (lw *World) At(at journal.Seq) (*world.Moment, error) {
	if err := lw.has(at); err != nil {
		return nil, err
	}
	return world.AtLeaving(lw.lifetime(), lw.store, at, lw.opts.Reducers, lw.store.Apart(), func(img *journal.Image) {
		_ = lw.store.KeepPast(img) // it saves time, and nothing else
	})
}

// has reports, as journal.ErrNotFound, that there is no such record.
func (lw *World) has(at journal.Seq) error {
	if end := lw.store.Head().ID; at == 0 || at > end {
		return fmt.Errorf("record #%d of %d: %w", at, end, journal.ErrNotFound)
	}
	return nil
}

// ReplayFrom is Replay that begins with the image of a snapshot: with its record,
// or with record 1 where from is 0. Beyond so many bytes of memory, or those of Options where
// that is 0, it puts aside what it does not use.
func (lw *World) ReplayFrom(ctx context.Context, from, to journal.Seq, memory int, progress func(done uint64)) (*world.Replayed, error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	cfg := world.ReplayConfig{Keys: lw.verifyKeys(), Registry: lw.opts.Reducers, From: from, To: to, Spilling: lw.spilling(memory)}
	if progress != nil {
		cfg.Visit = func(s journal.Scanned) error {
			progress(uint64(s.ID))
			return nil
		}
	}
	return world.Replay(ctx, lw.store, cfg)
}

// ReplayAt looks at the world as it was after each of some records, ascending, and what was
// written at once with it: what At gives, by one replay that goes on from the images that help.
// Beyond so many bytes of memory, or those of Options where that is 0, it puts aside what it does
// not use. The world goes on meanwhile. The error is journal.ErrNotFound where there is no
// such record.
func (lw *World) ReplayAt(ctx context.Context, at []journal.Seq, memory int, look func(at journal.Seq, m *world.Moment) error) error {
	for _, id := range at {
		if err := lw.has(id); err != nil {
			return err
		}
	}
	cfg := world.ReplayConfig{Registry: lw.opts.Reducers, Spilling: lw.spilling(memory)}
	return world.ReplayAt(ctx, lw.store, at, cfg, look)
}
