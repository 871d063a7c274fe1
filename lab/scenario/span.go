package scenario

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// Span is how long something takes: a number of ticks, or a duration. The zero value is no
// time.
type Span struct {
	Ticks uint64
	Lasts time.Duration
}

// UnmarshalYAML reads 5 or "2h".
func (s *Span) UnmarshalYAML(n *yaml.Node) (err error) {
	if s.Ticks, err = strconv.ParseUint(n.Value, 10, 53); err == nil {
		return nil
	}
	if s.Lasts, err = manifest.ParseDuration(n.Value); err != nil {
		return fmt.Errorf("want a number of ticks or a duration such as 2h, not %q", n.Value)
	}
	return nil
}

func (s Span) in(c manifest.Clock) manifest.Tick {
	if s.Lasts == 0 {
		return manifest.Tick(s.Ticks)
	}
	return c.Ticks(s.Lasts)
}

// Moment is a tick or a time; the zero value is at once.
type Moment struct{ when world.When }

// UnmarshalYAML reads 5 or 2026-12-24T18:00Z.
func (m *Moment) UnmarshalYAML(n *yaml.Node) error {
	if tick, err := strconv.ParseUint(n.Value, 10, 53); err == nil {
		m.when.At = manifest.Tick(tick)
		return nil
	}
	at, err := manifest.ParseTime(n.Value)
	if err != nil {
		return fmt.Errorf("want a tick or a time such as 2026-12-24T18:00Z, not %q", n.Value)
	}
	m.when.Time = &at
	return nil
}

// notYet is a tick that never comes.
const notYet = manifest.Tick(math.MaxUint64)

// The ends of a world that goes on and on.
var (
	errSteps = errors.New("more steps than the scenario allows")
	errTicks = errors.New("more ticks than the scenario allows")
)
