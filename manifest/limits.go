package manifest

import "time"

// Limits bound a world. Zero fields take the default; WithDefaults fills them.
type Limits struct {
	EventsPerTick uint64 `cbor:"events_per_tick" json:"events_per_tick"` // events handled in one tick; the rest waits for the next
	InFlight      uint64 `cbor:"in_flight" json:"in_flight"`             // effects in flight at once
	Mailbox       uint64 `cbor:"mailbox" json:"mailbox"`                 // events waiting for one cell
	Alarms        uint64 `cbor:"alarms" json:"alarms"`                   // timers that run, and as many events that are scheduled
	Payload       uint64 `cbor:"payload" json:"payload"`                 // bytes of one event's data or effect's params
	Receipt       uint64 `cbor:"receipt" json:"receipt"`                 // bytes of one receipt
}

// Defaults of Limits.
const (
	DefaultEventsPerTick = 1_000_000
	DefaultInFlight      = 1024
	DefaultMailbox       = 65_536
	DefaultAlarms        = 1_000_000
	DefaultPayload       = 1 << 20
	DefaultReceipt       = 4 << 20
)

// WithDefaults returns l with its zero fields filled in.
func (l Limits) WithDefaults() Limits {
	fill(&l.EventsPerTick, DefaultEventsPerTick)
	fill(&l.InFlight, DefaultInFlight)
	fill(&l.Mailbox, DefaultMailbox)
	fill(&l.Alarms, DefaultAlarms)
	fill(&l.Payload, DefaultPayload)
	fill(&l.Receipt, DefaultReceipt)
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

	// Memory is how many bytes a Starlark step may fill, garbage included; 0, as it
	// was before there was this key: DefaultMemory. Version 1 of the engine has no such
	// limit.
	Memory uint64 `cbor:"memory,omitempty" json:"memory,omitempty"`
}

// Defaults of ReducerLimits.
const (
	DefaultGas     = 1_000_000
	DefaultState   = 256 << 10
	DefaultEvents  = 1024
	DefaultEffects = 64
	DefaultTimers  = 64
	DefaultValue   = 1 << 20
	DefaultMemory  = 256 << 20 // is not filled in: the manifests of before have no such key
)

// WithDefaults returns l with its zero fields filled in.
func (l ReducerLimits) WithDefaults() ReducerLimits {
	fill(&l.Gas, DefaultGas)
	fill(&l.State, DefaultState)
	fill(&l.Events, DefaultEvents)
	fill(&l.Effects, DefaultEffects)
	fill(&l.Timers, DefaultTimers)
	fill(&l.Value, DefaultValue)
	return l
}

func fill(field *uint64, value uint64) {
	if *field == 0 {
		*field = value
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
	if e.Timeout == 0 {
		e.Timeout = DefaultTimeout
	}
	fill(&e.Retry.Attempts, DefaultAttempts)
	if e.Retry.Backoff == 0 {
		e.Retry.Backoff = DefaultBackoff
	}
	if e.OnInDoubt == "" {
		e.OnInDoubt = InDoubtPark
		if e.Idempotent && e.ExternalKey == "" {
			e.OnInDoubt = InDoubtRetry
		}
	}
	if e.OnRepeat == "" {
		e.OnRepeat = RepeatPark
	}
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
	if m.Defaults.ApprovalTTL == 0 {
		m.Defaults.ApprovalTTL = DefaultApprovalTTL
	}
	fill(&m.Defaults.Retention.MaxSnapshots, DefaultMaxSnapshots)
	effects := make(map[string]Effect, len(m.Effects))
	for kind, e := range m.Effects { // order cannot show: a map is built from a map
		effects[kind] = e.withDefaults()
	}
	m.Effects = effects
	if m.Clock.Tick == 0 {
		m.Clock.Tick = defaultTick
	}
	m.Limits = m.Limits.WithDefaults()
	reducers := make(map[string]Reducer, len(m.Reducers))
	for name, r := range m.Reducers { // order cannot show: a map is built from a map
		if r.OnError == "" {
			r.OnError = OnErrorPark
		}
		r.Limits = r.Limits.WithDefaults()
		reducers[name] = r
	}
	m.Reducers = reducers
	return m
}
