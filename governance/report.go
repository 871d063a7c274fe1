package governance

import (
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// MaxListed is how many differences of a kind a Report lists. Counts has them all.
const MaxListed = 100

// How much a Report quotes, in bytes.
const (
	MaxExcerptBytes = 256  // of a value
	MaxRecordBytes  = 1024 // of a record
)

// Report says what a candidate would have done with a world's recorded history:
// what a person approves. It encodes to canonical CBOR, and its hash is that of
// these bytes. Lists are in the order in which the differences came up, cells by
// name; a list has at most MaxListed items. Records are those of the history,
// values are quoted as JSON, what is longer than it may be cut off.
type Report struct {
	V         uint64 `cbor:"v" json:"-"`
	Kernel    string `cbor:"kernel" json:"kernel"` // the version of the kernel that made it: another may find other words
	World     string `cbor:"world" json:"world"`   // its id
	Base      Hash   `cbor:"base" json:"base"`
	Candidate Hash   `cbor:"candidate" json:"candidate"`
	Snapshot  string `cbor:"snapshot" json:"snapshot"` // that the shadow began with; empty: it has no name
	From      uint64 `cbor:"from" json:"from"`         // its record; else that from which on the manifest is in force, or 1
	To        uint64 `cbor:"to" json:"to"`             // the last record of the history
	Root      Hash   `cbor:"root" json:"root"`         // the chain root at To
	Events    uint64 `cbor:"events" json:"events"`     // handled by cells, in the history

	Counts     Counts      `cbor:"counts" json:"counts"`
	All        Hash        `cbor:"all" json:"all"` // of all differences, those that are not listed among them
	Divergence *Divergence `cbor:"divergence" json:"first_divergence"`

	Cells       []CellDifference     `cbor:"cells" json:"cells_changed"`
	EventsNew   []EventDifference    `cbor:"events_new" json:"events_new"`
	EventsGone  []EventDifference    `cbor:"events_gone" json:"events_gone"`
	IntentsNew  []IntentDifference   `cbor:"intents_new" json:"intents_new"`
	IntentsGone []IntentDifference   `cbor:"intents_gone" json:"intents_gone"`
	Decisions   []DecisionDifference `cbor:"decisions" json:"decisions_changed"`
	Failed      []Failure            `cbor:"failed" json:"failed"` // steps that did not fail in the history
	Mended      []Failure            `cbor:"mended" json:"mended"` // steps that failed in the history only
	Refused     []Refusal            `cbor:"refused" json:"refused"`
	Unknown     []Unknown            `cbor:"unknown" json:"unknown"`

	CostWas receipt.Cost `cbor:"cost_was" json:"cost_was"` // of the receipts in the history
	CostIs  receipt.Cost `cbor:"cost_is" json:"cost_is"`   // of those that the candidate would have been answered with
}

// Counts says how many differences there are.
type Counts struct {
	Cells       uint64 `cbor:"cells" json:"cells_changed"`
	EventsNew   uint64 `cbor:"events_new" json:"events_new"`
	EventsGone  uint64 `cbor:"events_gone" json:"events_gone"`
	IntentsNew  uint64 `cbor:"intents_new" json:"intents_new"`
	IntentsGone uint64 `cbor:"intents_gone" json:"intents_gone"`
	Decisions   uint64 `cbor:"decisions" json:"decisions_changed"`
	Failed      uint64 `cbor:"failed" json:"failed"`
	Mended      uint64 `cbor:"mended" json:"mended"`
	Refused     uint64 `cbor:"refused" json:"refused"`
	Unknown     uint64 `cbor:"unknown" json:"unknown"`
	LeftOut     uint64 `cbor:"left_out" json:"left_out"` // what persons decided in the history, where there was nothing to decide
}

// Divergence is the first record of the history that the candidate would not have
// written, other than by its numbers.
type Divergence struct {
	Record   uint64 `cbor:"record" json:"record"`
	Cell     string `cbor:"cell" json:"cell"`
	Recorded string `cbor:"recorded" json:"recorded"` // the record as JSON; empty: nothing
	Computed string `cbor:"computed" json:"computed"` // likewise
}

// CellDifference is a cell that would be another now.
type CellDifference struct {
	Cell      string   `cbor:"cell" json:"cell"`
	What      string   `cbor:"what" json:"what"` // "changed", "new" or "gone"
	StepsWas  uint64   `cbor:"steps_was" json:"steps_was"`
	StepsIs   uint64   `cbor:"steps_is" json:"steps_is"`
	HaltedWas bool     `cbor:"halted_was" json:"halted_was"`
	HaltedIs  bool     `cbor:"halted_is" json:"halted_is"`
	Unknown   bool     `cbor:"unknown" json:"unknown"` // it waits for an answer that the history does not have
	State     []Change `cbor:"state" json:"state"`     // where its state differs; at most MaxChanges
	More      uint64   `cbor:"more" json:"more"`       // places that State leaves out
}

// MaxChanges is how many places of a cell's state a Report lists.
const MaxChanges = 20

// Change is a place in which two states differ.
type Change struct {
	Path string `cbor:"path" json:"path"` // a JSON pointer; empty: the whole
	Was  string `cbor:"was" json:"was"`   // empty: there is nothing
	Is   string `cbor:"is" json:"is"`
}

// EventDifference is an event that only one of the two emits.
type EventDifference struct {
	Cell   string   `cbor:"cell" json:"cell"` // that emits it
	Name   string   `cbor:"name" json:"name"`
	To     []string `cbor:"to" json:"to"`
	Data   string   `cbor:"data" json:"data"`
	Record uint64   `cbor:"record" json:"record"` // that it is, or that led to it
}

// IntentDifference is an intent that only one of the two asks for.
type IntentDifference struct {
	Cell       string `cbor:"cell" json:"cell"`
	Kind       string `cbor:"kind" json:"kind"`
	Tag        string `cbor:"tag" json:"tag"`
	Params     string `cbor:"params" json:"params"`
	Occurrence uint64 `cbor:"occurrence" json:"occurrence"`
	Decision   string `cbor:"decision" json:"decision"` // allow, deny or require_approval
	Record     uint64 `cbor:"record" json:"record"`     // that it is, or that led to it
}

// DecisionDifference is an intent that both ask for and that the gate decides
// otherwise.
type DecisionDifference struct {
	Cell       string   `cbor:"cell" json:"cell"`
	Kind       string   `cbor:"kind" json:"kind"`
	Tag        string   `cbor:"tag" json:"tag"`
	Params     string   `cbor:"params" json:"params"`
	Occurrence uint64   `cbor:"occurrence" json:"occurrence"`
	Was        string   `cbor:"was" json:"was"` // allow, deny or require_approval
	Is         string   `cbor:"is" json:"is"`   // likewise
	Code       string   `cbor:"code" json:"code"`
	Rules      []string `cbor:"rules" json:"rules"`   // that decide it now
	Record     uint64   `cbor:"record" json:"record"` // of the history's decision
}

// Failure is a step that fails in one of the two only.
type Failure struct {
	Cell   string `cbor:"cell" json:"cell"`
	Step   uint64 `cbor:"step" json:"step"`
	Error  string `cbor:"error" json:"error"`
	Event  uint64 `cbor:"event" json:"event"`   // the record of the event that it fails on, or that led to it
	Record uint64 `cbor:"record" json:"record"` // of the history, in whose place it fails
}

// Refusal is an input of the history that the candidate does not take.
type Refusal struct {
	Record uint64 `cbor:"record" json:"record"`
	Error  string `cbor:"error" json:"error"`
}

// Unknown is an intent that the candidate waits for and that the history has no
// answer to: what would have followed is unknown.
type Unknown struct {
	Cell   string `cbor:"cell" json:"cell"`
	Kind   string `cbor:"kind" json:"kind"`
	Params string `cbor:"params" json:"params"`
	Why    string `cbor:"why" json:"why"`
}

const reportVersion = 1

// NoOp reports whether the candidate would have changed nothing.
func (r *Report) NoOp() bool {
	return r.Counts == Counts{} && r.Divergence == nil && r.CostWas == r.CostIs
}

// Short returns the report as it is recorded, with the first MaxListed differences of each
// kind.
func (r *Report) Short() *Report {
	short := *r
	short.Cells, short.EventsNew, short.EventsGone = first(r.Cells), first(r.EventsNew), first(r.EventsGone)
	short.IntentsNew, short.IntentsGone, short.Decisions = first(r.IntentsNew), first(r.IntentsGone), first(r.Decisions)
	short.Failed, short.Mended, short.Refused, short.Unknown = first(r.Failed), first(r.Mended), first(r.Refused), first(r.Unknown)
	return &short
}

func first[T any](all []T) []T { return all[:min(len(all), MaxListed)] }

// Encode returns the canonical bytes of a report.
func (r *Report) Encode() ([]byte, error) {
	r.V = reportVersion
	b, err := canon.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("governance: report: %w", err)
	}
	return b, nil
}

// DecodeReport parses the canonical bytes of a report.
func DecodeReport(data []byte) (*Report, error) {
	r := new(Report)
	if err := canon.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("governance: report: %w", err)
	}
	if r.V != reportVersion {
		return nil, fmt.Errorf("governance: report: unknown version %d", r.V)
	}
	return r, nil
}

// Hash returns what an approval binds.
func (r *Report) Hash() (Hash, error) {
	b, err := r.Encode()
	if err != nil {
		return Hash{}, err
	}
	return canon.Sum(b), nil
}
