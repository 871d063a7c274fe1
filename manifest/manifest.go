// Package manifest is the control plane of a world as data: which reducers,
// events, effects, capabilities, policies, routes and limits are in force.
//
// A Manifest's bytes are its canonical CBOR, a map with the keys of the struct
// tags below; its [Hash] is the SHA-256 of those bytes. Whatever a manifest
// names (Starlark sources, schemas, cassettes) it names by content hash; the
// contents are blobs of the world. Every default is filled in before hashing,
// so that a later binary with other defaults runs an old world unchanged.
package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Hash names a manifest, or a content that a manifest refers to: SHA-256.
type Hash = canon.Hash

// Data is a canonical CBOR item; it prints as JSON.
type Data = canon.Raw

// Manifest is everything that is configurable about a world. The zero value is
// a manifest without reducers, which no world can be made of; see Validate.
type Manifest struct {
	World      string             `cbor:"world" json:"world"`
	Version    uint64             `cbor:"version" json:"version"`
	Seed       uint64             `cbor:"seed" json:"seed"`
	Clock      Clock              `cbor:"clock" json:"clock"`
	Reducers   map[string]Reducer `cbor:"reducers" json:"reducers"`
	Events     map[string]Event   `cbor:"events" json:"events"`
	Effects    map[string]Effect  `cbor:"effects,omitempty" json:"effects,omitempty"`
	Caps       map[string]Cap     `cbor:"caps,omitempty" json:"caps,omitempty"`
	Policies   []Policy           `cbor:"policies,omitempty" json:"policies,omitempty"`
	Routing    []Route            `cbor:"routing,omitempty" json:"routing,omitempty"`
	Budget     Budget             `cbor:"budget,omitzero" json:"budget,omitzero"` // of the whole world
	Defaults   Defaults           `cbor:"defaults" json:"defaults"`
	Limits     Limits             `cbor:"limits" json:"limits"`
	Governance Governance         `cbor:"governance,omitzero" json:"governance,omitzero"` // of changes to all this
	Engines    Engines            `cbor:"engines,omitempty" json:"engines,omitempty"`     // that run all this
}

// What happens to a cell's mailbox when its reducer fails.
const (
	OnErrorHalt = "halt" // the cell stops before the event; a person resumes it
	OnErrorSkip = "skip" // the event is dropped and the mailbox goes on
)

// Reducer declares a kind of cell: its code, and its rights.
type Reducer struct {
	Engine  string          `cbor:"engine" json:"engine"`
	File    string          `cbor:"file,omitempty" json:"file,omitempty"`       // the source's path, for messages
	Source  Hash            `cbor:"source,omitzero" json:"source,omitzero"`     // the source's content
	Modules map[string]Hash `cbor:"modules,omitempty" json:"modules,omitempty"` // contents of all that is loaded, by the names that load gives them
	Params  Data            `cbor:"params,omitzero" json:"params,omitzero"`     // what the reducer is given, a map
	Name    string          `cbor:"name,omitempty" json:"name,omitempty"`       // go: as registered
	Version string          `cbor:"version,omitempty" json:"version,omitempty"` // go: as registered
	Grants  []string        `cbor:"grants,omitempty" json:"grants,omitempty"`   // capabilities, tried in this order
	OnError string          `cbor:"on_error" json:"on_error"`
	Budget  Budget          `cbor:"budget,omitzero" json:"budget,omitzero"` // of each cell
	Limits  ReducerLimits   `cbor:"limits" json:"limits"`
}

// Code returns the contents of the source and of all modules, by their names.
func (r *Reducer) Code() map[string]Hash {
	files := make(map[string]Hash, len(r.Modules)+1)
	maps.Copy(files, r.Modules)
	files[r.File] = r.Source
	return files
}

// Event declares an event that may be submitted or emitted.
type Event struct {
	File   string `cbor:"file,omitempty" json:"file,omitempty"`   // the schema's path, for messages
	Schema Hash   `cbor:"schema,omitzero" json:"schema,omitzero"` // a JSON Schema's content; zero: any data
}

