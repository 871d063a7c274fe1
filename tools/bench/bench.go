package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/world/local"
)

// measured is what one run of some work cost.
type measured struct {
	Wall   time.Duration
	CPU    time.Duration // of all threads, user and system
	Allocs uint64        // heap objects
}

// measure runs work once, on a heap that has been collected.
func measure(work func() error) (measured, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(), time.Now()
	err := work()
	m := measured{Wall: time.Since(start), CPU: cpuTime() - cpu}
	runtime.ReadMemStats(&after)
	m.Allocs = after.Mallocs - before.Mallocs
	return m, err
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// figure is one line of a benchmark's answer.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Least float64 `json:"least,omitempty"` // over the rounds
	Most  float64 `json:"most,omitempty"`
	Reach string  `json:"reach,omitempty"` // what it should be
}

// median makes a figure of the values of all rounds.
func median(name, unit, reach string, values []float64) figure {
	slices.Sort(values)
	f := figure{Name: name, Unit: unit, Reach: reach, Value: values[len(values)/2]}
	if len(values) > 1 {
		f.Least, f.Most = values[0], values[len(values)-1]
	}
	return f
}

// scope is how often a benchmark measures, and on which disk.
type scope struct {
	rounds int
	dir    string
}

// command makes the command of a benchmark, which prints the figures that run returns,
// and its flags, to add to. The first line of the text is its short one.
func (s *scope) command(
	p *program, name, text, example string, rounds int, run func(context.Context, func(string, ...any)) ([]figure, error),
) (*cobra.Command, *pflag.FlagSet) {
	short, _, _ := strings.Cut(text, ".\n")
	cmd := &cobra.Command{Use: name, Short: short, Long: text, Example: example, Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		figures, err := run(cmd.Context(), p.note)
		if err != nil {
			return err
		}
		return p.figures(name, figures)
	}
	f := cmd.Flags()
	f.IntVar(&s.rounds, "rounds", rounds, "how often to measure")
	f.StringVar(&s.dir, "dir", "", "`DIR` to measure in, for its disk; a temporary one if not given")
	return cmd, f
}

// measure gives the work a directory that is gone afterwards, and returns the medians
// of what it has measured.
func (s *scope) measure(work func(dir string, r *rows) error) ([]figure, error) {
	dir, err := os.MkdirTemp(s.dir, "bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := newRows()
	if err := work(dir, r); err != nil {
		return nil, err
	}
	return r.medians(), nil
}

// repeat measures several rounds, each in a directory of its own.
func (s *scope) repeat(note func(string, ...any), dir string, round func(at string) error) error {
	for i := range s.rounds {
		note("round %d of %d", i+1, s.rounds)
		at := filepath.Join(dir, strconv.Itoa(i))
		if err := round(at); err != nil {
			return err
		}
		if err := os.RemoveAll(at); err != nil {
			return err
		}
	}
	return nil
}

// each is measure of nothing but rounds.
func (s *scope) each(note func(string, ...any), round func(dir string, r *rows) error) ([]figure, error) {
	return s.measure(func(dir string, r *rows) error {
		return s.repeat(note, dir, func(at string) error { return round(at, r) })
	})
}

// withEcho adds the live adapter that answers at once.
func withEcho(opts local.Options) local.Options {
	opts.Adapters = map[string]host.Factory{"echo": func(host.Setup) (host.Adapter, error) { return echo{}, nil }}
	return opts
}

// benchWorld makes a world for a benchmark, whose files are the map's.
func benchWorld(dir string, files map[string]string, opts local.Options) (*local.World, error) {
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	if err := local.Create(dir, local.Birth{ID: "bench"}, opts); err != nil {
		return nil, err
	}
	return local.Open(dir, opts)
}

// drive sends events in bulk and lets the world handle them, benchChunk of them a tick.
func drive(ctx context.Context, lw *local.World, load *load) error {
	for !load.done() {
		if _, _, err := lw.SubmitAll(ctx, load.next(benchChunk)); err != nil {
			return err
		}
		if err := lw.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}
