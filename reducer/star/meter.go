package star

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"go.starlark.net/starlark"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// MaxIntBits is the widest integer that a reducer computes with. Wider ones
// are carried from state and events to state and events, and nothing else.
const MaxIntBits = 4096

// Prices, in bytes for one step of gas.
const (
	bytesMadePerStep = 64  // memory that an operation fills
	bytesReadPerStep = 512 // memory that it only looks at, or moves

	bytesWalkedPerStep = 16 // memory that it looks at byte by byte
)

// Sizes, in bytes, that values are reckoned at.
const (
	slotBytes  = 16  // one place in a list, a tuple or a variable
	entryBytes = 64  // one pair of a dict, one member of a set
	tableBytes = 448 // an empty dict or set

	entryFilled = 256 // what a pair of a dict takes while its table grows
)

// longFloatSteps is the price of the hash of a float beyond 64 bits.
const longFloatSteps = 8

// depth of calls, and how often it is looked at.
const (
	maxCallDepth = 1000
	checkEvery   = 1000 // steps
)

// meter counts what a step costs and holds it to its limits. It is part of one
// engine and shared by its built-in functions.
type meter struct {
	thread starlark.Thread
	gas    uint64
	value  uint64
	memory uint64
	over   error              // why the step has ended before its time: a limit, or a bound
	stack  starlark.CallStack // where it has

	listener listener

	bounds reducer.Bounds      // of whoever runs the step
	beyond *reducer.BoundError // what spent gas means; nil: that the limit is exceeded
	heavy  *reducer.BoundError // likewise, of memory

	filled   uint64            // bytes made
	checked  uint64            // steps when the interpreter called back last
	heaviest uint64            // of the chains of dicts and sets; see table
	loaded   uint64            // heaviest once the module was loaded
	held     []starlark.Value  // x of the x[k] = v that are being evaluated
	opaque   map[uint32]uint64 // keys put into dicts and sets by modelHash, of those whose hash nobody knows
}

// resetMeter gives a step its limits, and bounds if there are any.
func (m *meter) resetMeter(limits manifest.ReducerLimits, bounds *reducer.Bounds) {
	m.gas, m.value, m.memory = limits.Gas, limits.Value, cmp.Or(limits.Memory, manifest.DefaultMemory)
	m.over, m.stack = nil, nil
	m.bound(bounds)
	m.filled, m.checked, m.heaviest = 0, 0, m.loaded
	clear(m.opaque)
	m.held = m.held[:0]
	m.thread.Steps = 0
	m.checkpoint()
}

// bound holds a step to less than its limits.
func (m *meter) bound(bounds *reducer.Bounds) {
	m.bounds, m.beyond, m.heavy = reducer.Bounds{}, nil, nil
	if bounds == nil {
		return
	}
	m.bounds = *bounds
	if b := bounds.Memory; b < m.memory {
		m.heavy = &reducer.BoundError{Name: "memory", Bound: b, Limit: m.memory}
		m.memory = b
	}
	if b := bounds.Gas; b < m.gas {
		m.beyond = &reducer.BoundError{Name: "gas", Bound: b, Limit: m.gas}
		m.gas = b
	}
}

// checkpoint sets the step at which the interpreter calls back.
func (m *meter) checkpoint() {
	next := m.gas
	if m.gas-min(m.gas, m.thread.Steps) > checkEvery {
		next = m.thread.Steps + checkEvery
	}
	// The interpreter calls back when the count reaches the maximum, and gas
	// itself may be used up.
	m.thread.SetMaxExecutionSteps(min(next, math.MaxUint64-1) + 1)
}

// reached is the interpreter's call back.
func (m *meter) reached(thread *starlark.Thread) {
	switch {
	case thread.Steps > m.gas:
		m.spend(0)
	case thread.CallStackDepth() > maxCallDepth:
		m.exceed("calls nest deeper than %d", maxCallDepth)
	case m.bounds.Ended != nil && m.bounds.Ended():
		m.end(errUnwanted)
	default:
		m.lookups()
		m.checkpoint()
	}
}

// errUnwanted says that a step was ended because nobody waits for it.
var errUnwanted = fmt.Errorf("%w: nobody waits for the step any more", reducer.ErrBound)

// lookups charges for what the interpreter itself has looked up in dicts since it
// called back last, as though each step had looked through the heaviest chain.
func (m *meter) lookups() {
	if m.heaviest == 0 {
		return
	}
	done := min(m.thread.Steps-m.checked, checkEvery)
	m.spend(done * m.heaviest / (4 * weightPerStep))
	m.checked = m.thread.Steps
}

// limitError says that a limit is exceeded.
func limitError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", reducer.ErrLimit, fmt.Sprintf(format, args...))
}

