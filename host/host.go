// Package host performs effects: it takes the tasks that a world released, has
// the adapter of each effect's kind perform it, and answers with signed
// receipts. See [world.Host] for what a world expects of it.
//
// # Adapters
//
// An adapter is a value with one method, Perform: it gets a [Call], one attempt
// of an intent, and returns a [Result], which becomes the receipt. It is called
// from several goroutines at once and must not keep or change the slices of the
// Call. A [Factory] makes one adapter for each effect of the manifest that names
// it, from the effect's config:
//
//	type greeter struct{ url string }
//
//	func (g greeter) Perform(ctx context.Context, call host.Call) (host.Result, error)
//
//	host.Config{Adapters: map[string]host.Factory{
//		"greeter": func(s host.Setup) (host.Adapter, error) {
//			var config struct{ URL string `cbor:"url"` }
//			return greeter{config.URL}, s.Decode(&config)
//		},
//	}}
//
// An effect happens at most once because the Host calls Perform once for each
// attempt, ever, and because the ledger grants the next attempt only when the
// last one surely left nothing behind, or may be repeated. So all depends on
// Perform telling the truth about what it knows:
//
//   - The outside answered: a Result. Status ok, or error with what it said.
//     A failure is permanent unless Class says otherwise: retryable_failure
//     (nothing was left behind, or the effect is idempotent and may be done
//     again), or compensatable_failure (something was, and has to be made up
//     for).
//   - Nothing left this machine (params refused, no connection, no such program):
//     a Result with Unsent, which costs no call, and mostly with Class
//     retryable_failure; with Short where this process had no descriptor or
//     process left for it ([Short]): then it waits, and counts as no attempt.
//   - Anything else, such as a connection lost after the request: an error.
//     The attempt is in doubt, and the manifest's on_in_doubt decides what comes
//     next. Never guess: a wrong "nothing happened" is a second payment.
//
// Perform does not repeat by itself: a second try is an attempt of its own, with
// its own permit and receipt. It hands Call.External to an outside that can tell
// repetitions by it. It must end when its context does, which is at the effect's
// timeout, or when the Host closes: one that does not loses its lease
// (Config.Lease later) and counts as lost, though its result is still taken
// should it ever come. Adapters that are an [io.Closer] are closed with the Host.
//
// Secrets come from Setup.Secret, when they are needed. Their values are taken
// out of results and errors on the way to the journal.
//
// An adapter that declares itself [Deterministic] touches nothing outside: the
// same permit gets the same result, always. Its receipts carry the world's
// calendar time, so the same permit gets the same receipt, byte for byte, and a
// world that was killed simply asks again. An error of such an adapter stops the
// world. There are two, recorded and stub.
//
// # The effect store
//
// The result of a live effect is in the effect store before a world hears of it, and
// until its journal has it: a process that dies in between leaves it to the next one. It
// is synced, so that it outlives the machine as well, unless the journal has it soon
// (docs/adr/0040). The store is one file of frames, integers big-endian:
//
//	frame = checksum(4) length(4) place(8) body(length)
//
// checksum is CRC-32C of all that follows it, place the frame's own offset in
// the file. The body of the first frame is "worldkernel/effects/v1", a zero byte
// and the world's id; that of each other one is
//
//	durable(8) entry...
//	entry = key(32) attempt(8) length(4) receipt(length)
//
// durable is up to where the file was synced when the frame was written: what is torn
// behind that was never synced, and the frames around it count. What is torn before it
// is a [DamageError]. An entry without a receipt says that the attempt's result is in
// the journal. A large store that is mostly dead is written anew beside the old one and
// renamed over it.
//
// A world that another machine may take over has [Attempts] in the place of the file: there
// each attempt is begun, too, before it is performed (docs/adr/0048).
//
// # Workers in other processes
//
// A Host with [Config.Remote] hands its live attempts out, each once, to workers
// that ask for them, and performs the rest itself. A worker performs them with a
// Host of its own for the same manifest, which has an effect store of its own
// and a keyring for the world's id that nobody needs to know:
//
//	for each of own.Stored(): owner.Commit, own.Start(Forget)   // of an earlier process
//	owner.Acquire -> own.Start(Perform) -> own.Answers
//	each receipt: owner.Commit, own.Start(Forget)
//	each Lost: owner.Lose, and Renew no more
//	until then: owner.Renew, more often than Offer.Lease
//
// So a result is in one of the two stores at every moment. A lease that is not
// renewed runs out, and the attempt is lost as if its process had ended here; the
// result is still taken should it come. Nothing is handed out twice, not even
// what its worker never heard of.
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
//	status               "ok" (without it), "error", or "lost": nobody knows what
//	                     came of it, and the effect is in doubt
//	outcome              of an error: "retryable_failure" or
//	                     "compensatable_failure"; without it it is permanent
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
//	        return error("tired", outcome="retryable_failure")   # status error, with this payload
//	    return {"name": "Ann", "asked": n}
//
// n is the occurrence, and outcome the outcome, as in a cassette. The language
// is that of reducer/star, bound by the default limits of a reducer's step but
// for the size of the answer; nothing is kept between calls. A script must not
// define error and reduce itself.
package host

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
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

