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
)

// rules are a manifest in force, and what was read of its contents.
type rules struct {
	hash     manifest.Hash
	manifest *manifest.Manifest
	contents map[manifest.Hash][]byte
}

// fetch reads the manifest in force.
func (d *desk) fetch(ctx context.Context) (*rules, error) {
	r := &rules{contents: make(map[manifest.Hash][]byte)}
	err := persist(ctx, d.note("manifest"), func(ctx context.Context) error {
		var answer struct { // of api.Manifest, what a machine needs
			Hash manifest.Hash `json:"hash"`
			Raw  []byte        `json:"raw"`
		}
		if err := d.client.get(ctx, ofWorld(d.id, "/manifest"), &answer); err != nil {
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

// open makes the host for a manifest, of all effects that this program can perform.
func (d *desk) open(ctx context.Context, r *rules) (*host.Host, error) {
	cfg := host.Config{
		World: d.id, Keys: d.keys, Dir: d.cfg.Dir, Secrets: d.cfg.Secrets, EffectLog: filepath.Join(d.dir, "effects"),
		Workers: d.cfg.Workers, Grace: closing, Fence: d.leases.fence, Adapters: d.cfg.Adapters,
	}
	var missing error // a content could not be read
	cfg.Content = func(h manifest.Hash) (data []byte, err error) {
		data, err = d.content(ctx, r, h)
		missing = errors.Join(missing, err)
		return data, err
	}
	m := *r.manifest
	m.Effects = maps.Clone(m.Effects)
	for kind, e := range m.Effects { // order cannot show: each is changed
		e.Verify = nil // the server verifies
		m.Effects[kind] = e
	}
	cfg.Manifest = &m
	for _, fault := range host.Check(cfg) {
		if missing != nil {
			return nil, missing
		}
		d.log.Warn("an effect is left to others", "kind", fault.Kind, "reason", fault.Err)
		delete(m.Effects, fault.Kind)
	}
	return host.New(cfg)
}

// content reads a content that the manifest names.
func (d *desk) content(ctx context.Context, r *rules, h manifest.Hash) ([]byte, error) {
	if data, ok := r.contents[h]; ok {
		return data, nil
	}
	var data []byte
	err := persist(ctx, d.note("content"), func(ctx context.Context) error {
		if err := d.client.get(ctx, ofWorld(d.id, "/contents/"+h.String()), &data); err != nil {
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
	r.contents[h] = data
	return data, nil
}

// kindsOf returns the kinds of live effects that a host performs.
func kindsOf(h *host.Host, r *rules) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.manifest.Effects)), func(kind string) bool { return !h.Live(kind) })
}