// exceed ends the step, which exceeds a limit.
func (m *meter) exceed(format string, args ...any) { m.end(limitError(format, args...)) }

// ended is the panic that ends a step; meter.over says why. The interpreter lets it through, and engine.recover
// takes it: so no function of a program goes on after a limit, and whoever charges for something needs no error.
type ended struct{}

// end ends the step with an error.
func (m *meter) end(err error) {
	m.over, m.stack = err, m.thread.CallStack()
	panic(ended{})
}

// prefix puts a name in front of why the step ends, if it does. It is to be deferred.
func (m *meter) prefix(name func(error) error) {
	r := recover()
	if r == nil {
		return
	}
	if r == (ended{}) {
		m.over = name(m.over)
	}
	panic(r)
}

// spend charges steps.
func (m *meter) spend(steps uint64) {
	sum, carry := bits.Add64(m.thread.Steps, steps, 0)
	if carry != 0 {
		sum = math.MaxUint64 - 1
	}
	if m.thread.Steps = sum; sum > m.gas {
		if m.beyond != nil {
			m.end(m.beyond)
		}
		m.exceed("limits.gas is %d steps", m.gas)
	}
}

// scan charges for reading or moving n bytes.
func (m *meter) scan(n int) {
	if n >= bytesReadPerStep {
		m.spend(uint64(n) / bytesReadPerStep)
	}
}

// walk charges for looking at each of n bytes, or characters.
func (m *meter) walk(n int) { m.spend(uint64(n) / bytesWalkedPerStep) }

// takeMemory charges for n bytes of new memory.
func (m *meter) takeMemory(n uint64) {
	before := m.filled / bytesMadePerStep
	if m.filled += n; m.filled > m.memory {
		if m.heavy != nil {
			m.end(m.heavy)
		}
		m.exceed("limits.memory is %d bytes", m.memory)
	}
	m.spend(1 + m.filled/bytesMadePerStep - before)
}

// fits refuses a value of n bytes where that is too large.
func (m *meter) fits(what string, n uint64) {
	if n > m.value {
		m.exceed("a %s of %d bytes, limits.value is %d", what, n, m.value)
	}
}

// room charges for a value of n bytes that is about to be made, and refuses
// one that is too large.
func (m *meter) room(what string, n uint64) {
	m.fits(what, n)
	m.takeMemory(n)
}

// slots is room for a list or tuple of n items.
func (m *meter) slots(what string, n int) {
	if n < 0 || uint64(n) > m.value/slotBytes {
		m.exceed("a %s of %d items (%d bytes each), limits.value is %d", what, n, slotBytes, m.value)
	}
	m.room(what, uint64(n)*slotBytes)
}

// entries is room for a dict or set of n entries.
func (m *meter) entries(what string, n int) {
	if uint64(n) > m.value/entryBytes {
		m.exceed("a %s of %d entries (%d bytes each), limits.value is %d", what, n, entryBytes, m.value)
	}
	m.takeMemory(tableBytes + entryFilled*uint64(n))
}

// made charges for a value that was just made out of others, where its size is
// bounded by theirs.
func (m *meter) made(v starlark.Value) {
	switch v := v.(type) {
	case starlark.String:
		m.room("string", uint64(len(v)))
	case starlark.Bytes:
		m.room("bytes value", uint64(len(v)))
	case *starlark.List:
		m.slots("list", v.Len())
	case starlark.Tuple:
		m.slots("tuple", len(v))
		m.tuple(v)
	case *starlark.Dict, *starlark.Set:
		m.entries(v.Type(), starlark.Len(v))
	}
}

// key charges for the hash of a key. What a chain of such keys costs is charged
// when it is made; see table.
func (m *meter) key(v starlark.Value) {
	switch v := v.(type) {
	case starlark.String:
		m.scan(len(v))
	case starlark.Bytes:
		m.scan(len(v))
	case starlark.Float: // hashed as the integer that it rounds to, and may be compared with one
		if f := float64(v); f >= math.MinInt64 && f <= math.MaxInt64 {
			m.spend(longFloatSteps / 2)
		} else {
			m.spend(longFloatSteps)
		}
	case starlark.Tuple: // compared with others of its hash: that they are few nobody looks at
		m.spend(uint64(2*len(v) + 8*max(0, len(v)-maxKnownTuple)))
		for _, x := range v {
			m.key(x)
		}
	}
}

// keys charges for hashing all keys of a dict or set.
func (m *meter) keys(v starlark.Iterable) {
	if n := starlark.Len(v); n > 0 {
		m.spend(uint64(n) * (m.heaviest / weightPerStep))
	}
	for k := range starlark.Elements(v) {
		m.spend(1)
		m.key(k)
	}
}
