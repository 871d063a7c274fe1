package manifest

import (
	"cmp"
	"time"
)

// Limits bound a world. Zero fields take the default; WithDefaults fills them.
type Limits struct {
	EventsPerTick uint64 `cbor:"events_per_tick" json:"events_per_tick"` // events handled in one tick; the rest waits for the next
	InFlight      uint64 `cbor:"in_flight" json:"in_flight"`             // effects in flight at once
	Mailbox       uint64 `cbor:"mailbox" json:"mailbox"`                 // events waiting for one cell
	Alarms        uint64 `cbor:"alarms" json:"alarms"`                   // timers that run, and as many events that are scheduled
	Payload       uint64 `cbor:"payload" json:"payload"`                 // bytes of one event's data or effect's params
	Receipt       uint64 `cbor:"receipt" json:"receipt"`                 // bytes of one receipt

	// SubmitKeys is how many keys under which something was submitted are remembered; 0, as it
	// was before there was this key: DefaultSubmitKeys.
	SubmitKeys uint64 `cbor:"submit_keys,omitempty" json:"submit_keys,omitempty"`
}

// The defaults of limits.
const (
	DefaultPayload = 8 << 20
	DefaultReceipt = 4 << 20
	DefaultState   = 8 << 20
	DefaultEffects = 64
	DefaultMemory  = 256 << 20

	DefaultSubmitKeys = 4096
)

// limit is one field of limits, with what stands for 0 and its greatest value.
type limit struct {
	name           string
	have           *uint64
	fallback, most uint64
	absent         bool // 0 stays 0 in the manifest: those of before have no such key
}

// value is what bounds.
func (l limit) value() uint64 {
	if l.absent {
		return cmp.Or(*l.have, l.fallback)
	}
	return *l.have
}

func (l *Limits) allLimits() []limit {
	return []limit{
		{name: "events_per_tick", have: &l.EventsPerTick, fallback: 1_000_000, most: 100_000_000},
		{name: "in_flight", have: &l.InFlight, fallback: 16_384, most: 65_536},
		{name: "mailbox", have: &l.Mailbox, fallback: 65_536, most: 16 << 20},
		{name: "alarms", have: &l.Alarms, fallback: 1_000_000, most: 16 << 20},
		{name: "payload", have: &l.Payload, fallback: DefaultPayload, most: 64 << 20},
		{name: "receipt", have: &l.Receipt, fallback: DefaultReceipt, most: 64 << 20},
		{name: "submit_keys", have: &l.SubmitKeys, fallback: DefaultSubmitKeys, most: 65_536, absent: true},
	}
}

// WithDefaults returns l with its zero fields filled in.
func (l Limits) WithDefaults() Limits {
	fill(l.allLimits())
	return l
}

// ReducerLimits bound one step of a reducer. A step that exceeds one fails.
type ReducerLimits struct {
	Gas     uint64 `cbor:"gas" json:"gas"`         // Starlark steps, or what a Go reducer declares
	State   uint64 `cbor:"state" json:"state"`     // bytes of the cell's state
	Events  uint64 `cbor:"events" json:"events"`   // events emitted
	Effects uint64 `cbor:"effects" json:"effects"` // effects asked for
	Timers  uint64 `cbor:"timers" json:"timers"`   // timers set
	Value   uint64 `cbor:"value" json:"value"`     // bytes of one Starlark value, nested ones included

	// Memory is how many bytes a Starlark step may fill, garbage included; 0: DefaultMemory.
	Memory uint64 `cbor:"memory,omitempty" json:"memory,omitempty"`
}

func (l *ReducerLimits) allLimits() []limit {
	return []limit{
		{name: "gas", have: &l.Gas, fallback: 1_000_000, most: 10_000_000_000},
		{name: "state", have: &l.State, fallback: DefaultState, most: 64 << 20},
		{name: "events", have: &l.Events, fallback: 1024, most: 1 << 20},
		{name: "effects", have: &l.Effects, fallback: DefaultEffects, most: 65_536},
		{name: "timers", have: &l.Timers, fallback: 64, most: 65_536},
		{name: "value", have: &l.Value, fallback: 32 << 20, most: 64 << 20},
		{name: "memory", have: &l.Memory, fallback: DefaultMemory, most: 16 << 30, absent: true},
	}
}

