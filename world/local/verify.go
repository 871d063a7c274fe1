package local

import (
	"context"
	"crypto/ed25519"
	"errors"
	"iter"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
)

// Verification says how a world is verified. The zero value believes nobody.
type Verification struct {
	Trust    []ed25519.PublicKey    // keys of those whom the caller believes; see verify.Report.Trusted
	Kept     [][]byte               // signed checkpoints that were kept elsewhere: each must be of this history
	Memory   int                    // bytes that the replay has in memory before it puts aside what it does not use; 0: Options.Memory
	Progress func(done, all uint64) // called with the number of records replayed and that of all; may be nil
}

// Verify checks the stored records of the world in a directory, even if they are too damaged to be opened. If
// the journal lies in a log, it checks the log as it is now, whoever owns the world. Faults of the world are in
// the report; an error means that there is none.
func Verify(ctx context.Context, dir string, opts Options, v Verification) (*verify.Report, error) {
	lw, err := ownReadOnly(dir, opts)
	if err != nil {
		return nil, err
	}
	r, err := lw.Verify(ctx, v)
	return r, errors.Join(err, lw.abandon())
}

// Verify proves the world, as of now, from stored bytes. The world goes on meanwhile; Close, and
// what moves records or copies the store, waits.
func (lw *World) Verify(ctx context.Context, v Verification) (*verify.Report, error) {
	lw.still.RLock()
	defer lw.still.RUnlock()
	past, cfg, err := lw.proven()
	if err != nil {
		return nil, err
	}
	cfg.Spilling = lw.spilling(v.Memory)
	r, err := v.run(ctx, past, past.end, cfg)
	if err == nil && lw.store.Overtaken() { // what it found missing is not
		return nil, store.ErrOvertaken
	}
	return r, err
}

// proven returns what is verified of the world as it is, once that is durable.
func (lw *World) proven() (past history, cfg verify.Config, err error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.w != nil {
		if err := lw.w.Sync(); err != nil {
			return past, cfg, err
		}
	}
	signers, err := lw.keys.CheckpointKeys()
	head := lw.store.Head()
	return history{lw.store, head.ID}, verify.Config{
		Keys: lw.verifyKeys(), Registry: lw.opts.Reducers, Anchor: head, Damage: lw.store.Damage(), Records: lw.store.RecordDamage(),
		Checkpoints: lw.notes(head.ID), Signers: public(signers), Images: lw.store.Heads(),
	}, err
}

// notes yields the signed checkpoints that are kept of records up to one.
func (lw *World) notes(to journal.Seq) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for signed, err := range lw.store.Checkpoints(1, to) {
			if !yield(signed.Note, err) {
				return
			}
		}
	}
}

// run verifies a history of so many records.
func (v Verification) run(ctx context.Context, past journal.History, all journal.Seq, cfg verify.Config) (*verify.Report, error) {
	cfg.Trust, cfg.Kept = v.Trust, v.Kept
	if v.Progress != nil {
		cfg.Progress = func(done uint64) { v.Progress(done, uint64(all)) }
	}
	return verify.Verify(ctx, past, cfg)
}

// history is what a journal held when its last record was end.
type history struct {
	pieces
	end journal.Seq
}

// pieces is a history whose images can be read piece by piece.
type pieces interface {
	journal.History
	journal.Versions
}

// Scan implements journal.History.
func (h history) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		if after >= h.end {
			return
		}
		for s, err := range h.pieces.Scan(after) {
			if !yield(s, err) || err != nil || s.ID == h.end {
				return
			}
		}
	}
}

// Image implements journal.History.
func (h history) Image(at journal.Seq) (*journal.Image, error) {
	return h.pieces.Image(min(at, h.end))
}

// Core implements journal.Versions.
func (h history) Core(at journal.Seq) (*journal.Image, error) {
	return h.pieces.Core(min(at, h.end))
}

// Replay recomputes the world from record 1 up to a record (0: all). The error
// is a *world.Divergence where the journal holds something else.
func (lw *World) Replay(ctx context.Context, to journal.Seq, progress func(done uint64)) (*world.Replayed, error) {
	return lw.ReplayFrom(ctx, 0, to, 0, progress)
}

// Prints recomputes the world from record 1 and has what its steps print heard, in their
// order: no journal holds it. The error is that of Replay. The world must not be used by
// what hears it.
func (lw *World) Prints(ctx context.Context, hear func(world.Printed)) error {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	_, err := world.Replay(ctx, lw.store, world.ReplayConfig{Keys: lw.verifyKeys(), Registry: lw.opts.Reducers, OnPrint: hear, Spilling: lw.spilling(0)})
	return err
}

// verifyKeys returns the keys that receipts are verified with, or nil.
func (lw *World) verifyKeys() *receipt.Keyring {
	if lw.keys.CanSign() {
		return lw.keys
	}
	return nil
}
