package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/trust"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/inlog"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
)

// Options say how a world is opened. The zero value opens worlds whose
// reducers are all in Starlark.
type Options struct {
	Reducers reducer.Registry        // in Go
	Adapters map[string]host.Factory // adapters besides the built-in ones
	Paranoid bool                    // run every reduction twice and compare
	Fatal    func(error)             // ends the process where Pebble cannot go on; see store.Options

	// Log returns the log that the world's journal lies in, anew for each time that it is opened, for
	// who has a key that no other world has; nil: for who only reads what needs none.
	// The directory has the rest, and in Copy, or where that is empty beside it, a copy that may be
	// lost; see store.Options. One that is host.Attempts keeps the world's attempts, too, and one that
	// is a KeyringLog the keyring, where that is sealed: then all of the directory may be lost. Nil: the
	// directory has the journal.
	Log  func(key []byte) (journal.Log, error)
	Copy string

	directory bool // that has the journal, whatever tests say

	// Life is what the world in memory lives within, from when it is opened: when it ends, so does that,
	// amid a step too, which is thrown away. Nil: nothing ends it.
	Life context.Context

	// Temporary makes a directory as os.MkdirTemp does, and returns what removes it, for what is only
	// needed for a while; nil: os.MkdirTemp.
	Temporary func(pattern string) (dir string, remove func() error, err error)

	moving string // what the world may be marked with, that is being moved; see MovedError

	Verifiers map[string]host.VerifierFactory // likewise, by names of adapters

	// Passphrase is asked for when a sealed keyring has to be opened, or sealed;
	// nil: ErrSealed. What it returns must not change afterwards.
	Passphrase func() ([]byte, error)
	// Sealing is shared by worlds that are sealed with one salt; nil: each has one of its own.
	Sealing *Sealing

	// Trust is what is performed for the world; nil: all that its manifest says. With TrustFound that is also
	// what the manifest says which is in force when the world is opened, and what Apply puts in force later. Attempts of other
	// effects wait: Withheld is told of each such kind, under each manifest, with the reason. It must not call the World; nil: nobody is told.
	Trust      *trust.Trust
	TrustFound bool
	Withheld   func(world, kind string, why error)

	Secrets    func(name string) (string, error) // values of secret://NAME; nil: the environment and .world/secrets, see host.Secrets
	Effects    string                            // directory of a world whose receipts answer all effects; empty: the one in .world/recorded, else the adapters do
	Missed     func(*host.MissError)             // told, from any goroutine, of the first effect that is performed because nothing recorded answers it, before it is; nil: nobody is. It must not call the World
	UnderWay   func(receipt.Permit) func()       // told of each attempt that this process makes, see host.Config; nil: nobody is
	asked      journal.Seq                       // with Effects: what is not asked for there up to this record is performed where live has its kind; 0: nothing is
	live       manifest.Live                     // with asked
	Instead    map[string]host.Adapter           // by kind: what performs effects in the place of the adapters; see host.Config
	Workers    int                               // effects performed at once; 0: host.DefaultWorkers
	Memory     int                               // bytes that cells and intents take before those that nobody uses are left to the store; 0: world.DefaultMemory
	Checkpoint journal.Seq                       // records between two checkpoints; 0: world.DefaultCheckpointRecords
	Grace      time.Duration                     // see host.Config; 0: its default
	Remote     bool                              // live effects wait for workers in other processes: see AcquireEffects
	Still      bool                              // live effects are left to the process that opens the world next: Close gives them back
	Bounds     Bounds                            // of rules that nobody here has put in force
	Scratch    bool                              // the world is thrown away: nobody waits for the disk, and a crash may take it
	stubs      bool                              // with Effects: deterministic adapters answer themselves; see host.Config
	jumps      bool                              // a real clock goes as a simulated one does: see Supposed
	Clock      Clock                             // of worlds whose clock is real; nil: the machine's
	Lease      time.Duration                     // of what such a worker has acquired, see host.Config; 0: its default
}

// within are the options of a world that ends with ctx.
func (o Options) within(ctx context.Context) Options {
	o.Life = ctx
	return o
}

