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
	"fmt"
	"slices"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Hash names a manifest, or a content that a manifest refers to: SHA-256.
type Hash = canon.Hash

// Data is one canonical CBOR item; it prints as JSON.
type Data = canon.Raw

// Tick is logical time, in ticks since the creation of the world.
type Tick uint64

// Manifest is everything that is configurable about a world. The zero value is
// a manifest without reducers, which no world can be made of; see Validate.
type Manifest struct {
	World    string             `cbor:"world" json:"world"`
	Version  uint64             `cbor:"version" json:"version"`
	Seed     uint64             `cbor:"seed" json:"seed"`
	Clock    Clock              `cbor:"clock" json:"clock"`
	Reducers map[string]Reducer `cbor:"reducers" json:"reducers"`
	Events   map[string]Event   `cbor:"events" json:"events"`
	Effects  map[string]Effect  `cbor:"effects,omitempty" json:"effects,omitempty"`
	Caps     map[string]Cap     `cbor:"caps,omitempty" json:"caps,omitempty"`
	Policies []Policy           `cbor:"policies,omitempty" json:"policies,omitempty"`
	Routing  []Route            `cbor:"routing,omitempty" json:"routing,omitempty"`
	Limits   Limits             `cbor:"limits" json:"limits"`
}

// Clock maps ticks to the calendar: tick t is at Epoch + t × Tick.
type Clock struct {
	Epoch int64 `cbor:"epoch" json:"epoch"` // nanoseconds since 1970-01-01 UTC
	Tick  int64 `cbor:"tick" json:"tick"`   // nanoseconds, at least 1
}

// At returns the calendar time of a tick in nanoseconds since 1970-01-01 UTC.
func (c Clock) At(t Tick) int64 { return c.Epoch + int64(t)*c.Tick }

// Engines of reducers.
const (
	EngineStarlark = "starlark"
	EngineGo       = "go"
)

// What happens to a cell's mailbox when its reducer fails.
const (
	OnErrorPark = "park" // the cell stops before the event; a person resumes it
	OnErrorSkip = "skip" // the event is dropped and the mailbox goes on
)

// Reducer says what a kind of cell runs and what it may do.
type Reducer struct {
	Engine  string        `cbor:"engine" json:"engine"`
	File    string        `cbor:"file,omitempty" json:"file,omitempty"`       // starlark: the source's path, for messages
	Source  Hash          `cbor:"source,omitzero" json:"source,omitzero"`     // starlark: the source's content
	Name    string        `cbor:"name,omitempty" json:"name,omitempty"`       // go: as registered
	Version string        `cbor:"version,omitempty" json:"version,omitempty"` // go: as registered
	Grants  []string      `cbor:"grants,omitempty" json:"grants,omitempty"`   // capabilities, tried in this order
	OnError string        `cbor:"on_error" json:"on_error"`
	Limits  ReducerLimits `cbor:"limits" json:"limits"`
}

// Event declares an event that may be submitted or emitted.
type Event struct {
	File   string `cbor:"file,omitempty" json:"file,omitempty"`   // the schema's path, for messages
	Schema Hash   `cbor:"schema,omitzero" json:"schema,omitzero"` // a JSON Schema's content; zero: any data
}

// Effect declares a kind of effect and the adapter that performs it.
type Effect struct {
	Adapter string          `cbor:"adapter" json:"adapter"`
	Config  Data            `cbor:"config,omitzero" json:"config,omitzero"` // the adapter's own, a map
	Files   map[string]Hash `cbor:"files,omitempty" json:"files,omitempty"` // contents of the files that Config names, by its key
}

// CapAny is the type of a capability that is bounded by effect kind only.
const CapAny = "any"

// Cap is a capability: a right to effects, given to reducers by their grants.
type Cap struct {
	Type    string    `cbor:"type" json:"type"`
	Params  CapParams `cbor:"params" json:"params"`
	Expires Tick      `cbor:"expires,omitempty" json:"expires,omitempty"` // at this tick it has expired; 0: never
}

// CapParams bound a capability. An absent or empty list allows nothing.
type CapParams struct {
	Kinds []string `cbor:"kinds,omitempty" json:"kinds,omitempty"` // type any: effect kinds, or "x.*"
}

// Decisions of policies.
const (
	DecideAllow = "allow"
	DecideDeny  = "deny"
)

// Policy is a rule over intents: a CEL expression and what it decides where it
// is true. Any matching deny wins; without a matching allow the answer is deny.
type Policy struct {
	Name   string `cbor:"name" json:"name"`
	When   string `cbor:"when" json:"when"`
	Decide string `cbor:"decide" json:"decide"`
}

// Route sends events to cells. Every route whose pattern matches an event's
// name sends it to one cell, in the order of the manifest.
type Route struct {
	Event   string `cbor:"event" json:"event"`     // a name, "prefix.*" or "*"
	Reducer string `cbor:"reducer" json:"reducer"` // a key of Reducers
	Key     string `cbor:"key" json:"key"`         // see ParseKeyExpr
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
	}
	for _, e := range m.Events { // order cannot show: sorted below
		out = append(out, e.Schema)
	}
	for _, e := range m.Effects { // order cannot show: sorted below
		for _, h := range e.Files { // order cannot show: sorted below
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b Hash) int { return slices.Compare(a[:], b[:]) })
	out = slices.Compact(out)
	if len(out) > 0 && out[0].IsZero() {
		out = out[1:]
	}
	return out
}

// Defaults of a clock: ticks of a second since 1970.
const defaultTick = int64(time.Second)
