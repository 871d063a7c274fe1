package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
)

// Tick is logical time, in ticks since tick 0 of the world's clock.
type Tick uint64

// MaxTick is the greatest tick of any clock: JSON has greater numbers only roughly.
const MaxTick Tick = 1 << 53

// The calendar has the years 1678 to 2261, whose nanoseconds since 1970 fit into 64 bits: the
// first second of it, and the last nanosecond.
const (
	calendarBegins = -9_214_560_000 // seconds since 1970-01-01 UTC
	calendarEnd    = 9_214_646_400*int64(time.Second) - 1
)

// Plus returns the tick that comes so many ticks after t, and the greatest of 64 bits where
// that is more: such a tick never comes.
func (t Tick) Plus(ticks Tick) Tick {
	if ticks > math.MaxUint64-t {
		return math.MaxUint64
	}
	return t + ticks
}

// Clock maps ticks to the calendar: tick t is at Epoch + t × Tick.
type Clock struct {
	Epoch int64  `cbor:"epoch" json:"epoch"`                   // nanoseconds since 1970-01-01 UTC
	Tick  int64  `cbor:"tick" json:"tick"`                     // nanoseconds, at least 1; 0: a second
	Mode  string `cbor:"mode,omitempty" json:"mode,omitempty"` // ClockReal, or empty: simulated
}

// Modes of Clock.
const (
	ClockSimulated = "simulated" // time jumps to where something happens; a manifest has the empty text for it
	ClockReal      = "real"      // a tick comes when the wall clock has reached it
)

// Real reports whether ticks come by the wall clock.
func (c Clock) Real() bool { return c.Mode == ClockReal }

// Since returns the last tick that had come at a time, which is in nanoseconds since
// 1970-01-01 UTC; 0 where none had.
func (c Clock) Since(at int64) Tick {
	if at < c.Epoch {
		return 0
	}
	return min(Tick((uint64(at)-uint64(c.Epoch))/c.length()), c.Last())
}

// Last returns the last tick of the clock: the last of the year 2261, or MaxTick where that
// comes sooner. Nothing falls due after it.
func (c Clock) Last() Tick {
	if c.Epoch > calendarEnd {
		return 0
	}
	return min(MaxTick, Tick((uint64(calendarEnd)-uint64(c.Epoch))/c.length()))
}

// length is how long a tick is, in nanoseconds.
func (c Clock) length() uint64 { return uint64(max(1, cmp.Or(c.Tick, int64(time.Second)))) }

// At returns the calendar time of a tick in nanoseconds since 1970-01-01 UTC; of a tick that
// never comes, that of the last one.
func (c Clock) At(t Tick) int64 {
	return int64(uint64(c.Epoch) + uint64(min(t, c.Last()))*c.length())
}

// Ticks returns the number of whole ticks that last a duration, or a little longer.
func (c Clock) Ticks(d time.Duration) Tick {
	return Tick((uint64(max(d, 1))-1)/c.length() + 1)
}

// From returns the first tick that is not before a time, which is in nanoseconds since
// 1970-01-01 UTC. It may be after the last one.
func (c Clock) From(at int64) (Tick, error) {
	switch {
	case at < c.Epoch:
		return 0, errors.New("it is before tick 0, the epoch of the world's clock")
	case at == c.Epoch:
		return 0, nil
	default:
		return Tick((uint64(at)-uint64(c.Epoch)-1)/c.length() + 1), nil
	}
}

// ParseDuration reads a length of time greater than 0, as 90m or 24h.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is no duration: want one greater than 0, as 500ms, 90m or 24h", s)
	}
	return d, nil
}

// ParseTime reads a time of the calendar, as RFC 3339 has it; the seconds can be left
// out: 2026-12-24T18:00Z. It returns nanoseconds since 1970-01-01 UTC.
func ParseTime(s string) (int64, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04Z07:00", s)
	}
	if err != nil {
		return 0, fmt.Errorf("%q is no time such as 2026-12-24T18:00Z", s)
	}
	if sec := t.Unix(); sec < calendarBegins || sec > calendarEnd/int64(time.Second) {
		return 0, fmt.Errorf("the time %s is beyond the years 1678 to 2261", s)
	}
	return t.UnixNano(), nil
}
