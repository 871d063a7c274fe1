// Package memory has worlds that lie in memory: for experiments, and for whatever wants to
// see what a world does without keeping it.
//
//	w, err := memory.New(loaded.Manifest, loaded.Contents, memory.Options{Seed: &seed})
//	...
//	_, err = w.Submit(ctx, world.Submission{Name: "start"})
//	err = w.Run(ctx)
//	hash, err := w.ExecutionHash()
//
// Nothing is kept of what such a world does, which makes it fast; its states, its state root
// and its execution hash are those of the same world on a disk, with the same manifest, seed
// and inputs. With Options.Journal, such as a [Journal], all is kept, and the world can be
// replayed, forked and rolled back.
//
// Worlds of different goroutines share nothing that is written to.
package memory

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// DefaultID is the id of a world that is given none.
const DefaultID = "memory"

// Options say what a world in memory works with. The zero value keeps nothing, and performs
// effects with the adapters that the manifest names; those that touch the outside are refused.
type Options struct {
	ID       string           // default DefaultID
	Seed     *uint64          // nil: the manifest's; of a Fork, its parent's
	Reducers reducer.Registry // Go reducers
	Keys     *receipt.Keyring // signs and verifies receipts; nil: one whose secret is made of the id
	Now      func() int64     // that of world.Config: nil has time jump
	Paranoid bool             // run every reduction twice and compare

	// Life is that of world.Config: nil ends nothing.
	Life context.Context

	// Host makes who performs effects: nil is host.New. It is called again whenever the world
	// gets other rules, or is opened again. Close closes what is an io.Closer.
	Host func(host.Config) (world.Host, error)

	// Journal keeps what happens; nil: nothing is kept.
	Journal Kept

	// Those of world.Config, of a world with a Journal.
	BatchRecords, Memory int
	CheckpointRecords    journal.Seq
}

// Kept is a journal with its contents.
type Kept interface {
	journal.Journal
	journal.History
	journal.Versions
}

// World is a world in memory. It is not safe for concurrent use.
type World struct {
	*world.World

	cfg  world.Config
	host world.Host
}

// New makes a world of a manifest and the contents that it names.
func New(m *manifest.Manifest, contents map[manifest.Hash][]byte, o Options) (*World, error) {
	full := m.WithDefaults()
	g := world.Genesis{ID: o.id(), Seed: full.Seed, Manifest: &full, Contents: contents}
	if o.Seed != nil {
		g.Seed = *o.Seed
	}
	var content journal.Blobs = named(contents)
	if o.Journal != nil {
		content = o.Journal
	}
	return o.openWith(content, func(cfg world.Config) (*world.World, error) { return world.Create(cfg, g) })
}

// Open opens the world that o.Journal holds.
func Open(o Options) (*World, error) { return o.openWith(o.Journal, world.Open) }

// named are the contents that a manifest names.
type named map[manifest.Hash][]byte

// Blob implements journal.Blobs.
func (n named) Blob(h journal.Hash) ([]byte, error) {
	if c, ok := n[h]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("memory: content %s: %w", h, journal.ErrNotFound)
}

// Fork makes another world of the one that o.Journal holds, which is o.ID's from then on: give
// it a copy. See world.Fork.
func Fork(ctx context.Context, effects journal.ForkEffects, actor string, amend world.Amendment, o Options) (*World, error) {
	b := journal.Forked{World: o.id(), Effects: effects, Actor: actor, Seed: o.Seed}
	return o.openWith(o.Journal, func(cfg world.Config) (*world.World, error) {
		if err := world.Fork(ctx, cfg, &b, amend); err != nil {
			return nil, err
		}
		return world.Open(cfg)
	})
}

func (o *Options) id() string {
	if o.ID == "" {
		return DefaultID
	}
	return o.ID
}

// openWith has start make a world, and puts what it works with around it.
func (o *Options) openWith(content journal.Blobs, start func(world.Config) (*world.World, error)) (*World, error) {
	if o.Keys == nil {
		keys, err := Keyring(o.id())
		if err != nil {
			return nil, err
		}
		o.Keys = keys
	}
	w := &World{cfg: world.Config{
		Keys: o.Keys, Registry: o.Reducers, Paranoid: o.Paranoid, Now: o.Now, Life: o.Life,
		Memory: o.Memory, BatchRecords: o.BatchRecords, CheckpointRecords: o.CheckpointRecords,
	}}
	if o.Journal != nil {
		w.cfg.Journal, w.cfg.History, w.cfg.Images = o.Journal, o.Journal, o.Journal
	}
	newHost := o.Host
	if newHost == nil {
		newHost = Performer
	}
	keys := o.Keys
	w.cfg.NewHost = func(id string, m *manifest.Manifest) (world.Host, error) {
		if err := w.closeHost(); err != nil {
			return nil, err
		}
		h, err := newHost(host.Config{World: id, Manifest: m, Content: content.Blob, Keys: keys})
		if err != nil {
			return nil, err
		}
		w.host = h
		return h, nil
	}
	var err error
	if w.World, err = start(w.cfg); err != nil {
		return nil, errors.Join(err, w.closeHost())
	}
	return w, nil
}

// Performer is host.New, as Options.Host takes it.
func Performer(cfg host.Config) (world.Host, error) {
	h, err := host.New(cfg)
	if err != nil {
		return nil, err // and no interface of a nil pointer
	}
	return h, nil
}

// Keyring returns the keyring of a world whose secret is made of its id: equal worlds have
// equal journals, and nobody has to believe their receipts.
func Keyring(id string) (*receipt.Keyring, error) {
	secret := sha256.Sum256([]byte("memory " + id))
	return receipt.NewKeyring(id, []receipt.Epoch{{Number: 1, Secret: secret[:]}})
}

// Config returns the configuration of the world, for opening it in another way.
func (w *World) Config() world.Config { return w.cfg }

// Replay computes a world with a Journal anew from record 1, and compares all records.
func (w *World) Replay(ctx context.Context) (*world.Replayed, error) {
	if w.cfg.History == nil {
		return nil, fmt.Errorf("memory: %w", world.ErrNotKept)
	}
	return world.Replay(ctx, w.cfg.History, world.ReplayConfig{Keys: w.cfg.Keys, Registry: w.cfg.Registry, Paranoid: w.cfg.Paranoid})
}

// Close stops the host. The world can be looked at, and must not be driven any more.
func (w *World) Close() error { return w.closeHost() }

func (w *World) closeHost() error {
	h := w.host
	w.host = nil
	if c, ok := h.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
