package local

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/worldkernel/worldkernel/world"
)

// Bounds are what whoever runs rules that he has not put in force allows them, whatever
// their limits say: those of candidates, of bundles and of journals that others have
// exported. Zero fields take those of DefaultBounds.
type Bounds struct {
	world.Bounds

	Time time.Duration // of the whole: a verification, an import, a shadow
	Size uint64        // bytes that are read, or unpacked
}

// DefaultBounds suit a laptop.
func DefaultBounds() Bounds {
	return Bounds{Bounds: world.DefaultBounds(), Time: 10 * time.Minute, Size: 16 << 30}
}

func (b Bounds) withDefaults() Bounds {
	d := DefaultBounds()
	return Bounds{
		Bounds: world.Bounds{Gas: cmp.Or(b.Gas, d.Gas), Memory: cmp.Or(b.Memory, d.Memory)},
		Time:   cmp.Or(b.Time, d.Time), Size: cmp.Or(b.Size, d.Size),
	}
}

// TimeError says that something was not done within Bounds.Time.
type TimeError struct{ Bound time.Duration }

func (e *TimeError) Error() string {
	return fmt.Sprintf("it takes longer than the bound of %s", e.Bound)
}

// SizeError says that more would have been read, or unpacked, than Bounds.Size.
type SizeError struct{ Bound uint64 }

func (e *SizeError) Error() string {
	return fmt.Sprintf("the file has, or unpacks to, more than the bound of %d bytes", e.Bound)
}

// within bounds the time of what runs under ctx: its cause is a *TimeError then.
func (b Bounds) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, b.Time, &TimeError{b.Time})
}
