package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// Defaults of Config.
const (
	DefaultWorkers = 64
	DefaultCalls   = 16_384
	DefaultLease   = 10 * time.Second
	DefaultGrace   = 10 * time.Second
)

// Config says what a Host performs, and how.
type Config struct {
	World    string // the world's id
	Manifest *manifest.Manifest
	Content  func(manifest.Hash) ([]byte, error) // the contents that Manifest names
	Keys     *receipt.Keyring                    // of World; signs
	Dir      string                              // the world's directory: relative paths in configs begin there

	Secrets   func(name string) (string, error) // values of references; nil: there are none
	Adapters  map[string]Factory                // by name; besides those of this package, or instead of them
	Verifiers map[string]VerifierFactory        // likewise
	Recording *Recording                        // set: it answers every effect, and none is live
	Live      manifest.Live                     // but for effects of these kinds that Recording does not know: they are performed. With any, adapters that are Deterministic answer what it does not know
	Stubs     bool                              // but for effects whose adapters are Deterministic: these answer, whatever Recording knows
	Instead   map[string]Adapter                // by kind: what performs effects in the place of the manifest's adapters; deterministic
	Remote    bool                              // live effects are performed by workers in other processes: see Acquire

	// Missed is told of each attempt of a live effect, before it is made, if there is a
	// Recording: that does not know it. It must not call the Host. nil: nobody is told.
	Missed func(p receipt.Permit)

	// Fence is called right before an attempt of a live effect is made, with its
	// context, and returns that of the adapter. With an error the attempt is not
	// made, and its result says so. nil: nothing stands in the way.
	Fence func(ctx context.Context, p receipt.Permit) (context.Context, error)

	// UnderWay is told of each attempt of a live effect that this process makes, before it is begun; what it
	// returns is called when its result is safe, or will not be. Were the process to end in between, it would be
	// in doubt. One that only asks what came of something is none. nil: nobody is told.
	UnderWay func(p receipt.Permit) (ended func())

	// Egress is asked before each request of an http effect, those that it is
	// redirected to too: where it goes, and which secrets it holds. With an error it
	// is not made. nil: nothing stands in the way.
	Egress func(to *url.URL, secrets []string) error

	// Within bounds what making the adapters may take, whatever the manifest's scripts do
	// at their top level: of all of them together. nil: each has its engine's limits.
	Within *reducer.Bounds

	// Program is asked before each start of a program of an exec or mcp effect: its
	// path, which may be a link, and its arguments, in Dir. With an error it does not
	// start. nil: nothing stands in the way.
	Program func(path string, args []string) error

	// Withhold says why a live effect is not performed here, or a verifier, as an effect of its adapter, not
	// asked: nil where it is. Attempts of such an effect wait, as with Remote; of such a verifier nobody can
	// tell what became of an effect. nil: nothing is withheld.
	Withhold func(kind string, e *manifest.Effect) error

	EffectLog string        // file of the effect store
	Attempts  Attempts      // set: it is kept here instead of in a file; without either live effects are refused
	Workers   int           // effects performed at once; below 1: DefaultWorkers, or a sixteenth of the descriptors, and of those whose adapters are Waiting DefaultCalls, or a quarter
	Lease     time.Duration // how long after its timeout an attempt may take to end, and is a worker's elsewhere without Renew; 0: DefaultLease
	Grace     time.Duration // how long Close waits for live attempts; 0: DefaultGrace
}

// New returns a Host for the effects of a manifest; Close ends it. The error
// names every effect that cannot be performed. What the effect store holds of
// an earlier process waits for Recover.
func New(cfg Config) (*Host, error) {
	if !cfg.Keys.CanSign() || cfg.Keys.World() != cfg.World {
		return nil, fmt.Errorf("host: the keyring cannot sign for world %s", cfg.World)
	}
	if cfg.Lease <= 0 {
		cfg.Lease = DefaultLease
	}
	if cfg.Grace <= 0 {
		cfg.Grace = DefaultGrace
	}
	hidden := cfg.secrets()
	effects, faults := cfg.build(hidden)
	err := errors.Join(cfg.checkLive(effects), joined(faults))
	var h *Host
	if err == nil {
		h, err = start(cfg, effects, hidden, vfs.Default)
	}
	if err != nil {
		return nil, errors.Join(err, closeAll(effects))
	}
	return h, nil
}

// Check reports every effect whose adapter or verifier cannot be made, and
// touches nothing outside. Of cfg it needs Manifest, Content and Dir, and the
// Adapters and Verifiers of the program; Within where the manifest is somebody else's.
func Check(cfg Config) []*EffectError {
	effects, faults := cfg.build(cfg.secrets())
	_ = closeAll(effects) // nothing has begun
	return faults
}

// EffectError says why the adapter or the verifier of an effect cannot be made.
type EffectError struct {
	Kind     string
	Verifier bool
	Err      error
}

func (e *EffectError) Error() string { return "host: effect " + e.Kind + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *EffectError) Unwrap() error { return e.Err }

func joined(faults []*EffectError) (err error) {
	for _, fault := range faults {
		err = errors.Join(err, fault)
	}
	return err
}

// ErrLive says that an effect touches the outside and that neither Config.EffectLog nor
// Config.Attempts, one of which has to keep its results, is set.
var ErrLive = errors.New("it is live, and there is no effect store to keep its results")

func (cfg *Config) checkLive(effects map[string]*effect) error {
	var faults []error
	for _, kind := range slices.Sorted(maps.Keys(effects)) {
		if e := effects[kind]; e.performs() && !cfg.hasStore() {
			faults = append(faults, fmt.Errorf("host: effect %s: adapter %s: %w", kind, e.declared.Adapter, ErrLive))
		}
	}
	return errors.Join(faults...)
}

