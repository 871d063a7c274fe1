package local

import (
	"errors"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/verify"
)

// Verify proves the world in a directory from what is stored there, also where
// that is too damaged to be opened. progress, which may be nil, is called with
// the number of records replayed and that of all. The error says that it could
// not be done; what is wrong with the world is in the report.
func Verify(dir string, opts Options, progress func(done, all uint64)) (*verify.Report, error) {
	lw, err := own(dir, opts)
	if err != nil {
		return nil, err
	}
	var count func(done uint64)
	if all := uint64(lw.store.Head().ID); progress != nil {
		count = func(done uint64) { progress(done, all) }
	}
	r, err := lw.Verify(count)
	return r, errors.Join(err, lw.abandon())
}

// Verify proves the world from what is stored. progress, which may be nil, is
// called with the number of records replayed.
func (lw *World) Verify(progress func(done uint64)) (*verify.Report, error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return verify.Verify(lw.store, verify.Config{
		Keys: lw.verifyKeys(), Registry: lw.opts.Registry, Anchor: lw.store.Head(),
		Damage: lw.store.Damage(), Progress: progress,
	})
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