// MakeTemporary makes a directory for what is only needed for a while.
func (o Options) MakeTemporary(pattern string) (dir string, remove func() error, err error) {
	if o.Temporary != nil {
		return o.Temporary(pattern)
	}
	dir, err = os.MkdirTemp("", pattern)
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// inDirectory are the options of a world whose directory has the journal.
func (o Options) inDirectory() Options {
	o.Log, o.Copy, o.directory = nil, "", true
	return o
}

// tested are the options with the log that tests have a world lie in whose options name none.
func (o Options) tested(hidden string, making bool) Options {
	if inlog.Of != nil && o.Log == nil && !o.directory {
		o.Log = inlog.Of(hidden, making)
	}
	return o
}

func (lw *World) config() world.Config {
	return world.Config{
		Journal: lw.store, History: lw.store, Keys: lw.verifyKeys(), Registry: lw.opts.Reducers, Paranoid: lw.opts.Paranoid,
		Images: lw.store, Memory: cmp.Or(lw.opts.Memory, world.DefaultMemory), CheckpointRecords: lw.opts.Checkpoint, Now: lw.opts.wall(), Performs: lw.canPerform, Bounds: lw.opts.Bounds.withDefaults().Bounds, Life: lw.lifetime(),
		NewHost: func(id string, m *manifest.Manifest) (world.Host, error) {
			next, err := newEdition(m)
			if err == nil {
				err = lw.beginTrust(m)
			}
			if err != nil {
				return nil, err
			}
			if lw.looks || !lw.keys.CanSign() || lw.opts.Reducers.Lacks(m) != nil {
				lw.edition.Store(next)
				return nil, nil // nothing will be started: see canRun
			}
			cfg := hostConfig(lw.dir, lw.opts)
			if lw.trust != nil {
				lw.trust.Bind(&cfg)
			}
			cfg.World, cfg.Manifest, cfg.Content, cfg.Keys = id, m, lw.store.Blob, lw.keys
			cfg.EffectLog = filepath.Join(lw.hidden, effectsFile)
			cfg.Attempts, _ = lw.store.Log().(host.Attempts)
			if lw.opts.Effects != "" {
				lw.past, err = recording(lw.opts.Effects, lw.opts)
				if errors.Is(err, ErrNoWorld) {
					err = fmt.Errorf("%w: %w", ErrNoRecording, err)
				}
				if err != nil {
					return nil, err
				}
				cfg.Recording, cfg.Live, cfg.Stubs, cfg.Missed = lw.past.Recording, lw.opts.live, lw.opts.stubs, lw.missing(lw.past.Recording, m)
			}
			if lw.host != nil { // another manifest is in force now
				if err := lw.host.Close(); err != nil {
					return nil, err
				}
			}
			made, err := host.New(cfg)
			if lw.w == nil && errors.As(err, new(*manifest.NoAdapterError)) {
				lw.lacks = err
				lw.edition.Store(next)
				return nil, nil // likewise
			}
			if err != nil {
				return nil, err
			}
			lw.host, next.host = made, made
			lw.tellWithheld(id, m)
			lw.edition.Store(next)
			return made, nil
		},
	}
}

// missing returns what a host tells of the effects that nothing recorded answers.
func (lw *World) missing(r *host.Recording, m *manifest.Manifest) func(receipt.Permit) {
	return func(p receipt.Permit) {
		if lw.missed.Add(1) == 1 && lw.opts.Missed != nil {
			e := m.Effects[p.Kind]
			lw.opts.Missed(r.Miss(&p, &e))
		}
	}
}

// Missed returns how many attempts were made since the world was opened because nothing
// recorded answers them.
func (lw *World) Missed() uint64 { return lw.missed.Load() }

// HostStats counts what the world's host has done.
func (lw *World) HostStats() host.Stats { return lw.performer().Stats() }

// LiveBeside returns the directory of the world whose recordings answer the effects of this world,
// if effects without a recorded answer are performed. It is empty if recordings answer all effects, or none.
func (lw *World) LiveBeside() string {
	if len(lw.opts.live) == 0 {
		return ""
	}
	return lw.opts.Effects
}

// Performs returns the kinds of effects, by name, that are performed outside: where
// recordings answer, those that they may not know.
func (lw *World) Performs() (kinds []string) {
	lw.View(func(w *world.Moment) {
		for _, kind := range slices.Sorted(maps.Keys(w.Manifest().Effects)) {
			if lw.host != nil && lw.host.Performs(kind) {
				kinds = append(kinds, kind)
			}
		}
	})
	return kinds
}

// hostConfig is what a host gets from a program and a directory.
func hostConfig(dir string, opts Options) host.Config {
	cfg := host.Config{
		Dir: dir, Secrets: opts.Secrets, Adapters: opts.Adapters, Verifiers: opts.Verifiers, Instead: opts.Instead,
		Workers: opts.Workers, Grace: opts.Grace, Lease: opts.Lease, UnderWay: opts.UnderWay,
		Remote: opts.Remote || opts.Still, // nobody asks a world that is Still for what waits
	}
	if cfg.Secrets == nil {
		cfg.Secrets = host.Secrets(filepath.Join(dir, hiddenDir, secretsDir))
	}
	return cfg
}
