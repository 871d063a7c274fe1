package local

import (
	"context"
	"errors"
	"iter"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/store"
	"github.com/worldkernel/worldkernel/world/verify"
)

// Verification says how a world is verified. The zero value will do.
type Verification struct {
	Progress func(done, all uint64) // called with the number of records replayed and that of all; may be nil
}

// Verify proves the world in a directory from what is stored there, also where
// that is too damaged to be opened. The error says that it could not be done;
// what is wrong with the world is in the report.
func Verify(ctx context.Context, dir string, opts Options, v Verification) (*verify.Report, error) {
	lw, err := own(dir, opts)
	if err != nil {
		return nil, err
	}
	r, err := lw.Verify(ctx, v)
	return r, errors.Join(err, lw.abandon())
}

// Verify proves the world, as it is when it begins, from what is stored. The world
// goes on meanwhile; Close, and what moves records or copies the store, waits.
func (lw *World) Verify(ctx context.Context, v Verification) (*verify.Report, error) {
	lw.still.RLock()
	defer lw.still.RUnlock()
	lw.mu.Lock()
	past, keys := history{lw.store, ctx, lw.store.Head()}, lw.verifyKeys()
	lw.mu.Unlock()
	cfg := verify.Config{Keys: keys, Registry: lw.opts.Registry, Anchor: past.head, Damage: past.damage()}
	if v.Progress != nil {
		cfg.Progress = func(done uint64) { v.Progress(done, uint64(past.head.ID)) }
	}
	r, err := verify.Verify(past, cfg)
	if ended := ctx.Err(); ended != nil {
		return nil, ended
	}
	return r, err
}

// history is what a store held when its head was head. Once ctx ends it cannot be
// read any more.
type history struct {
	*store.Store
	ctx  context.Context
	head world.Head
}

// Scan implements world.History.
func (h history) Scan(after world.Seq) iter.Seq2[world.Scanned, error] {
	return func(yield func(world.Scanned, error) bool) {
		if after >= h.head.ID {
			return
		}
		for s, err := range h.Store.Scan(after) {
			if err == nil {
				err = h.ctx.Err()
			}
			if !yield(s, err) || err != nil || s.ID >= h.head.ID {
				return
			}
		}
	}
}

// Image implements world.History.
func (h history) Image(at world.Seq) (*world.Image, error) {
	return h.Store.Image(min(at, h.head.ID))
}

func (h history) damage() iter.Seq[error] {
	return func(yield func(error) bool) {
		for err := range h.Damage() {
			if h.ctx.Err() != nil || !yield(err) {
				return
			}
		}
	}
}

// Replay recomputes the world from record 1 up to a record (0: all). The error
// is a *world.Divergence where the journal holds something else.
func (lw *World) Replay(to world.Seq, progress func(done uint64)) (*world.Replayed, error) {
	return lw.ReplayFrom(0, to, progress)
}

// verifyKeys returns the keys that receipts are verified with, or nil.
func (lw *World) verifyKeys() *receipt.Keyring {
	if lw.keys.CanSign() {
		return lw.keys
	}
	return nil
}