// WithDefaults returns l with its zero fields filled in.
func (l ReducerLimits) WithDefaults() ReducerLimits {
	fill(l.allLimits())
	return l
}

func (b *Budget) allLimits() []limit {
	return []limit{
		{name: "calls", have: &b.Calls, most: maxBudget},
		{name: "tokens", have: &b.Tokens, most: maxBudget},
		{name: "bytes", have: &b.Bytes, most: maxBudget},
		{name: "micros", have: &b.Micros, most: maxBudget},
	}
}

func fill(all []limit) {
	for _, l := range all {
		if !l.absent {
			*l.have = cmp.Or(*l.have, l.fallback)
		}
	}
}

// Defaults of effects, in nanoseconds and attempts, and of Defaults, in ticks,
// snapshots and records.
const (
	DefaultTimeout      = int64(30 * time.Second)
	DefaultAttempts     = 3
	DefaultBackoff      = int64(time.Second)
	DefaultApprovalTTL  = 1440
	DefaultRealTTL      = 24 * time.Hour // in real time
	DefaultMaxSnapshots = 20

	// DefaultCheckpointEvery is not filled in: nothing that a world computes depends
	// on it.
	DefaultCheckpointEvery = 65_536
)

// withDefaults returns e with its zero fields filled in. What is idempotent
// under one external key is attempted again where it is in doubt; for the rest
// a person decides.
func (e Effect) withDefaults() Effect {
	e.Timeout = cmp.Or(e.Timeout, DefaultTimeout)
	e.Retry.Attempts = cmp.Or(e.Retry.Attempts, DefaultAttempts)
	e.Retry.Backoff = cmp.Or(e.Retry.Backoff, DefaultBackoff)
	if e.OnInDoubt == "" && e.Idempotent && e.ExternalKey == "" {
		e.OnInDoubt = InDoubtRetry
	}
	e.OnInDoubt = cmp.Or(e.OnInDoubt, InDoubtAsk)
	e.OnRepeat = cmp.Or(e.OnRepeat, RepeatAsk)
	if e.Verify != nil && e.Verify.Mode == "" {
		v := *e.Verify
		v.Mode = VerifyStrict
		e.Verify = &v
	}
	return e
}

func (c Clock) withDefaults() Clock {
	c.Tick = cmp.Or(c.Tick, int64(time.Second))
	if c.Mode == ClockSimulated {
		c.Mode = ""
	}
	return c
}

// defaultTTL returns the ticks that an intent waits for approval: in real time the
// length of a tick says nothing of how long a person takes.
func (c Clock) defaultTTL() Tick {
	if c.Real() && c.Tick > 0 {
		return c.Ticks(DefaultRealTTL)
	}
	return DefaultApprovalTTL
}

// WithDefaults returns m with every zero field that has a default filled in.
// m's maps are copied where they change.
func (m Manifest) WithDefaults() Manifest {
	m.Defaults.Retention.MaxSnapshots = cmp.Or(m.Defaults.Retention.MaxSnapshots, DefaultMaxSnapshots)
	effects := make(map[string]Effect, len(m.Effects))
	for kind, e := range m.Effects { // order cannot show: a map is built from a map
		effects[kind] = e.withDefaults()
	}
	m.Effects = effects
	m.Clock = m.Clock.withDefaults()
	m.Defaults.ApprovalTTL = cmp.Or(m.Defaults.ApprovalTTL, m.Clock.defaultTTL())
	m.Limits = m.Limits.WithDefaults()
	reducers := make(map[string]Reducer, len(m.Reducers))
	for name, r := range m.Reducers { // order cannot show: a map is built from a map
		r.OnError = cmp.Or(r.OnError, OnErrorHalt)
		r.Limits = r.Limits.WithDefaults()
		reducers[name] = r
	}
	m.Reducers = reducers
	return m
}
