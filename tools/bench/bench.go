package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// measured is what one run of some work cost.
type measured struct {
	Wall   time.Duration
	CPU    time.Duration // of all threads, user and system
	Allocs uint64        // heap objects
}

// measure runs work once, on a heap that has been collected.
func measure(work func()) measured {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := cpuTime(), time.Now()
	work()
	m := measured{Wall: time.Since(start), CPU: cpuTime() - cpu}
	runtime.ReadMemStats(&after)
	m.Allocs = after.Mallocs - before.Mallocs
	return m
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
	Text  string  `json:"text,omitempty"`  // what is said instead of a value
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

// run is one run of a benchmark: where it measures, and what it has measured so far.
type run struct {
	dir     string // gone afterwards
	figures []figure
	values  map[string][]float64 // by figure, of all rounds
	failed  error
}

// work is what a benchmark measures.
type work func(ctx context.Context, r *run)

// must ends a run where something went wrong. It is for the goroutine of the work
// alone, and ends that: what has been deferred is done.
func (r *run) must(err error) {
	if err != nil {
		r.failed = err
		runtime.Goexit()
	}
}

// add adds a figure, or the value of another round to it.
func (r *run) add(name, unit, reach string, value float64) {
	if _, ok := r.values[name]; !ok {
		r.figures = append(r.figures, figure{Name: name, Unit: unit, Reach: reach})
	}
	r.values[name] = append(r.values[name], value)
}

// say adds what has no value, once for all rounds.
func (r *run) say(name, text string) {
	if f := (figure{Name: name, Text: text}); !slices.Contains(r.figures, f) {
		r.figures = append(r.figures, f)
	}
}

// at returns a path below the run's directory.
func (r *run) at(name string) string { return filepath.Join(r.dir, name) }

// in does work in a directory below, which is gone afterwards.
func (r *run) in(name string, work func()) {
	outer := r.dir
	r.dir = r.at(name)
	work()
	r.must(os.RemoveAll(r.dir))
	r.dir = outer
}

// scope is how often a benchmark measures, and on which disk.
type scope struct {
	rounds int
	dir    string
	note   func(format string, args ...any) // tells whoever waits how far it is

	profiles string // where the CPU profile of each window goes; "": nowhere
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
	r := &run{dir: dir, values: make(map[string][]float64)}
	var working sync.WaitGroup
	working.Go(func() { w(ctx, r) })
	working.Wait()
	for i, f := range r.figures {
		if f.Text != "" {
			continue
		}
		r.figures[i] = median(f.Name, f.Unit, f.Reach, r.values[f.Name])
	}
	return r.figures, r.failed
}

// profile adds the flag by which the parts of a benchmark leave their profiles.
func (s *scope) profile(f *pflag.FlagSet) {
	f.StringVar(&s.profiles, "profiles", "", "`DIR` for a CPU profile of each window, to compare by go tool pprof -diff_base")
}

// measurePart measures work like measure, and leaves a profile of it where one is wanted.
func (s *scope) measurePart(r *run, name string, work func()) measured {
	if s.profiles == "" {
		return measure(work)
	}
	f, err := os.Create(filepath.Join(s.profiles, name+".pprof"))
	r.must(err)
	m := measure(func() {
		r.must(pprof.StartCPUProfile(f))
		work()
		pprof.StopCPUProfile()
	})
	r.must(f.Close())
	return m
}

// each is work in rounds, each in a directory of its own.
func (s *scope) each(round work) work {
	return func(ctx context.Context, r *run) {
		for i := range s.rounds {
			s.note("round %d of %d", i+1, s.rounds)
			r.in(strconv.Itoa(i), func() { round(ctx, r) })
		}
	}
}
