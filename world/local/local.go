// Package local opens a world directory: it wires the store, the keyring, the
// manifest, the reducers and the host into a World.
//
// A world directory holds world.yaml, the sources that it names, and .world/:
//
//	store/    the journal and what is derived from it (package world/store)
//	anchor    where the journal was when it was last acknowledged
//	keyring   the receipt keys, readable by the owner only
//	effects   results of live effects that the journal does not hold yet
//	secrets/  values of secret://NAME, a file each; made by people
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
	"time"

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
	effectsFile  = "effects"
	secretsDir   = "secrets"
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

	Verifiers map[string]host.VerifierFactory // likewise, by names of adapters

	// Passphrase is asked for when a sealed keyring has to be opened, or sealed;
	// nil: ErrSealed. What it returns must not change afterwards.
	Passphrase func() ([]byte, error)

	Secrets func(name string) (string, error) // values of secret://NAME; nil: the environment and .world/secrets, see host.Secrets
	Effects string                            // directory of a world whose receipts answer all effects; empty: the adapters do
	Workers int                               // effects performed at once; 0: host.DefaultWorkers
	Lease   time.Duration                     // see host.Config; 0: its default
	Grace   time.Duration                     // likewise
}

// World is a world in a directory, owned by this process. It is safe for
// concurrent use: calls take turns.
type World struct {
	mu     sync.Mutex
	dir    string
	hidden string // where the store is
	w      *world.World
	store  *store.Store
	host   *host.Host
	keys   *receipt.Keyring
	opts   Options

	passphrase []byte // the keyring is sealed with it; nil: it is not sealed
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
	path := filepath.Join(hidden, keyringFile)
	r, err := readKeyring(path, opts)
	if err != nil {
		return nil, err
	}
	s, err := openStore(hidden, r.keys, opts, store.Open)
	if err != nil {
		return nil, err
	}
	if r, err = settle(path, r, opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &World{dir: dir, hidden: hidden, store: s, keys: r.keys, opts: opts, passphrase: r.passphrase}, nil
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
			cfg := hostConfig(lw.dir, lw.opts)
			cfg.World, cfg.Manifest, cfg.Content, cfg.Keys = id, m, lw.store.Blob, lw.keys
			cfg.EffectLog = filepath.Join(lw.hidden, effectsFile)
			var err error
			if lw.opts.Effects != "" {
				if cfg.Recording, err = recording(lw.opts.Effects, lw.opts); err != nil {
					return nil, err
				}
			}
			if lw.host, err = host.New(cfg); err != nil {
				return nil, err
			}
			return lw.host, nil
		},
	}
}

// hostConfig is what a host gets from a program and a directory.
func hostConfig(dir string, opts Options) host.Config {
	cfg := host.Config{
		Dir: dir, Secrets: opts.Secrets, Adapters: opts.Adapters, Verifiers: opts.Verifiers,
		Workers: opts.Workers, Lease: opts.Lease, Grace: opts.Grace,
	}
	if cfg.Secrets == nil {
		cfg.Secrets = host.Secrets(filepath.Join(dir, hiddenDir, secretsDir))
	}
	return cfg
}

// abandon lets go of what has been opened.
func (lw *World) abandon() error {
	var err error
	if lw.host != nil {
		err = lw.host.Close()
	}
	return errors.Join(err, lw.store.Close())
}

// Close checkpoints the world, so that opening it is fast, and gives it up.
func (lw *World) Close() error {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.host == nil {
		return errors.Join(lw.w.Checkpoint(), lw.abandon())
	}
	var given error
	if lw.opts.Effects != "" {
		given = lw.host.GiveBack(lw.w.InFlight())
	}
	// The host first: what it still finishes is kept in the effect store.
	closed := lw.host.Close()
	return errors.Join(given, closed, lw.w.Checkpoint(), lw.store.Close())
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

// Next does what can be done without waiting for the outside; see
// world.World.Next.
func (lw *World) Next(ctx context.Context) (world.Progress, error) {
	if err := lw.canRun(); err != nil {
		return world.Idle, err
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return lw.w.Next(ctx)
}

// Sync makes durable what Next has brought about so far.
func (lw *World) Sync() error { return lw.change(lw.w.Sync) }

// Wait blocks until the outside has brought an answer, or ctx ends. Other calls
// may be made meanwhile.
func (lw *World) Wait(ctx context.Context) error {
	if err := lw.canRun(); err != nil {
		return err
	}
	return lw.host.Wait(ctx)
}

// Run runs ticks until the world is idle or ctx ends. Other calls may be made
// while it waits for the outside.
func (lw *World) Run(ctx context.Context) error {
	for {
		p, err := lw.Next(ctx)
		if err == nil && p == world.Waiting {
			err = lw.Wait(ctx)
		}
		if err != nil || p == world.Idle {
			return err
		}
	}
}

// Emit takes an effect that a person asks for, and returns its key; see
// world.World.Emit.
func (lw *World) Emit(ctx context.Context, b world.OperatorEffect) (key receipt.Key, err error) {
	err = lw.change(func() error {
		key, err = lw.w.Emit(ctx, b)
		return err
	})
	return key, err
}

// Resolve takes a person's decision about an intent; see world.World.Resolve.
func (lw *World) Resolve(ctx context.Context, b world.Resolved) error {
	return lw.change(func() error { return lw.w.Resolve(ctx, b) })
}

// Confirm compares recorded results with the outside; see world.World.Confirm.
func (lw *World) Confirm(ctx context.Context) (done world.Confirmation, err error) {
	err = lw.change(func() error {
		done, err = lw.w.Confirm(ctx)
		return err
	})
	return done, err
}

// ConfirmByHand takes a person's word that a recorded result holds.
func (lw *World) ConfirmByHand(ctx context.Context, key receipt.Key, actor, reason string) error {
	return lw.change(func() error { return lw.w.ConfirmByHand(ctx, key, actor, reason) })
}

// change lets f change the world, if that can run.
func (lw *World) change(f func() error) error {
	if err := lw.canRun(); err != nil {
		return err
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	return f()
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

// HostStats counts what the world's host has done.
func (lw *World) HostStats() host.Stats { return lw.host.Stats() }

// Store returns the world's journal, for reading.
func (lw *World) Store() *store.Store { return lw.store }