// Effect declares a kind of effect: its adapter, and the answers to failure.
type Effect struct {
	Adapter      string          `cbor:"adapter" json:"adapter"`
	ParamsFile   string          `cbor:"params_file,omitempty" json:"params_file,omitempty"`   // the path of Params, for messages; empty where it stands in the world file
	Params       Hash            `cbor:"params,omitzero" json:"params,omitzero"`               // content of a JSON Schema of the params; zero: any
	Config       Data            `cbor:"config,omitzero" json:"config,omitzero"`               // the adapter's own, a map
	Files        map[string]Hash `cbor:"files,omitempty" json:"files,omitempty"`               // contents of the files that Config names, by its key
	Timeout      int64           `cbor:"timeout" json:"timeout"`                               // nanoseconds, of one attempt
	Class        string          `cbor:"class,omitempty" json:"class,omitempty"`               // ClassRead, ClassWrite, ClassDestructive or empty; for policies, and for what a rollback lists
	Idempotent   bool            `cbor:"idempotent,omitempty" json:"idempotent,omitempty"`     // the outside does it once, however often it is asked under one external key
	ExternalKey  string          `cbor:"external_key,omitempty" json:"external_key,omitempty"` // ExternalPerAttempt, or empty: one for all attempts
	Retry        Retry           `cbor:"retry" json:"retry"`
	OnInDoubt    string          `cbor:"on_in_doubt" json:"on_in_doubt"`
	SettlesAfter int64           `cbor:"settles_after,omitempty" json:"settles_after,omitempty"` // nanoseconds after which an attempt in doubt cannot arrive outside any more; 0: Timeout
	OnRepeat     string          `cbor:"on_repeat,omitempty" json:"on_repeat,omitempty"`         // empty, as it was before there was this key: RepeatAsk
	Verify       *Verify         `cbor:"verify,omitempty" json:"verify,omitempty"`
	Compensate   *Compensate     `cbor:"compensate,omitempty" json:"compensate,omitempty"`
	MaxCost      MaxCost         `cbor:"max_cost,omitzero" json:"max_cost,omitzero"` // set aside before it starts
	Rate         Rate            `cbor:"rate,omitzero" json:"rate,omitzero"`         // zero: attempts of the kind start as they come
}

// Classes of effects.
const (
	ClassRead        = "read"
	ClassWrite       = "write"
	ClassDestructive = "destructive"
)

// Settles returns the nanoseconds after which an attempt that nobody has an answer
// to cannot arrive outside any more.
func (e *Effect) Settles() int64 { return cmp.Or(e.SettlesAfter, e.Timeout, DefaultTimeout) }

// ExternalPerAttempt is the value of Effect.ExternalKey that gives every attempt
// an external key of its own.
const ExternalPerAttempt = "per_attempt"

// Retry says how often an effect is attempted whose failure left nothing behind.
type Retry struct {
	Attempts uint64 `cbor:"attempts" json:"attempts"` // the first one included
	Backoff  int64  `cbor:"backoff" json:"backoff"`   // nanoseconds before the second; doubled before each further one
}

// The answers to an effect in doubt.
const (
	InDoubtAsk    = "ask"    // a person decides
	InDoubtVerify = "verify" // the verifier asks the outside; where it cannot tell, a person decides
	InDoubtRetry  = "retry"  // attempt it again under the same external key; idempotent effects only
	InDoubtFail   = "fail"   // it counts as failed
)

// What is done with an intent that equals, by cell, kind and params but not by
// key, a side effect that a rollback left behind.
const (
	RepeatAsk   = "ask"   // a person decides
	RepeatReuse = "reuse" // it gets the result of what was left behind
	RepeatRun   = "run"   // it is performed once more
)

// Verify names who can tell what became of an effect, and what is done when
// the outside is not what a recorded receipt says.
type Verify struct {
	Adapter string          `cbor:"adapter" json:"adapter"`
	Config  Data            `cbor:"config,omitzero" json:"config,omitzero"`
	Files   map[string]Hash `cbor:"files,omitempty" json:"files,omitempty"`
	Mode    string          `cbor:"mode" json:"mode"`
}

// Modes of Verify.
const (
	VerifyStrict = "strict" // the intent fails for good
	VerifyWarn   = "warn"   // it is recorded, counted, and the world goes on
	VerifyHuman  = "human"  // the intent awaits confirmation by a person
)

// Compensate names the effect that undoes the remains of a failed effect.
type Compensate struct {
	Kind   string `cbor:"kind" json:"kind"`     // a key of Effects
	Params string `cbor:"params" json:"params"` // CEL over receipt and intent: its params
}

