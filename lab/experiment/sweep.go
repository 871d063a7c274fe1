package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/memory"
)

// Options say how an experiment is carried out.
type Options struct {
	Dir     string                              // of the results, which is made where it is not there
	Worlds  local.Options                       // Go reducers, adapters and secrets
	Jobs    int                                 // runs at once; 0: as many as there are cores, live 32 at least
	Runs    uint64                              // only the first so many of the plan; 0: all
	Formats []string                            // of the tables, besides those that are there; nil: all
	Ended   func(r *Result, done, total uint64) // told of each run that has ended, by one goroutine at a time; nil: nobody is
	Waiting func(attempts int)                  // told when all runs have ended and so many live attempts have not; nil: nobody is
	Begun   func(done, total uint64)            // told before the first run how many have ended before; nil: nobody is
}

// Outcome says what came of carrying out an experiment.
type Outcome struct {
	Runs   uint64   `json:"runs"`   // of the experiment
	Done   uint64   `json:"done"`   // that have a result, failed ones too
	Before uint64   `json:"before"` // of those, that had one before and were not made again
	Failed []Failed `json:"failed"` // in the order of runs
	Tally           // of what went wrong within runs
	Sent   uint64   `json:"sent"`  // events of the inputs, to all runs
	Spent  Budget   `json:"spent"` // by live effects, of all runs and processes so far
	Files  []string `json:"files"` // of tables
}

// Failed is a run that has failed.
type Failed struct {
	Run   RunID  `json:"run"`
	Error string `json:"error"`
}

// Run carries out an experiment: all runs that have no result yet. What has ended is kept
// whatever ends the process, and the same call goes on. The tables hold what has ended, in the
// order of runs: where all has, they are the same, byte for byte, however it came to that.
// A run that fails keeps no other back, and is in the Outcome; the error says why the
// experiment could not go on.
func Run(ctx context.Context, s *Spec, o Options) (out *Outcome, err error) {
	r, err := openResults(o.Dir, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	answers, err := openAnswers(s, o.Dir, o.Worlds)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, answers.close()) }()
	w := &sweep{spec: s, opts: o, results: r, answers: answers, total: s.Runs()}
	if o.Runs > 0 {
		w.total = min(w.total, o.Runs)
	}
	w.done = r.kept(w.total)
	out = &Outcome{Runs: s.Runs(), Before: r.kept(s.Runs())}
	err = w.makeRuns(ctx)
	answers.finishAll(ctx, o.Waiting)
	files, failed := r.writeTables(r.formats(o.Formats))
	out.Files, err = files, errors.Join(err, failed)
	out.Spent = answers.spent()
	out.count(r)
	return out, err
}

// count fills in what the results of runs have come to.
func (o *Outcome) count(r *results) {
	o.Done = uint64(len(r.of))
	for id := RunID(1); uint64(id) <= o.Runs; id++ {
		e := r.of[id]
		if e.failed != "" {
			o.Failed = append(o.Failed, Failed{id, e.failed})
		}
		o.Sent += e.sent
		o.add(e.wrong)
	}
}

// sweep is an experiment while it is carried out.
type sweep struct {
	spec    *Spec
	opts    Options
	answers *answers
	total   uint64

	mu      sync.Mutex // guards what follows
	results *results
	next    RunID
	done    uint64 // runs up to total with a result that stays, or that was made here
	failed  error  // why it does not go on
}

// liveJobs is how many runs there are at once whose effects are performed, whatever cores there are.
const liveJobs = 32

// makeRuns makes the runs that have no result.
func (w *sweep) makeRuns(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := w.opts.Jobs
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
		if w.spec.Effects.Mode == EffectsLive { // such runs wait, most of the time
			jobs = max(jobs, liveJobs)
		}
	}
	defer context.AfterFunc(ctx, func() { w.answers.stop(context.Cause(ctx)) })()
	if w.opts.Begun != nil {
		w.opts.Begun(w.done, w.total)
	}
	var running sync.WaitGroup
	for range jobs {
		running.Go(func() {
			for id := w.takeRun(); id > 0 && ctx.Err() == nil; id = w.takeRun() {
				if err := w.one(ctx, w.spec.Planned(id)); err != nil {
					w.fail(err)
					w.answers.stop(err)
					cancel()
				}
			}
		})
	}
	running.Wait()
	if w.failed != nil {
		return w.failed
	}
	return context.Cause(ctx)
}

// takeRun returns a run that has no result that stays, each once; 0: there is none.
func (w *sweep) takeRun() RunID {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uint64(w.next) < w.total {
		w.next++
		if !w.results.has(w.next) {
			return w.next
		}
	}
	return 0
}

func (w *sweep) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil || errors.Is(w.failed, context.Canceled) {
		w.failed = err
	}
}

// one makes one run and keeps its result.
func (w *sweep) one(ctx context.Context, p Planned) error {
	result, err := w.spec.run(ctx, p, w.opts.Worlds, w.answers)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.results.add(result); err != nil {
		return err
	}
	w.done++
	if w.opts.Ended != nil {
		w.opts.Ended(result, w.done, w.total)
	}
	return nil
}

// run makes a run in memory.
func (s *Spec) run(ctx context.Context, p Planned, opts local.Options, a *answers) (result *Result, err error) {
	c, err := s.newCourse(p)
	if err != nil {
		return nil, err
	}
	w, err := s.inMemory(ctx, c, opts, a)
	if err != nil {
		return nil, fmt.Errorf("run %d: %w", p.ID, err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return c.live(ctx, w.World)
}

// live drives a world to its end. The error is one that leaves no result.
func (c *course) live(ctx context.Context, w *world.World) (*Result, error) {
	err := c.drive(ctx, w)
	if err != nil && (!errors.As(err, new(*RunError)) || errors.As(err, new(*BudgetError)) || errors.As(err, new(*endedError))) {
		return nil, err
	}
	if synced := w.Sync(); synced != nil { // the execution hash is of what a store has
		return nil, synced
	}
	return c.result(&w.Moment, err)
}

// inMemory makes the world of a run.
func (s *Spec) inMemory(ctx context.Context, c *course, opts local.Options, a *answers) (*memory.World, error) {
	p := c.plan
	rules, err := s.rulesOf(p.Variant, p.Point)
	if err != nil {
		return nil, err
	}
	mo := memory.Options{Seed: &p.Seed, Reducers: opts.Reducers, Paranoid: opts.Paranoid, Life: opts.Life}
	instead, err := a.instead(p, &rules, &c.doubts)
	if err != nil {
		return nil, err
	}
	mo.Host = hostOf(instead)
	if s.from != nil {
		amend, err := rules.amend(&s.base)
		if err != nil {
			return nil, err
		}
		return s.from.fork(ctx, amend, mo)
	}
	return memory.New(rules.manifest, rules.contents, mo)
}
