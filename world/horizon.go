package world

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/worldkernel/worldkernel/manifest"
)

// ErrTooFar says that whoever submits an event may not submit it for so late a tick.
var ErrTooFar = errors.New("that is further ahead than you may submit")

// Horizon bounds how far ahead of now an event may fall due. With a clock that jumps, whoever
// submits an event for later moves the time of the whole world to it.
//
// The zero value is for callers that may submit, and decide nothing: where time jumps, less far
// than the approval_ttl of the rules in force, and at once only while something waits for
// approval. So no event that they submit for later takes time from a person who decides.
type Horizon struct {
	Ticks manifest.Tick // at most
	For   time.Duration // or so long, in whole ticks
	Said  bool          // false: neither counts
}

// ParseHorizon reads a number of ticks, or a duration.
func ParseHorizon(text string) (Horizon, error) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return Horizon{Ticks: manifest.Tick(n), Said: true}, nil
	}
	d, err := manifest.ParseDuration(text)
	if err != nil {
		return Horizon{}, fmt.Errorf("%q is no number of ticks, and no duration as 90m or 24h", text)
	}
	return Horizon{For: d, Said: true}, nil
}

// String returns the text that ParseHorizon reads; empty: nothing was said.
func (a Horizon) String() string {
	switch {
	case !a.Said:
		return ""
	case a.For > 0:
		return a.For.String()
	default:
		return strconv.FormatUint(uint64(a.Ticks), 10)
	}
}

// within refuses a tick that is too far ahead.
func (m *Moment) within(a *Horizon, at manifest.Tick) error {
	rules, now := m.k.rules.manifest, m.k.now
	if a == nil || at <= now {
		return nil
	}
	ticks := a.Ticks
	if a.For > 0 {
		ticks = rules.Clock.Ticks(a.For)
	}
	last, why := now.Plus(ticks), "as your token says"
	if !a.Said {
		if rules.Clock.Real() {
			return nil // time does not jump
		}
		last, why = now.Plus(rules.Defaults.ApprovalTTL-1), "before what comes to wait for approval now would expire"
		if _, waits := m.k.ledger.NextDeadline(); waits { // two events would do: one for its last tick, one at once
			last, why = now, "while something waits for approval"
		}
	}
	if at > last {
		return refuse(ErrTooFar, "at", "it would be tick %d, and the last is tick %d, %s", at, last, why)
	}
	return nil
}
