package worldctl

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// addBounds adds the flags of what rules may use that nobody here has put in force.
func (c *cli) addBounds(cmd *cobra.Command) {
	c.bounds = local.DefaultBounds()
	f := cmd.Flags()
	f.Var((*bound)(&c.bounds.Gas), "max-gas", "let a step of other people's rules use `GAS`, whatever they allow")
	f.Var((*byteSize)(&c.bounds.Memory), "max-memory", "let other people's rules use `SIZE` of memory, as 1GiB")
}

// addTime adds the flag of how long that may take.
func (c *cli) addTime(cmd *cobra.Command) {
	cmd.Flags().Var((*span)(&c.bounds.Time), "max-time", "end it after this `DURATION`, as 1h")
}

// addSize adds the flag of how large what is read may be.
func (c *cli) addSize(cmd *cobra.Command) {
	cmd.Flags().Var((*byteSize)(&c.bounds.Size), "max-size", "read, or unpack, at most `SIZE`, as 64GiB")
}

// timed bounds the time of what runs under ctx.
func (c *cli) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.bounds.Time, &local.TimeError{Bound: c.bounds.Time})
}

// Types of flags of bounds. 0 would bound nothing, or all.
const (
	boundType = "bound"
	spanType  = "span"
	sizeType  = "size"
	heldType  = "memory"
)

var errNoBound = errors.New("a bound is not 0")

// bound is the value of a flag: a number that is not 0.
type bound uint64

// Type implements pflag.Value.
func (*bound) Type() string { return boundType }

// String implements pflag.Value.
func (b *bound) String() string { return strconv.FormatUint(uint64(*b), 10) }

// Set implements pflag.Value.
func (b *bound) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return errNoBound
	}
	*b = bound(n)
	return nil
}

// span is the value of a flag: a duration that is not 0.
type span time.Duration

// Type implements pflag.Value.
func (*span) Type() string { return spanType }

// String implements pflag.Value.
func (s *span) String() string { return time.Duration(*s).String() }

// Set implements pflag.Value.
func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errNoBound
	}
	*s = span(d)
	return nil
}

// memoryFlag lets a verb that runs worlds for long, or computes them again, say how much of
// each is in memory.
func (c *cli) memoryFlag(cmd *cobra.Command) {
	c.memory = world.DefaultMemory
	cmd.Flags().Var(&c.memory, "memory", "have up to about `SIZE` of a world's cells and intents in memory, 1MiB or more, and the others on its disk")
	c.memory = 0 // nobody has asked for it: the owner of the world may have been told another
}

// byteSize is the value of a flag: a number of bytes, with a unit if there is one.
type byteSize uint64

// Type implements pflag.Value.
func (*byteSize) Type() string { return sizeType }

// String implements pflag.Value.
func (s *byteSize) String() string {
	for _, u := range byteUnits() {
		if n := uint64(*s); n >= u.size && n%u.size == 0 {
			return strconv.FormatUint(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatUint(uint64(*s), 10)
}

// Set implements pflag.Value.
func (s *byteSize) Set(text string) error {
	number, unit := text, uint64(1)
	for _, u := range byteUnits() {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = rest, u.size
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || n == 0 || n > math.MaxInt64/unit {
		return errNoBound
	}
	*s = byteSize(n * unit)
	return nil
}

// heldSize is a byteSize of memory that a world can work in: in less, what it has put aside to
// make room is what it needs next, all the time.
type heldSize uint64

const leastHeld = 1 << 20

// Type implements pflag.Value.
func (*heldSize) Type() string { return heldType }

// String implements pflag.Value.
func (s *heldSize) String() string { return (*byteSize)(s).String() }

// Set implements pflag.Value.
func (s *heldSize) Set(text string) error {
	var size byteSize
	if err := size.Set(text); err != nil {
		return err
	}
	if size < leastHeld {
		return errNoBound
	}
	*s = heldSize(size)
	return nil
}

// byteUnits are the units of sizes, the largest first.
func byteUnits() []byteUnit {
	return []byteUnit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
}

type byteUnit struct {
	name string
	size uint64
}

// sampleEvery is how often the memory of this process is looked at.
const sampleEvery = 10 * time.Millisecond

// inMemory keeps this process within c.bounds.Memory: ctx ends with a
// *world.BoundError where it holds too much. progress is that of the work, and says how
// much it would take; stop ends the watch. The rest of the process has to be idle.
func (c *cli) inMemory(ctx context.Context, what string, progress func(done, all uint64)) (_ context.Context, counted func(done, all uint64), stop func()) {
	most := c.bounds.Memory
	before := debug.SetMemoryLimit(int64(most - most/collectorShare))
	ctx, cancel := context.WithCancelCause(ctx)
	var done, all atomic.Uint64
	var watch sync.WaitGroup
	watch.Go(func() {
		for range ticks(ctx, sampleEvery) {
			held := heldInHeap()
			if held <= most-most/heapShare {
				continue
			}
			e := &world.BoundError{Name: "memory", Bound: most, What: what, At: journal.Seq(done.Load())}
			if n := done.Load(); n > 0 && all.Load() > n {
				e.Needs = uint64(float64(held) / float64(n) * float64(all.Load()) * heapShare / (heapShare - 1))
			}
			cancel(e)
		}
	})
	counted = func(n, of uint64) {
		done.Store(n)
		all.Store(of)
		progress(n, of)
	}
	return ctx, counted, func() {
		cancel(nil)
		watch.Wait()
		debug.SetMemoryLimit(before)
	}
}

// Shares of the bound of memory that are no heap in use: what the collector has not
// collected yet, and what Go and the program need besides.
const (
	heapShare      = 4
	collectorShare = 8
)

// heldInHeap returns how many bytes were in use when the collector last looked.
func heldInHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// ticks yields until ctx ends, after each span.
func ticks(ctx context.Context, span time.Duration) func(func() bool) {
	return func(yield func() bool) {
		t := time.NewTicker(span)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if !yield() {
					return
				}
			}
		}
	}
}
