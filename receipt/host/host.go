// Package host performs effects: it takes the permits that a world released,
// asks the adapter of each effect's kind, and answers with signed receipts.
//
// # Adapters
//
// An adapter is a value with one method, Perform: it gets a [Call] and returns
// a [Result], which becomes the receipt. What the outside answered is a Result,
// also where it answered with an error (status error). A Go error means that
// nobody can tell what happened: no receipt is made and the effect stays in
// flight. Perform is called from several goroutines at once, must end when its
// context does, and must not keep or change the slices of a Call.
//
// A [Factory] makes one adapter for each effect of the manifest that names it,
// from the effect's config:
//
//	type dice struct{}
//
//	func (dice) Perform(_ context.Context, call host.Call) (host.Result, error) {
//		n := call.Permit.Key.Hash[0]%6 + 1
//		return host.Result{Status: receipt.StatusOK, Payload: receipt.Data{n}}, nil
//	}
//
//	func (dice) Deterministic() bool { return true }
//
//	host.Config{Adapters: map[string]host.Factory{
//		"dice": func(host.Setup) (host.Adapter, error) { return dice{}, nil },
//	}}
//
// In this version every adapter must declare itself [Deterministic]: the same
// permit gets the same result, always. Its receipts carry the world's calendar
// time, so the same permit gets the same receipt, byte for byte, and a world
// that was killed simply asks again. There are two, recorded and stub.
//
// # Adapter recorded
//
// config: {cassette: FILE}. A cassette is JSON lines, blank ones ignored:
//
//	{"cell": "agent/7", "kind": "tool.lookup", "params": {"id": 3}, "payload": {"name": "Ann"}}
//	{"cell": "agent/7", "kind": "tool.lookup", "params": {"id": 4}, "status": "error", "payload": "no such id"}
//
//	cell, kind, params   what asked, and what it asked for; params equal the
//	                     intent's as data, so 1 is not 1.0
//	occurrence           which one of the equal intents in the cell's history
//	                     this answers, from 0; lines without it count up in the
//	                     order of the file
//	status               "ok" (without it) or "error"
//	payload              the receipt's
//
// What the cassette does not hold is a [MissError].
//
// # Adapter stub
//
// config: {answers: FILE} or {script: FILE}. Answers are JSON lines as well:
//
//	{"kind": "tool.lookup", "params": {"id": 3}, "payload": {"name": "Ann"}}
//	{"kind": "tool.lookup", "status": "error", "payload": "no such id"}
//
// A line without params answers all params that no other line of its kind
// answers; what no line answers is a MissError. A script is Starlark:
//
//	def answer(kind, params, n):
//	    if n > 2:
//	        return error("tired")   # a receipt of status error with this payload
//	    return {"name": "Ann", "asked": n}
//
// n is the occurrence as in a cassette. The language is that of reducer/star,
// bound by the default limits of a reducer's step but for the size of the
// answer; nothing is kept between calls. A script must not define error and
// reduce itself.
package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Adapter performs the effects of one kind. It must be safe for concurrent use.
type Adapter interface {
	Perform(ctx context.Context, call Call) (Result, error)
}

// Deterministic is implemented by adapters that can promise that the result
// depends on nothing but the permit and the manifest.
type Deterministic interface {
	Deterministic() bool
}

// Factory makes the adapter of one effect.
type Factory func(effect Setup) (Adapter, error)

// Setup is what a manifest says about an effect.
type Setup struct {
	Kind   string
	Config manifest.Data                          // a map, or empty
	File   func(configKey string) ([]byte, error) // content of the file that config names there; must not be changed
}

// Decode parses the config into a struct by its cbor tags. Keys without a
// field are errors.
func (s Setup) Decode(v any) error {
	if len(s.Config) == 0 {
		return nil
	}
	if err := canon.UnmarshalTrusted(s.Config, v); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	return nil
}

// Call is one attempt to perform.
type Call struct {
	Permit   receipt.Permit
	External string // idempotency key for the outside; the same for all attempts
}

// Result is what the outside answered.
type Result struct {
	Status  receipt.Status // ok, error or timeout; others are the kernel's to give
	Payload receipt.Data   // canonical; empty: null
	Cost    receipt.Cost
}

// DefaultWorkers is how many effects are performed at once where Config does
// not say.
const DefaultWorkers = 8

// Config says what a Host performs, and how.
type Config struct {
	World    string // the world's id
	Manifest *manifest.Manifest
	Content  func(manifest.Hash) ([]byte, error) // the contents that Manifest names
	Keys     *receipt.Keyring                    // of World; signs
	Adapters map[string]Factory                  // by name; besides recorded and stub, or instead of them
	Workers  int                                 // below 1: DefaultWorkers
}

// New returns a running Host for the effects of a manifest; Close ends it. The
// error names every effect that cannot be performed.
func New(cfg Config) (*Host, error) {
	if !cfg.Keys.CanSign() || cfg.Keys.World() != cfg.World {
		return nil, fmt.Errorf("host: the keyring cannot sign for world %s", cfg.World)
	}
	if cfg.Workers <= 0 {
		cfg.Workers = DefaultWorkers
	}
	factories := map[string]Factory{"recorded": newRecorded(), "stub": newStub()}
	maps.Copy(factories, cfg.Adapters)
	contents := make(map[manifest.Hash][]byte) // read once, however many effects name them
	adapters := make(map[string]Adapter, len(cfg.Manifest.Effects))
	var faults []error
	for _, kind := range slices.Sorted(maps.Keys(cfg.Manifest.Effects)) {
		effect := cfg.Manifest.Effects[kind]
		a, err := build(factories, effect, Setup{Kind: kind, Config: effect.Config, File: func(key string) ([]byte, error) {
			return cfg.file(effect, key, contents)
		}})
		if err != nil {
			faults = append(faults, fmt.Errorf("host: effect %s: %w", kind, err))
			continue
		}
		adapters[kind] = a
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return start(cfg, adapters), nil
}

// ErrLive says that an adapter is not deterministic.
var ErrLive = errors.New("it is not deterministic, and live adapters are not available in this version")

func build(factories map[string]Factory, effect manifest.Effect, s Setup) (Adapter, error) {
	factory, ok := factories[effect.Adapter]
	if !ok {
		return nil, fmt.Errorf("there is no adapter %q, only %q", effect.Adapter, slices.Sorted(maps.Keys(factories)))
	}
	a, err := factory(s)
	if err != nil {
		return nil, fmt.Errorf("adapter %s: %w", effect.Adapter, err)
	}
	if d, ok := a.(Deterministic); !ok || !d.Deterministic() {
		return nil, fmt.Errorf("adapter %s: %w", effect.Adapter, ErrLive)
	}
	return a, nil
}

func (cfg *Config) file(effect manifest.Effect, key string, contents map[manifest.Hash][]byte) ([]byte, error) {
	name, ok := effect.Files[key]
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