// Waiting is implemented by adapters that mostly wait for another machine to answer: many
// more of their attempts are made at once.
type Waiting interface {
	Waits() bool
}

// Accepting is implemented by adapters whose outside can accept work and end it later: their
// results may have the outcome accepted.
type Accepting interface {
	// Ask is called in the place of Perform once the outside has accepted the work
	// call.Permit.Accepted. It asks for the result, does nothing else, and may be called any
	// number of times. After a Result that is accepted, or retryable (the outside could not
	// be asked), it is called again later. An error means that the outside cannot be asked
	// any more.
	Ask(ctx context.Context, call Call) (Result, error)
}

// Verifier asks the outside about effects of one kind. It must be safe for
// concurrent use, and changes nothing outside.
type Verifier interface {
	// Verify tells whether an attempt in doubt happened. A NotHappened that is not
	// Final counts only when it is said after the effect's settles_after; until then
	// Verify is called again.
	Verify(ctx context.Context, call Call) (receipt.Found, error)
	// Confirm tells whether the outside still is what a receipt says. The call is
	// that of the attempt, without params.
	Confirm(ctx context.Context, call Call, r *receipt.Receipt) (receipt.Found, error)
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
	Shared map[any]any                            // of all factories of one Host, one at a time: for what their adapters have in common

	// Secret returns the value of a reference such as "secret://NAME". What it
	// returns is kept out of results and errors: see secret.go. Call it when the
	// value is needed, not in a Factory.
	Secret func(reference string) (string, error)

	// Program is to be asked right before a program starts, see Config; nil: any may.
	Program func(path string, args []string) error

	secrets *secrets                                  // nil: none of a Host's
	egress  func(to *url.URL, secrets []string) error // of Config
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

// Decode parses the params into a Go value by its cbor tags. Keys without a field
// are errors.
func (c Call) Decode(v any) error {
	if err := canon.UnmarshalTrusted(c.Permit.Params, v); err != nil {
		return fmt.Errorf("params: %w", err)
	}
	return nil
}

// Result is what came of an attempt.
type Result struct {
	Status      receipt.Status       `json:"status"`           // ok, error, timeout or cancelled; others are the kernel's to give
	Class       receipt.Outcome      `json:"class,omitempty"`  // of a failure: retryable_failure, compensatable_failure, input_required or accepted; empty: permanent
	Unsent      bool                 `json:"unsent,omitempty"` // nothing left this machine
	Short       bool                 `json:"-"`                // of one that is Unsent: for this process is Short. It is made again, and was no attempt
	Payload     receipt.Data         `json:"payload"`          // canonical; empty: null; of input_required a receipt.Question, of accepted a receipt.Accepted
	Cost        receipt.Cost         `json:"cost"`             // without Calls
	Exact       bool                 `json:"exact,omitempty"`  // what Cost does not name was not used; else what was reserved for it stays so
	ExternalRef string               `json:"external_ref,omitempty"`
	StateChange *receipt.StateChange `json:"state_change,omitempty"`
	RetryAfter  time.Duration        `json:"-"` // the outside asks to wait that long before the next attempt
}

// OK is the Result of an attempt that succeeded, with a Go value that is told to the
// cell. An error says that the value has no canonical form.
func OK(payload any) (Result, error) {
	data, err := canon.Marshal(payload)
	return Result{Status: receipt.StatusOK, Payload: data}, err
}

// Refused is the Result of an attempt that was not made, for it could not be: nothing
// left this machine, and the cell is told {code, error}. A secret that is not to be
// had is not there at the next attempt either, unless the machine was short of
// something when it was looked for.
func Refused(err error) Result {
	code, reason, class := governance.CodeBadParams, err.Error(), receipt.Outcome("")
	var denied *governance.CapError
	switch {
	case errors.As(err, &denied):
		code, reason = denied.Code, denied.Reason
	case errors.As(err, new(*SecretError)):
		code = "no_secret"
		if transient(err) {
			class = receipt.OutcomeRetryableFailure
		}
	}
	return Result{
		Status: receipt.StatusError, Class: class, Unsent: true, Short: Short(err),
		Payload: failure(string(code), strings.ToValidUTF8(reason, "\uFFFD")),
	}
}
