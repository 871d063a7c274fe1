package world

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// ErrStale says that a manifest was made for another than the one in force.
var ErrStale = fmt.Errorf("world: the manifest in force is another than the one that was changed")

// Adopt puts another manifest in force; base is the hash of the one that it was
// made from. contents are those that it names and the world may not have. It is
// durable on return. The host still performs the effects of the manifest before:
// open the world again.
func (w *World) Adopt(ctx context.Context, next *manifest.Manifest, contents map[manifest.Hash][]byte, base Hash, actor string) error {
	return w.change(ctx, func() error {
		blobs, err := w.contentsOf(next, contents)
		if err != nil {
			return err
		}
		r, err := compile(next, blobs[0].Hash, BlobList(blobs), w.cfg.Registry)
		if err != nil {
			return err
		}
		b := Applied{
			Manifest: r.hash, Base: base, Actor: actor,
			Kernel: KernelVersion, Starlark: star.Version, CEL: governance.Version,
		}
		if err := w.k.adopt(b, r); err != nil {
			return err
		}
		w.k.blobs = append(w.k.blobs, blobs...)
		return nil
	})
}

// contentsOf returns a manifest and all that it names.
func (w *World) contentsOf(m *manifest.Manifest, contents map[manifest.Hash][]byte) ([]Blob, error) {
	encoded, err := m.Encode()
	if err != nil {
		return nil, fmt.Errorf("world: manifest: %w", err)
	}
	blobs := []Blob{{Hash: canon.Sum(encoded), Bytes: encoded}}
	for _, h := range m.Contents() {
		content, ok := contents[h]
		if !ok {
			if content, err = w.cfg.History.Blob(h); err != nil {
				return nil, fmt.Errorf("world: manifest: content %s: %w", h, err)
			}
		}
		blobs = append(blobs, Blob{Hash: h, Bytes: content})
	}
	return blobs, nil
}

// adopt writes a manifest.applied: next is in force from here on, and takes over
// the states of the cells whose code changes.
func (k *kernel) adopt(b Applied, next *rules) error {
	if k.tickOpen() {
		return errTickOpen
	}
	if err := checkEngines(b.Kernel, b.Starlark, b.CEL); err != nil {
		return err
	}
	if b.Base != k.rules.hash {
		return refuse(ErrStale, "base", "%s, and %s is in force", b.Base, k.rules.hash)
	}
	for _, kind := range slices.Sorted(maps.Keys(k.rules.effects)) {
		if next.effects[kind] == nil && k.unfinished(kind) {
			return refuse(ErrUnderWay, "effects", "%q", kind)
		}
	}
	all, err := k.migrate(next, k.otherCode(next))
	if err != nil {
		return err
	}
	b.V, b.Actor = bodyVersion, journaled(b.Actor)
	k.body = b.append(k.body[:0])
	id, _ := k.write(KindApplied, 0)
	k.inTick = false
	k.rules = next
	if k.tree != nil {
		k.dropTree() // a cell's leaf holds its reducer's hash
	}
	k.takeOver(all, id)
	return nil
}

// otherCode returns the cells whose reducer has other code under other rules.
func (k *kernel) otherCode(next *rules) []*cell {
	var out []*cell
	for _, c := range k.cells { // order cannot show: migrate sorts
		was, is := k.rules.reducers[c.id.Reducer], next.reducers[c.id.Reducer]
		if c.born && was != nil && is != nil && was.hash != is.hash {
			out = append(out, c)
		}
	}
	return out
}

// unfinished reports whether an effect of a kind is under way.
func (k *kernel) unfinished(kind string) bool {
	for _, e := range k.ledger.Unfinished() {
		if e.Intent.Kind == kind {
			return true
		}
	}
	return false
}