func (cfg *Config) hasStore() bool { return cfg.EffectLog != "" || cfg.Attempts != nil }

func (cfg *Config) secrets() *secrets {
	if cfg.Secrets != nil {
		return newSecrets(cfg.Secrets)
	}
	return newSecrets(func(string) (string, error) { return "", ErrNoSecret })
}

// build makes what the effects of the manifest need: all of it, or as much as
// it can and what is wrong with the rest.
func (cfg *Config) build(hidden *secrets) (map[string]*effect, []*EffectError) {
	network, common := newHTTPNetwork(), make(map[any]any)
	adapters := map[string]Factory{
		"recorded": newRecorded(), "stub": newStub(cfg.Manifest.Engines, cfg.Within), "file": newFile, "exec": newExec, "http": newHTTP(network),
	}
	maps.Copy(adapters, cfg.Adapters)
	verifiers := map[string]VerifierFactory{"file": newFileVerifier, "exec": newExecVerifier, "http": newHTTPVerifier(network)}
	maps.Copy(verifiers, cfg.Verifiers)
	contents := make(map[manifest.Hash][]byte) // read once, however many effects name them
	effects := make(map[string]*effect, len(cfg.Manifest.Effects))
	var faults []*EffectError
	for _, kind := range slices.Sorted(maps.Keys(cfg.Manifest.Effects)) {
		e := &effect{declared: cfg.Manifest.Effects[kind]}
		effects[kind] = e
		if cfg.Recording != nil {
			e.recorded = &recorded{cfg.Recording, e.declared.Means()}
		}
		if e.adapter = cfg.Instead[kind]; e.adapter != nil {
			continue
		}
		s := Setup{Kind: kind, Effect: e.declared, Dir: cfg.Dir, Secret: hidden.resolve, Shared: common, Program: cfg.Program, secrets: hidden, egress: cfg.Egress}
		s.Config, s.File = e.declared.Config, cfg.files(e.declared.Files, contents)
		a, err := build(adapters, "adapter", e.declared.Adapter, s)
		d, ok := a.(Deterministic)
		e.live = !ok || !d.Deterministic()
		answers := cfg.Stubs && !e.live
		if answers {
			e.recorded = nil
		}
		if e.asks = cfg.Live.Has(kind, &e.declared) || len(cfg.Live) > 0 && !e.live; e.recorded != nil && !e.asks { // then it matters only whether it would be live
			e.adapter = e.recorded
			continue
		}
		if e.adapter = a; err != nil {
			e.live = false
			faults = append(faults, &EffectError{Kind: kind, Err: err})
		} else {
			e.withheld = cfg.withheld(kind, e.live, &e.declared)
			w, ok := a.(Waiting)
			e.waits = ok && w.Waits()
		}
		if v := e.declared.Verify; v != nil && !answers { // a stub leaves no doubt, and the outside knows nothing of it
			s.Config, s.File = v.Config, cfg.files(v.Files, contents)
			if e.verifier, err = build(verifiers, "verifier", v.Adapter, s); err != nil {
				faults = append(faults, &EffectError{Kind: kind, Verifier: true, Err: err})
			} else if why := cfg.withheld(kind, true, &manifest.Effect{Adapter: v.Adapter, Config: v.Config, Files: v.Files}); why != nil {
				e.verifier = withheldVerifier{why}
			}
		}
	}
	return effects, faults
}

// withheld says why an effect is not performed here.
func (cfg *Config) withheld(kind string, live bool, e *manifest.Effect) error {
	if cfg.Withhold == nil || !live {
		return nil
	}
	return cfg.Withhold(kind, e)
}

// withheldVerifier is in the place of a verifier that is not to be asked here.
type withheldVerifier struct{ why error }

// Verify implements Verifier.
func (v withheldVerifier) Verify(context.Context, Call) (receipt.Found, error) {
	return receipt.Found{}, v.told()
}

// Confirm implements Verifier.
func (v withheldVerifier) Confirm(context.Context, Call, *receipt.Receipt) (receipt.Found, error) {
	return receipt.Found{}, v.told()
}

func (v withheldVerifier) told() error {
	return fmt.Errorf("its verifier is not asked by this process: %w", v.why)
}

func build[T any, F ~func(Setup) (T, error)](factories map[string]F, what, name string, s Setup) (made T, err error) {
	factory, ok := factories[name]
	if !ok {
		return made, &manifest.NoAdapterError{What: what, Name: name, Known: slices.Sorted(maps.Keys(factories))}
	}
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%s %s: its factory panicked: %v", what, name, fault)
		}
	}()
	if made, err = factory(s); err != nil {
		instead := ""
		if unknown := (*canon.UnknownFieldError)(nil); errors.As(err, &unknown) {
			instead = manifest.Instead(unknown.Name, unknown.Fields)
		}
		return made, fmt.Errorf("%s %s: %w%s", what, name, canon.Plain(err), instead)
	}
	if any(made) == nil {
		return made, fmt.Errorf("%s %s: its factory made none", what, name)
	}
	return made, nil
}

// anyLive reports whether the adapter of an effect touches the outside.
func anyLive(effects map[string]*effect) bool {
	for _, e := range effects {
		if e.live {
			return true
		}
	}
	return false
}

// files returns the File of a Setup.
func (cfg *Config) files(names map[string]manifest.Hash, contents map[manifest.Hash][]byte) func(string) ([]byte, error) {
	return func(key string) ([]byte, error) {
		name, ok := names[key]
		if !ok {
			return nil, fmt.Errorf("config.%s names no file", key)
		}
		if data, ok := contents[name]; ok {
			return data, nil
		}
		data, err := cfg.Content(name)
		if err != nil {
			return nil, fmt.Errorf("config.%s: %w", key, err)
		}
		contents[name] = data
		return data, nil
	}
}
