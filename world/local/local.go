// Package local opens a world directory: it wires the store, the keyring, the
// manifest, the reducers and the host into a World.
//
// A world directory holds world.yaml, the sources that it names, and .world/:
//
//	store/    the journal and what is derived from it (package world/store)
//	anchor    where the journal was when it was last acknowledged
//	keyring   the receipt keys, readable by the owner only
//	lock      held by the process that owns the world
//
// Three lines run a world:
//
//	w, err := local.Open("support-desk", local.Options{})
//	_, err = w.Submit(ctx, "ticket.opened", map[string]any{"customer": "ada"})
//	err = w.Run(ctx)
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/receipt/host"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/store"
)

// Names within a world directory.
const (
	ManifestFile = "world.yaml"
	hiddenDir    = ".world"
	keyringFile  = "keyring"
)

// ErrNoWorld says that a directory holds no world yet.
var ErrNoWorld = errors.New("no world here")

// Options say how a world is opened. The zero value opens worlds whose
// reducers are all in Starlark.
type Options struct {
	Registry *reducer.Registry       // Go reducers
	Adapters map[string]host.Factory // adapters besides the built-in ones
	Paranoid bool                    // run every reduction twice and compare
	Fatal    func(error)             // ends the process when the disk fails under a journal; see store.Options
}

// World is a world in a directory, owned by this process. It is safe for
// concurrent use: calls take turns.
type World struct {
	mu    sync.Mutex
	dir   string
	w     *world.World
	store *store.Store
	host  *host.Host
	keys  *receipt.Keyring
	opts  Options
}

// Find returns the nearest directory upwards from dir that holds a world.
func Find(dir string) (string, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if info, err := os.Stat(filepath.Join(at, hiddenDir)); err == nil && info.IsDir() {
			return at, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", fmt.Errorf("%s: %w, nor in a directory above", dir, ErrNoWorld)
		}
		at = up
	}
}

// Open opens the world in a directory and becomes its owner. What a crash left
// half-done is caught up on before the next input.
func Open(dir string, opts Options) (*World, error) {
	lw, err := own(dir, opts)
	if err != nil {
		return nil, err
	}
	if lw.w, err = world.Open(lw.config()); err != nil {
		return nil, errors.Join(err, lw.abandon())
	}
	return lw, nil
}

// own becomes the owner of what is stored in a directory, whether or not it
// makes a world.
func own(dir string, opts Options) (*World, error) {
	hidden := filepath.Join(dir, hiddenDir)
	if _, err := os.Stat(hidden); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoWorld)
	}
	keys, err := readKeyring(filepath.Join(hidden, keyringFile))
	if err != nil {
		return nil, err
	}
	s, err := openStore(hidden, keys, opts, store.Open)
	if err != nil {
		return nil, err
	}
	return &World{dir: dir, store: s, keys: keys, opts: opts}, nil
}

func openStore(hidden string, keys *receipt.Keyring, opts Options, open func(string, store.Options) (*store.Store, error)) (*store.Store, error) {
	anchorKey, err := keys.AnchorKey()
	if err != nil {
		return nil, err
	}
	return open(hidden, store.Options{AnchorKey: anchorKey, EachCell: eachCell, Fatal: opts.Fatal})
}

// eachCell tells the store's index which cells a record concerns. A payload
// that cannot be read is in no index; verification reports it.
func eachCell(kind string, payload []byte, visit func(cell []byte)) {
	_ = world.EachCell(world.Kind(kind), payload, visit)
}

func (lw *World) config() world.Config {
	return world.Config{
		Journal: lw.store, History: lw.store, Keys: lw.verifyKeys(), Registry: lw.opts.Registry, Paranoid: lw.opts.Paranoid,
		NewHost: func(id string, m *manifest.Manifest) (world.Host, error) {
			if !lw.keys.CanSign() {
				return nil, nil // nothing will be started: see canRun
			}
			h, err := host.New(host.Config{
				World: id, Manifest: m, Content: lw.store.Blob, Keys: lw.keys, Adapters: lw.opts.Adapters,
			})
			if err != nil {
				return nil, err
			}
			lw.host = h
			return h, nil
		},
	}
}

// abandon lets go of what has been opened.
func (lw *World) abandon() error {
	if lw.host != nil {
		lw.host.Close()
	}
	return lw.store.Close()
}

// Close checkpoints the world, so that opening it is fast, and gives it up.
func (lw *World) Close() error {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return errors.Join(lw.w.Checkpoint(), lw.abandon())
}

// Submit takes an event whose data is any value with a canonical form: maps,
// lists, numbers, strings, or structs with cbor tags. It is durable on return.
func (lw *World) Submit(ctx context.Context, name string, data any) (world.Seq, error) {
	b, err := canon.Marshal(data)
	if err != nil {
		return 0, &world.InputError{Err: world.ErrBadData, Field: "data", Rule: err.Error()}
	}
	return lw.SubmitEvent(ctx, world.Submission{Name: name, Data: b})
}

// SubmitEvent is Submit with everything that can be said about an event.
func (lw *World) SubmitEvent(ctx context.Context, s world.Submission) (world.Seq, error) {
	if err := lw.canRun(); err != nil {
		return 0, err
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.w.Submit(ctx, s)
}

// SubmitAll takes events in bulk; see world.World.SubmitAll.
func (lw *World) SubmitAll(ctx context.Context, all iter.Seq2[world.Submission, error]) (uint64, error) {
	if err := lw.canRun(); err != nil {
		return 0, err
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.w.SubmitAll(ctx, all)
}

// ErrNoKeys says that a world cannot go on because its keyring has no keys: it
// was imported without them.
var ErrNoKeys = errors.New("this world has no receipt keys, so it can be read but not run")

func (lw *World) canRun() error {
	if !lw.keys.CanSign() {
		return ErrNoKeys
	}
	return nil
}

// Step runs the next tick.
func (lw *World) Step(ctx context.Context) error {
	if err := lw.canRun(); err != nil {
		return err
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.w.Step(ctx)
}

// Next runs the next tick in which something can happen; false: it is idle.
func (lw *World) Next(ctx context.Context) (bool, error) {
	if err := lw.canRun(); err != nil {
		return false, err
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.w.Next(ctx)
}

// Run runs ticks until the world is idle or ctx ends.
func (lw *World) Run(ctx context.Context) error {
	for {
		if more, err := lw.Next(ctx); err != nil || !more {
			return err
		}
	}
}

// Receive takes a receipt made elsewhere for an effect in flight.
func (lw *World) Receive(data []byte) (world.Seq, error) {
	if err := lw.canRun(); err != nil {
		return 0, err
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.w.Receive(data)
}

// Resume lets a parked cell go on.
func (lw *World) Resume(ctx context.Context, cell reducer.Cell, how world.Resumption) error {
	if err := lw.canRun(); err != nil {
		return err
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.w.Resume(ctx, cell, how)
}

// View lets read look at the world while nothing changes it. What read gets
// must not be used after it returns.
func (lw *World) View(read func(*world.World) error) error {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return read(lw.w)
}

// Status returns where the world stands.
func (lw *World) Status() world.Status {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.w.Status()
}

// Dir returns the world's directory.
func (lw *World) Dir() string { return lw.dir }

// Keys returns the world's keyring.
func (lw *World) Keys() *receipt.Keyring { return lw.keys }

// Store returns the world's journal, for reading.
func (lw *World) Store() *store.Store { return lw.store }
