package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// rules are a manifest in force, and what was read of its contents.
type rules struct {
	hash     manifest.Hash
	manifest *manifest.Manifest
	contents map[manifest.Hash][]byte // until the host is made
	bytes    int                      // of them
}

// fetch reads the manifest in force.
func (w *worldWorker) fetch(ctx context.Context) (*rules, error) {
	r := &rules{contents: make(map[manifest.Hash][]byte)}
	err := persist(ctx, w.logFailure("manifest"), func(ctx context.Context) error {
		var answer struct { // of api.Manifest, what a machine needs
			Hash manifest.Hash `json:"hash"`
			Raw  []byte        `json:"raw"`
		}
		if err := w.client.get(ctx, ofWorld(w.id, "/manifest"), maxManifest, &answer); err != nil {
			return err
		}
		var err error
		if r.hash = canon.Sum(answer.Raw); r.hash != answer.Hash {
			return errors.New("the manifest is not the one that its hash names")
		}
		r.manifest, err = manifest.Decode(answer.Raw)
		return err
	})
	return r, err
}

// open makes the host for a manifest, of all effects that this program can and may perform.
func (w *worldWorker) open(ctx context.Context, r *rules) (*host.Host, error) {
	cfg := host.Config{
		World: w.id, Keys: w.keys, Dir: w.cfg.Dir, Secrets: w.cfg.Secrets, EffectLog: filepath.Join(w.dir, "effects"),
		Workers: w.cfg.Workers, Grace: closing, Fence: w.leases.fence, Adapters: w.cfg.Adapters, UnderWay: w.cfg.UnderWay,
	}
	var missing error // a content could not be read
	cfg.Content = func(h manifest.Hash) (data []byte, err error) {
		data, err = w.content(ctx, r, h)
		missing = errors.Join(missing, err)
		return data, err
	}
	m := *r.manifest
	m.Effects = maps.Clone(m.Effects)
	for _, kind := range slices.Sorted(maps.Keys(m.Effects)) {
		e := m.Effects[kind]
		if _, own := w.cfg.Adapters[e.Adapter]; !own && (e.Adapter == "recorded" || e.Adapter == "stub") {
			delete(m.Effects, kind) // no worker is asked for it, and its contents may be large
			continue
		}
		if err := w.cfg.Trust.Refuses(kind, &e); err != nil {
			w.log.Warn("an effect is left to others: it is not trusted", "kind", kind, "reason", err)
			delete(m.Effects, kind)
			continue
		}
		e.Verify = nil // the server verifies
		m.Effects[kind] = e
	}
	w.cfg.Trust.Guard(&cfg)
	cfg.Manifest = &m
	for _, fault := range host.Check(cfg) {
		if missing != nil {
			return nil, missing
		}
		w.log.Warn("an effect is left to others", "kind", fault.Kind, "reason", fault.Err)
		delete(m.Effects, fault.Kind)
	}
	h, err := host.New(cfg)
	r.contents = nil // the host has read what it needs
	return h, err
}

// content reads a content that the manifest names.
func (w *worldWorker) content(ctx context.Context, r *rules, h manifest.Hash) ([]byte, error) {
	if data, ok := r.contents[h]; ok {
		return data, nil
	}
	var data []byte
	err := persist(ctx, w.logFailure("content"), func(ctx context.Context) error {
		if err := w.client.get(ctx, ofWorld(w.id, "/contents/"+h.String()), maxContents-r.bytes, &data); err != nil {
			return err
		}
		if canon.Sum(data) != h {
			return errors.New("the content is not the one that its hash names")
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("content %s: %w", h, err)
	}
	if r.contents != nil {
		r.contents[h], r.bytes = data, r.bytes+len(data)
	}
	return data, nil
}

// kindsOf returns the kinds of live effects that a host performs.
func kindsOf(h *host.Host, r *rules) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.manifest.Effects)), func(kind string) bool { return !h.Live(&receipt.Intent{Kind: kind}) })
}
