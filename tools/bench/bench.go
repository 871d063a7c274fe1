package main

import (
	"context"
	"fmt"
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

// rows gathers the values of figures over the rounds.
type rows struct {
	figures []figure
	values  map[string][]float64
}

func (r *rows) add(name, unit, reach string, value float64) {
	if _, ok := r.values[name]; !ok {
		r.figures = append(r.figures, figure{Name: name, Unit: unit, Reach: reach})
	}
	r.values[name] = append(r.values[name], value)
}

func (r *rows) medians() []figure {
	for i, f := range r.figures {
		r.figures[i] = median(f.Name, f.Unit, f.Reach, r.values[f.Name])
	}
	return r.figures
}

// work is what a benchmark measures, in a directory of its own.
type work func(ctx context.Context, dir string, r *rows) error

// scope is how often a benchmark measures, and on which disk.
type scope struct {
	rounds int
	dir    string
	note   func(format string, args ...any) // tells whoever waits how far it is
}

// command makes the command of a benchmark, which prints what its work measures, and
// its flags, to add to. The first line of the text is its short one.
func (s *scope) command(p *program, name, text, example string, rounds int, w work) (*cobra.Command, *pflag.FlagSet) {
	s.note = p.note
	short, _, _ := strings.Cut(text, ".\n")
	cmd := &cobra.Command{Use: name, Short: short, Long: text, Example: example, Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		figures, err := s.measure(cmd.Context(), w)
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
func (s *scope) measure(ctx context.Context, w work) ([]figure, error) {
	dir, err := os.MkdirTemp(s.dir, "bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := &rows{values: make(map[string][]float64)}
	if err := w(ctx, dir, r); err != nil {
		return nil, err
	}
	return r.medians(), nil
}

// each is work in rounds, each in a directory of its own.
func (s *scope) each(round work) work {
	return func(ctx context.Context, dir string, r *rows) error {
		for i := range s.rounds {
			s.note("round %d of %d", i+1, s.rounds)
			at := filepath.Join(dir, strconv.Itoa(i))
			if err := round(ctx, at, r); err != nil {
				return err
			}
			if err := os.RemoveAll(at); err != nil {
				return err
			}
		}
		return nil
	}
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

// accounts makes a world whose accounts are reduced in Go.
func accounts(dir string) (*local.World, error) {
	return benchWorld(dir, map[string]string{
		local.ManifestFile: fmt.Sprintf(benchManifest, `engine: go, name: account, version: "1"`),
	}, benchOptions())
}

// replay measures the replay of a world.
func replay(lw *local.World) (measured, error) {
	return measure(func() error {
		_, err := lw.Replay(0, nil)
		return err
	})
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
