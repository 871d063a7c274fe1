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
	"fmt"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Adapter performs the effects of one kind. It must be safe for concurrent use.
type Adapter interface {
	// Perform makes one attempt. It must end when ctx does. An error means that
	// nobody can tell what happened, and says why; what the outside answered, and
	// what surely did not happen, is a Result.
	Perform(ctx context.Context, call Call) (Result, error)
}

// Deterministic is implemented by adapters that can promise that the result
// depends on nothing but the permit and the manifest. Without it an adapter is
// live.
type Deterministic interface {
	Deterministic() bool
}

// Verifier asks the outside about effects of one kind. It must be safe for
// concurrent use, and changes nothing outside.
type Verifier interface {
	// Verify tells whether an attempt in doubt happened.
	Verify(ctx context.Context, call Call) (world.Found, error)
	// Confirm tells whether the outside still is what a receipt says.
	Confirm(ctx context.Context, r *receipt.Receipt) (world.Found, error)
}

// Factory makes the adapter of one effect. It touches nothing outside: that is
// for Perform.
type Factory func(effect Setup) (Adapter, error)

// VerifierFactory makes the verifier of one effect, under the rules of Factory.
type VerifierFactory func(effect Setup) (Verifier, error)

// Setup is what a manifest says about an effect.
type Setup struct {
	Kind   string
	Effect manifest.Effect
	Config manifest.Data                          // the adapter's or verifier's: a map, or empty
	File   func(configKey string) ([]byte, error) // content of the file that config names there; must not be changed
	Dir    string                                 // the world's directory: relative paths begin there

	// Secret returns the value of a reference such as "secret://NAME". What it
	// returns is kept out of results and errors: see secret.go. Call it when the
	// value is needed, not in a Factory.
	Secret func(reference string) (string, error)
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
	External string       // idempotency key for the outside
	Cap      manifest.Cap // the capability that allows it
}

// Result is what came of an attempt.
type Result struct {
	Status      receipt.Status  // ok, error, timeout or cancelled; others are the kernel's to give
	Class       receipt.Outcome // of a failure: retryable_failure or compensatable_failure; empty: permanent
	Unsent      bool            // nothing left this machine
	Payload     receipt.Data    // canonical; empty: null
	Cost        receipt.Cost    // without Calls
	ExternalRef string
	StateChange *receipt.StateChange
	RetryAfter  time.Duration // the outside asks to wait that long before the next attempt
}