// MaxCost is the most that one attempt of an effect can cost, but for its call. A unit
// that is nil is one of which the effect does not say; 0: it uses none.
type MaxCost struct {
	Calls  uint64  `cbor:"calls,omitempty" json:"calls,omitempty"` // 0: an attempt is one
	Tokens *uint64 `cbor:"tokens,omitempty" json:"tokens,omitempty"`
	Bytes  *uint64 `cbor:"bytes,omitempty" json:"bytes,omitempty"`
	Micros *uint64 `cbor:"micros,omitempty" json:"micros,omitempty"`
}

// Rate bounds how often attempts start: in any Per ticks in a row at most Calls do.
type Rate struct {
	Calls uint64 `cbor:"calls" json:"calls"`
	Per   Tick   `cbor:"per" json:"per"`
}

// Budget bounds what effects use up. A unit that is 0 is not bounded.
type Budget struct {
	Calls  uint64 `cbor:"calls,omitempty" json:"calls,omitempty"` // started attempts
	Tokens uint64 `cbor:"tokens,omitempty" json:"tokens,omitempty"`
	Bytes  uint64 `cbor:"bytes,omitempty" json:"bytes,omitempty"`
	Micros uint64 `cbor:"micros,omitempty" json:"micros,omitempty"` // millionths of a unit of money

	// The budget renews in every tick that is a multiple of it; 0: never.
	Per Tick `cbor:"per,omitempty" json:"per,omitempty"`
}

// Types of capabilities. Each but CapAny fits the effects whose adapter has
// its name.
const (
	CapAny  = "any"
	CapHTTP = "http"
	CapLLM  = "llm"
	CapMCP  = "mcp"
	CapFile = "file"
	CapExec = "exec"
)

// AdapterRelay is the adapter that passes on the model calls of agents: a capability of type
// CapLLM fits its effects.
const AdapterRelay = "relay"

// AdapterOutside is the adapter of calls that a program beside the world makes once they are permitted: a
// capability of type CapMCP fits its effects.
const AdapterOutside = "outside"

// Adapters returns the names of the adapters that are built in and touch the outside, of which each is
// a type of capability, too.
func Adapters() []string { return []string{CapHTTP, CapLLM, CapMCP, CapFile, CapExec} }

// Cap is a capability: a right to effects, given to reducers by their grants.
type Cap struct {
	Type    string    `cbor:"type" json:"type"`
	Params  CapParams `cbor:"params" json:"params"`
	Budget  Budget    `cbor:"budget,omitzero" json:"budget,omitzero"`     // of all who hold it together
	Expires Tick      `cbor:"expires,omitempty" json:"expires,omitempty"` // at this tick it has expired; 0: never
}

// CapParams bound a capability. An absent or empty list allows nothing; a
// number that is 0 allows nothing either, but for MaxBytes and MaxTokens,
// which then do not bound.
type CapParams struct {
	Kinds     []string `cbor:"kinds,omitempty" json:"kinds,omitempty"`           // any: effect kinds, or "x.*"
	Schemes   []string `cbor:"schemes,omitempty" json:"schemes,omitempty"`       // http: "http", "https"
	Hosts     []string `cbor:"hosts,omitempty" json:"hosts,omitempty"`           // http: names or addresses, or "*.example.com"
	Ports     []uint64 `cbor:"ports,omitempty" json:"ports,omitempty"`           // http
	Methods   []string `cbor:"methods,omitempty" json:"methods,omitempty"`       // http
	Paths     []string `cbor:"paths,omitempty" json:"paths,omitempty"`           // http: prefixes of the cleaned path, whole segments
	Providers []string `cbor:"providers,omitempty" json:"providers,omitempty"`   // llm: hosts of base_url
	Models    []string `cbor:"models,omitempty" json:"models,omitempty"`         // llm: names, or "x*"
	MaxTokens uint64   `cbor:"max_tokens,omitempty" json:"max_tokens,omitempty"` // llm: of one answer
	Servers   []string `cbor:"servers,omitempty" json:"servers,omitempty"`       // mcp: the effect's command or url
	Tools     []string `cbor:"tools,omitempty" json:"tools,omitempty"`           // llm and mcp: names of tools, or "x*"
	Root      string   `cbor:"root,omitempty" json:"root,omitempty"`             // file: the directory, as the effect's config names it, or one above
	Access    []string `cbor:"access,omitempty" json:"access,omitempty"`         // file: "read", "write"
	Programs  []string `cbor:"programs,omitempty" json:"programs,omitempty"`     // exec: as the effect's config names them
	Args      []string `cbor:"args,omitempty" json:"args,omitempty"`             // exec: patterns that every argument must match one of
	MaxBytes  uint64   `cbor:"max_bytes,omitempty" json:"max_bytes,omitempty"`   // http, file: of one request's body or of the data written
}

