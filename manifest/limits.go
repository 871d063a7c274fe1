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
}

// Defaults that others count with.
const (
	DefaultPayload = 1 << 20
	DefaultReceipt = 4 << 20
	DefaultEffects = 64
)

// limit is one field of limits, with what stands for 0 and its greatest value.
type limit struct {
	name           string
	have           *uint64
	fallback, most uint64
}

func (l *Limits) all() []limit {
	return []limit{
		{"events_per_tick", &l.EventsPerTick, 1_000_000, 100_000_000},
		{"in_flight", &l.InFlight, 1024, 65_536},
		{"mailbox", &l.Mailbox, 65_536, 16 << 20},
		{"alarms", &l.Alarms, 1_000_000, 16 << 20},
		{"payload", &l.Payload, DefaultPayload, 64 << 20},
		{"receipt", &l.Receipt, DefaultReceipt, 64 << 20},
	}
}

// WithDefaults returns l with its zero fields filled in.
func (l Limits) WithDefaults() Limits {
	fill(l.all())
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
}

func (l *ReducerLimits) all() []limit {
	return []limit{
		{"gas", &l.Gas, 1_000_000, 10_000_000_000},
		{"state", &l.State, 256 << 10, 64 << 20},
		{"events", &l.Events, 1024, 1 << 20},
		{"effects", &l.Effects, DefaultEffects, 65_536},
		{"timers", &l.Timers, 64, 65_536},
		{"value", &l.Value, 1 << 20, 64 << 20},
	}
}

// WithDefaults returns l with its zero fields filled in.
func (l ReducerLimits) WithDefaults() ReducerLimits {
	fill(l.all())
	return l
}

func (b *Budget) all() []limit {
	return []limit{
		{"calls", &b.Calls, 0, maxBudget},
		{"tokens", &b.Tokens, 0, maxBudget},
		{"bytes", &b.Bytes, 0, maxBudget},
		{"micros", &b.Micros, 0, maxBudget},
	}
}

func fill(all []limit) {
	for _, l := range all {
		*l.have = cmp.Or(*l.have, l.fallback)
	}
}

// Defaults of effects, in nanoseconds and attempts, and of Defaults, in ticks,
// snapshots and records.
const (
	DefaultTimeout      = int64(30 * time.Second)
	DefaultAttempts     = 3
	DefaultBackoff      = int64(time.Second)
	DefaultApprovalTTL  = 1440
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
	e.OnInDoubt = cmp.Or(e.OnInDoubt, InDoubtPark)
	e.OnRepeat = cmp.Or(e.OnRepeat, RepeatPark)
	if e.Verify != nil && e.Verify.Mode == "" {
		v := *e.Verify
		v.Mode = VerifyStrict
		e.Verify = &v
	}
	return e
}

// WithDefaults returns m with every zero field that has a default filled in.
// m's maps are copied where they change.
func (m Manifest) WithDefaults() Manifest {
	m.Defaults.ApprovalTTL = cmp.Or(m.Defaults.ApprovalTTL, DefaultApprovalTTL)
	m.Defaults.Retention.MaxSnapshots = cmp.Or(m.Defaults.Retention.MaxSnapshots, DefaultMaxSnapshots)
	effects := make(map[string]Effect, len(m.Effects))
	for kind, e := range m.Effects { // order cannot show: a map is built from a map
		effects[kind] = e.withDefaults()
	}
	m.Effects = effects
	m.Clock.Tick = cmp.Or(m.Clock.Tick, int64(time.Second))
	m.Limits = m.Limits.WithDefaults()
	reducers := make(map[string]Reducer, len(m.Reducers))
	for name, r := range m.Reducers { // order cannot show: a map is built from a map
		r.OnError = cmp.Or(r.OnError, OnErrorPark)
		r.Limits = r.Limits.WithDefaults()
		reducers[name] = r
	}
	m.Reducers = reducers
	return m
}
