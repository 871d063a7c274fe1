package local

import (
	"context"
	"errors"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// ErrNotRemote says that this process performs the world's effects itself: see
// Options.Remote.
var ErrNotRemote = errors.New("this process performs the world's effects itself")

// edition is a manifest in force and what performs its effects. Workers elsewhere
// reach it without World.mu: Step and Apply hold that while they wait for them.
type edition struct {
	hash     manifest.Hash
	manifest *manifest.Manifest
	host     *host.Host // nil: the world cannot run
}

func newEdition(m *manifest.Manifest) (*edition, error) {
	hash, err := m.Hash()
	return &edition{hash: hash, manifest: m}, err
}

// InForce returns the manifest in force and its hash. It must not be changed. Unlike
// most methods it never waits.
func (lw *World) InForce() (*manifest.Manifest, manifest.Hash) {
	e := lw.edition.Load()
	return e.manifest, e.hash
}

// AcquireEffects hands attempts of live effects to a worker in another process, with
// the hash of the manifest under which they were asked for; see host.Host.Acquire.
// ErrNotRemote where they are performed here. Other calls may be made meanwhile.
func (lw *World) AcquireEffects(ctx context.Context, worker string, kinds []string, most int) (offers []host.Offer, rules manifest.Hash, err error) {
	err = lw.withHost(func(e *edition) error {
		if !lw.opts.Remote {
			return ErrNotRemote
		}
		rules = e.hash
		offers, err = e.host.Acquire(ctx, worker, kinds, most)
		return err
	})
	return offers, rules, err
}

// RenewEffect prolongs the lease of an attempt that a worker has acquired; see
// host.Host.Renew.
func (lw *World) RenewEffect(worker string, key receipt.Key, attempt uint64, nonce receipt.Nonce) error {
	return lw.withHost(func(e *edition) error { return e.host.Renew(worker, key, attempt, nonce) })
}

// LoseEffect takes a worker's word that an acquired attempt is in doubt; see host.Host.Lose.
func (lw *World) LoseEffect(worker string, key receipt.Key, attempt uint64, nonce receipt.Nonce, why string) error {
	return lw.withHost(func(e *edition) error { return e.host.Lose(worker, key, attempt, nonce, why) })
}

// CommitEffect takes the result of an attempt that a worker has acquired, of this
// process or of one before it. It is durable on return. Beside the errors of
// host.Host.Commit there are those of package receipt, where the world knows the
// attempt and not the host: receipt.ErrDuplicate and receipt.ErrWrongAttempt say that
// it was taken before, or never will be. All of them but host.ErrClosed, and those
// of a disk, are final.
func (lw *World) CommitEffect(worker string, data []byte, retryAfter time.Duration) error {
	return lw.withHost(func(e *edition) error {
		err := e.host.Commit(worker, data, retryAfter)
		if !errors.Is(err, host.ErrUnknownAttempt) {
			return err
		}
		signed, err := e.host.Sign(data)
		if err != nil {
			return err
		}
		return lw.Update(func(w *world.World) error {
			if lw.closed {
				return host.ErrClosed
			}
			_, err := w.Receive(signed)
			return err
		})
	})
}

// withHost calls do with the host that is there, and again where Apply has put
// another in its place.
func (lw *World) withHost(do func(*edition) error) error {
	for {
		e := lw.edition.Load()
		if e.host == nil {
			return lw.canRun()
		}
		err := do(e)
		if !errors.Is(err, host.ErrClosed) {
			return err
		}
		lw.mu.Lock() // Apply and Close hold it until they are done
		over := lw.edition.Load() == e
		lw.mu.Unlock()
		if over {
			return err
		}
	}
}