// Decisions of policies.
const (
	DecideAllow           = "allow"
	DecideDeny            = "deny"
	DecideRequireApproval = "require_approval"
)

// Defaults apply to effects, reducers and budgets without a setting of their own.
type Defaults struct {
	ApprovalTTL     Tick      `cbor:"approval_ttl" json:"approval_ttl"`                             // ticks that an intent waits for approval before it is denied
	SnapshotEvery   uint64    `cbor:"snapshot_every,omitempty" json:"snapshot_every,omitempty"`     // records between automatic snapshots; 0: there are none
	CheckpointEvery uint64    `cbor:"checkpoint_every,omitempty" json:"checkpoint_every,omitempty"` // records between automatic signed checkpoints; 0: DefaultCheckpointEvery
	Retention       Retention `cbor:"retention,omitzero" json:"retention,omitzero"`
}

// Retention bounds what is kept of the past.
type Retention struct {
	MaxSnapshots uint64 `cbor:"max_snapshots,omitempty" json:"max_snapshots,omitempty"` // 0, as it was before there was this key: DefaultMaxSnapshots
}

// Policy is a rule over intents: a CEL expression, and the verdict if it is true. Any matching deny
// wins, then any require_approval, then allow; without a match the answer is deny.
type Policy struct {
	Name   string `cbor:"name" json:"name"`
	When   string `cbor:"when" json:"when"`
	Decide string `cbor:"decide" json:"decide"`
}

// Route sends events to cells. Every route whose pattern matches an event's
// name sends it to one cell, or to each of a reducer, in the order of the manifest.
type Route struct {
	Event   string `cbor:"event" json:"event"`                     // a name, "prefix.*" or "*"
	Reducer string `cbor:"reducer" json:"reducer"`                 // a key of Reducers
	Key     string `cbor:"key" json:"key"`                         // see ParseKeyExpr; empty where it goes to each
	Each    bool   `cbor:"each,omitempty" json:"each,omitempty"`   // it goes to each cell of the reducer that is there
	Order   string `cbor:"order,omitempty" json:"order,omitempty"` // in which: OrderName, which it is if empty, or OrderRandom
}

// The orders in which an event goes to each cell of a reducer.
const (
	OrderName   = "name"   // by their keys' bytes
	OrderRandom = "random" // another each tick, from the world's seed
)

// To says where a route leads.
func (r Route) To() string {
	switch {
	case !r.Each:
		return r.Reducer + "/[" + r.Key + "]"
	case r.Order == OrderRandom:
		return "each " + r.Reducer + " in random order"
	}
	return "each " + r.Reducer
}

// Encode returns the canonical bytes of m. The error names text that is not
// UTF-8, or a Config that is not canonical.
func (m *Manifest) Encode() ([]byte, error) {
	b, err := canon.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return b, nil
}

// Hash returns the hash of m's canonical bytes. The error is that of Encode.
func (m *Manifest) Hash() (Hash, error) {
	encoded, err := m.Encode()
	return canon.Sum(encoded), err
}

// Decode parses the canonical bytes of a manifest. What it accepts encodes to
// the same bytes; it does not Validate. The error wraps a *canon.SyntaxError
// with the offset where bytes are not what Encode would have written.
func Decode(data []byte) (*Manifest, error) {
	m := new(Manifest)
	if err := canon.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

// Contents returns the hashes of all contents that m names, sorted, once each.
func (m *Manifest) Contents() []Hash {
	var out []Hash
	for _, r := range m.Reducers { // order cannot show: sorted below
		out = append(out, r.Source)
		out = slices.AppendSeq(out, maps.Values(r.Modules)) // order cannot show: sorted below
	}
	for _, e := range m.Events { // order cannot show: sorted below
		out = append(out, e.Schema)
	}
	for _, e := range m.Effects { // order cannot show: sorted below
		out = append(out, e.Params)
		out = slices.AppendSeq(out, maps.Values(e.Files)) // order cannot show: sorted below
		if e.Verify != nil {
			out = slices.AppendSeq(out, maps.Values(e.Verify.Files)) // order cannot show: sorted below
		}
	}
	slices.SortFunc(out, func(a, b Hash) int { return slices.Compare(a[:], b[:]) })
	out = slices.Compact(out)
	if len(out) > 0 && out[0].IsZero() {
		out = out[1:]
	}
	return out
}
