package worker

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
)

const (
	closing = time.Second     // for adapters to end once their places are given up
	handing = 5 * time.Second // for that, and for handing in what came of it
	// In a lease it is renewed so often, and where there was no answer asked for again so often.
	renewals, repeats = 3, 30
)

// worldWorker works for one world, under whatever manifests come into force.
type worldWorker struct {
	cfg    *Config
	client *client
	id     string
	dir    string // of what is kept of the world
	log    *slog.Logger
	keys   *receipt.Keyring // of this process: the world signs anew
	leases *leases
}

func newWorldWorker(cfg *Config, c *client, id string) (*worldWorker, error) {
	dir, err := worldDir(filepath.Join(cfg.Dir, ownDir), id)
	if err != nil {
		return nil, err
	}
	secret := make([]byte, receipt.SecretBytes)
	_, _ = rand.Read(secret) // it never errs
	keys, err := receipt.NewKeyring(id, []receipt.Epoch{{Number: 1, Secret: secret}})
	if err != nil {
		return nil, err
	}
	return &worldWorker{cfg: cfg, client: c, id: id, dir: dir, log: cfg.Log.With("world", id), keys: keys, leases: newLeases()}, nil
}

// offer is an attempt that this worker has acquired.
type offer struct {
	permit receipt.Permit
	rules  manifest.Hash // under which it was asked for
}

// work runs one session after another until ctx ends. life bounds what has to be done then.
func (w *worldWorker) work(ctx, life context.Context) error {
	var left []offer
	for first := true; ; first = false {
		if len(left) == 0 && ctx.Err() != nil {
			return nil
		}
		asking := ctx
		if len(left) > 0 {
			asking = life
		}
		r, err := w.fetch(asking)
		if err != nil {
			return unlessOver(asking, err)
		}
		h, err := w.open(asking, r)
		if err != nil {
			return unlessOver(asking, err)
		}
		if first {
			w.log.Info("working for a world", "name", w.cfg.Name, "manifest", r.hash.String(), "kinds", kindsOf(h, r))
		} else {
			w.log.Info("another manifest is in force", "manifest", r.hash.String(), "kinds", kindsOf(h, r))
		}
		s := newSession(life, w, h, r)
		if left, err = s.run(ctx, left); err != nil {
			return err
		}
	}
}

// logFailure returns what logs a failure after which the worker tries again.
func (w *worldWorker) logFailure(what string) func(error, time.Duration) {
	return noteIn(w.log, what)
}

// keep renews a lease until it is not held, or over.
func (w *worldWorker) keep(p receipt.Permit, h *lease) {
	timer := time.NewTimer(h.term / renewals)
	defer timer.Stop()
	for {
		select {
		case <-h.gone:
			return
		case <-timer.C:
		}
		if w.leases.lost(h) {
			return
		}
		switch renewed, held := w.renew(&p, h); {
		case !held:
			return
		case renewed:
			timer.Reset(h.term / renewals)
		default: // the world may be on its way from one process to another
			timer.Reset(h.term / repeats)
		}
	}
}

// renew reports whether a lease is renewed, and whether another renewal makes sense.
func (w *worldWorker) renew(p *receipt.Permit, h *lease) (renewed, held bool) {
	ctx, cancel := context.WithTimeout(context.Background(), h.term/renewals)
	defer cancel()
	asked := time.Now()
	err := w.client.post(ctx, ofWorld(w.id, "/effects/renew"), api.RenewRequest{
		Worker: w.cfg.Name, Key: p.Key, Attempt: p.Attempt, Nonce: h.nonce.String(),
	}, new(struct{}))
	said := refusal(err)
	switch {
	case err == nil:
		w.leases.prolong(h, asked)
	case said != nil && said.status == http.StatusConflict:
		w.leases.lose(attemptOf(p))
		return false, false
	}
	return err == nil, true
}
