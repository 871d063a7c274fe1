// Package reducer is the contract of a cell: a pure function from old state
// and one event to new state, events, effects and timers.
//
// States, event data and effect params are canonical CBOR ([Data]). A reducer
// performs no I/O, reads no clock and no randomness but what its [Input]
// carries; what it wants done outside it asks for as an [Effect]. Reducers are
// written in Go (see [Typed]) or in Starlark (package reducer/star).
package reducer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
)

// Data is a canonical CBOR item; it prints as JSON. Empty stands for "none".
type Data = manifest.Data

// Operator is the reducer name that stands for people; no cell may have it.
const Operator = "operator"

// ReceiptEvent is the name of the event that brings a cell the answer to an
// effect. Its data is a map with tag, kind, status and payload, and with cancelled, which
// is true, where the cell has cancelled the effect's tag since it asked for it.
const ReceiptEvent = "receipt"

// Cell names one keyed instance of a reducer.
type Cell struct {
	Reducer string
	Key     string
}

// String returns "reducer/key".
func (c Cell) String() string { return c.Reducer + "/" + c.Key }

// ParseCell parses "reducer/key"; the key may hold further slashes.
func ParseCell(s string) (Cell, error) {
	name, key, ok := strings.Cut(s, "/")
	if !ok || name == "" {
		return Cell{}, fmt.Errorf("%q is not a cell: want REDUCER/KEY", s)
	}
	if err := manifest.CheckKey(key); err != nil {
		return Cell{}, err
	}
	return Cell{Reducer: name, Key: key}, nil
}

// Event is what a cell handles: one at a time, in the order of its mailbox.
type Event struct {
	Name string
	Data Data
}

// Input is everything a step may look at.
type Input struct {
	Cell   Cell
	Step   uint64 // the number of this step in the cell's history, from 1
	State  Data   // empty where the cell has no state yet
	Event  Event
	Params Data // of the manifest, a map; empty where it has none
	Time   manifest.Tick
	Clock  manifest.Clock // says how long a tick is; the zero value: a second
	Limits manifest.ReducerLimits
	Seed   Seed    // of Rand
	Bounds *Bounds // nil: the limits are all that bounds the step

	// OnPrint hears what the step prints, in its order; nil: nobody does. What the step
	// does and costs is the same either way.
	OnPrint func(Print)
}

// Print is the text of a call of print.
type Print struct {
	Place string `json:"place"` // of the call: file:line:column
	Text  string `json:"text"`  // UTF-8, may have several lines
}

// Bounds are the reader's limits on a step of foreign code, whatever the manifest's limits are. A
// step that exceeds one has no outcome: its error wraps ErrBound, and is no failure that a journal
// could hold. Go reducers, which are the program's own, need not heed them.
type Bounds struct {
	Gas    uint64      // as ReducerLimits has it
	Memory uint64      // bytes filled, garbage included
	Ended  func() bool // reports, now and then asked, that nobody waits for the step any more; nil: somebody does
}

// Output is everything a step may bring about. The kernel resets and reuses
// it; a reducer appends and does not keep it.
type Output struct {
	State   Data // empty: the cell is deleted
	Events  []Emit
	Effects []Effect
	Timers  []Timer
	Cancels []string // tags of what earlier steps asked for; before the rest of the output
	Gas     uint64
}

// Cancel cancels a tag: what the cell asked for under it in earlier steps, and in this
// one so far.
func (o *Output) Cancel(tag string) {
	o.Effects = slices.DeleteFunc(o.Effects, func(e Effect) bool { return e.Tag == tag })
	o.Timers = slices.DeleteFunc(o.Timers, func(t Timer) bool { return t.Tag == tag })
	if !slices.Contains(o.Cancels, tag) {
		o.Cancels = append(o.Cancels, tag)
	}
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	*o = Output{State: o.State[:0], Events: o.Events[:0], Effects: o.Effects[:0], Timers: o.Timers[:0], Cancels: o.Cancels[:0]}
}

// Emit is an event that a cell sends through the manifest's routes.
type Emit struct {
	Name string
	Data Data
	Key  string // overrides the key of every route that matches; empty: the routes' own
}

// Effect asks for something outside. The gate judges it, and the answer comes
// back as a [ReceiptEvent].
type Effect struct {
	Kind   string
	Params Data
	Tag    string // chosen by the reducer; comes back with the receipt
	Cap    string // the capability to use; empty: the first grant that fits
}

// Timer sends an event to the cell itself, After ticks from now, at least 1.
type Timer struct {
	After manifest.Tick
	Name  string
	Data  Data
	Tag   string // not empty: it takes the place of the cell's timer of the same tag
}

// Reducer handles an event. An error fails the step: the cell's state stays and nothing in the
// output takes effect. A Reducer is used by one world, from one goroutine; it must not keep
// anything of an Input or Output.
type Reducer interface {
	Reduce(in *Input, out *Output) error
}

// Migrator is a Reducer that takes over the states of the code before it.
type Migrator interface {
	// Migrate makes a state of this code from one that other code has left. Of
	// the input it gets cell, state and limits, of the output state and gas count. An
	// error keeps the code from being put in force.
	Migrate(in *Input, out *Output) error
}

// ErrLimit is wrapped by every error that says that a step exceeded one of its
// limits.
var ErrLimit = errors.New("limit exceeded")

// ErrBound is wrapped by every error that says that a step would exceed the Bounds of
// whoever runs it, or that he does not wait for it any more.
var ErrBound = errors.New("bound exceeded")

// BoundError is an ErrBound that says which of the Bounds, and what the rules allow.
type BoundError struct {
	Name  string // "gas" or "memory"
	Bound uint64
	Limit uint64 // of the reducer
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("a step takes more %s than the %d that whoever runs it allows; limits.%[1]s is %[3]d", e.Name, e.Bound, e.Limit)
}

// Is makes every BoundError an ErrBound.
func (*BoundError) Is(target error) bool { return target == ErrBound }

// CheckLimits reports, wrapping ErrLimit, which of its limits an output exceeds.
func (o *Output) CheckLimits(l manifest.ReducerLimits) error {
	for _, c := range []struct {
		name string
		unit string
		have uint64
		most uint64
	}{
		{"gas", "steps", o.Gas, l.Gas},
		{"state", "bytes", uint64(len(o.State)), l.State},
		{"events", "events", uint64(len(o.Events)), l.Events},
		{"effects", "effects", uint64(len(o.Effects)), l.Effects},
		{"timers", "timers", uint64(len(o.Timers)), l.Timers},
		{"timers", "cancelled tags", uint64(len(o.Cancels)), l.Timers},
	} {
		if c.have > c.most {
			return fmt.Errorf("%w: limits.%s is %d %s, the step used %d", ErrLimit, c.name, c.most, c.unit, c.have)
		}
	}
	return nil
}
