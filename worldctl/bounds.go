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
	f.Var(&bound[uint64]{&c.bounds.Gas, boundType, decimal, parseDecimal}, "max-gas", "let a step of other people's rules use `GAS`, whatever they allow")
	f.Var(sizeBound(&c.bounds.Memory), "max-memory", "let other people's rules use `SIZE` of memory, as 1GiB")
}

// addTime adds the flag of how long that may take.
func (c *cli) addTime(cmd *cobra.Command) {
	cmd.Flags().Var(&bound[time.Duration]{&c.bounds.Time, spanType, time.Duration.String, time.ParseDuration}, "max-time", "end it after this `DURATION`, as 1h")
}

// addSize adds the flag of how large what is read may be.
func (c *cli) addSize(cmd *cobra.Command) {
	cmd.Flags().Var(sizeBound(&c.bounds.Size), "max-size", "read, or unpack, at most `SIZE`, as 64GiB")
}

// timed bounds the time of what runs under ctx.
func (c *cli) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.bounds.Time, &local.TimeError{Bound: c.bounds.Time})
}

// Types of flags of bounds.
const (
	boundType = "bound"
	spanType  = "span"
	sizeType  = "size"
	heldType  = "memory"
)

var errNoBound = errors.New("a bound is not 0")

// bound is the value of a flag that is not 0, which would bound nothing, or all.
type bound[T uint64 | time.Duration] struct {
	to    *T
	kind  string
	text  func(T) string
	parse func(text string) (T, error)
}

// Type implements pflag.Value.
func (b *bound[T]) Type() string { return b.kind }

// String implements pflag.Value.
func (b *bound[T]) String() string { return b.text(*b.to) }

// Set implements pflag.Value.
func (b *bound[T]) Set(text string) error {
	n, err := b.parse(text)
	if err != nil || n <= 0 {
		return errNoBound
	}
	*b.to = n
	return nil
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func parseDecimal(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }

// sizeBound is a number of bytes, with a unit if there is one.
func sizeBound(to *uint64) *bound[uint64] { return &bound[uint64]{to, sizeType, sizeText, parseSize} }

func sizeText(n uint64) string {
	for _, u := range byteUnits() {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatUint(n/u.size, 10) + u.name
		}
	}
	return decimal(n)
}

func parseSize(text string) (uint64, error) {
	number, unit := text, uint64(1)
	for _, u := range byteUnits() {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = rest, u.size
			break
		}
	}
	n, err := parseDecimal(number)
	if n > math.MaxInt64/unit {
		return 0, errNoBound
	}
	return n * unit, err
}

// leastHeld is a size of memory that a world can work in: in less, what it has put aside to
// make room is what it needs next, all the time.
const leastHeld = 1 << 20

func parseHeld(text string) (uint64, error) {
	size, err := parseSize(text)
	if size < leastHeld {
		return 0, errNoBound
	}
	return size, err
}

// memoryFlag lets a verb that runs worlds for long, or computes them again, say how much of
// each is in memory.
func (c *cli) memoryFlag(cmd *cobra.Command) {
	c.memory = world.DefaultMemory
	cmd.Flags().Var(&bound[uint64]{&c.memory, heldType, sizeText, parseHeld}, "memory", "have up to about `SIZE` of a world's cells and intents in memory, 1MiB or more, and the others on its disk")
	c.memory = 0 // nobody has asked for it: the owner of the world may have been told another
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
