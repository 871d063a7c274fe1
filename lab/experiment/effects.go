package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// The file of answers has a JSON line before each attempt outside, synced, and one after it.
// An attempt that was begun and has no answer was under way when the process was killed:
// nobody can tell what came of it, and it is never made again. An attempt is known by its
// run's rules and seed, and by its intent: its step, which says what the cell has seen, its
// kind and params, and its number. So an experiment with other runs finds those that it
// shares with this one. Each line has its sum, so that no answer is lost, or another's, unseen.

// BudgetError says that the budget of an experiment is used up. Runs that need more have no
// result.
type BudgetError struct {
	Unit string // "calls", "tokens" or "micros"
	Most uint64
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget of the experiment is used up: effects.budget.%s is %d; raise it and type the same again: what is recorded costs nothing", e.Unit, e.Most)
}

// EffectError says that nothing answers an effect of a run.
type EffectError struct {
	Kind, Cell string
	Params     canon.Raw
	Mode       string
	UnderWay   bool // another process makes the attempt
}

func (e *EffectError) Error() string {
	return fmt.Sprintf("nothing answers %s of %s: %s", e.Kind, e.Cell, e.next())
}

// next says what to do.
func (e *EffectError) next() string {
	switch {
	case e.UnderWay:
		return "another process makes the attempt now; when that has ended, type the same again"
	case e.Mode == EffectsRecorded:
		return fmt.Sprintf("--live %s performs and records it", e.Kind)
	}
	return fmt.Sprintf("--live %s performs it, within effects: {budget: {calls: N}}, or have the adapter stub or recorded answer it in world.yaml", e.Kind)
}

// answers are what the outside has answered to all runs.
type answers struct {
	mode   string
	budget Budget
	live   manifest.Live // kinds that are performed, in EffectsLive
	worlds host.Config   // that adapters are made with, but for the manifest

	mu    sync.Mutex                      // guards what follows
	made  map[canon.Hash]*host.Performers // by what a manifest says of effects
	lines                                 // of the file
	known map[canon.Hash]*answered
	asked map[canon.Hash]*flight // attempts under way
	ended error                  // why no attempt is begun any more
	used  Budget
	holds Budget // of attempts under way

	syncing sync.Mutex // taken before mu
	synced  int64      // of size, what is durable

	underWay map[canon.Hash]bool // attempts that another process makes, as it was when the file was read

	beside io.Closer       // the lock beside the file, on systems where that has none of its own; else nil
	life   context.Context // of attempts, which outlive the runs that ask for them
	kill   context.CancelFunc
	flying sync.WaitGroup
}

// flight is an attempt under way. All runs that ask for it have its answer.
type flight struct {
	hold Budget
	end  int64         // of the line that says that it begins
	done chan struct{} // closed when what follows is there
	came *answered
	err  error // of writing it
}

// openAnswers opens the file of answers of an experiment whose results are in a directory.
func openAnswers(s *Spec, dir string, opts local.Options) (*answers, error) {
	a := &answers{
		mode: s.Effects.Mode, budget: s.Effects.Budget, live: s.Effects.Live, made: make(map[canon.Hash]*host.Performers),
		lines: lines{of: ofAnswers()}, known: make(map[canon.Hash]*answered), asked: make(map[canon.Hash]*flight),
	}
	a.life, a.kill = context.WithCancel(context.Background())
	a.worlds = host.Config{Dir: s.dir, Secrets: opts.Secrets, Adapters: opts.Adapters, Verifiers: opts.Verifiers, UnderWay: opts.UnderWay}
	if a.worlds.Secrets == nil {
		a.worlds.Secrets = host.Secrets(filepath.Join(s.dir, ".world", "secrets"))
	}
	if a.mode == EffectsStub {
		return a, nil
	}
	name := answersFile
	if s.Effects.Record != "" {
		dir, name = filepath.Dir(s.File), s.Effects.Record
	}
	if err := a.open(dir, name); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *answers) spent() Budget {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// endedError says that an attempt is not begun because the experiment ends.
type endedError struct{ why error }

func (e *endedError) Error() string { return "no attempt is begun any more: " + e.why.Error() }

// Unwrap returns the reason.
func (e *endedError) Unwrap() error { return e.why }

// stop has no attempt begun any more.
func (a *answers) stop(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended == nil {
		a.ended = why
	}
}

// errClosed is why no attempt is begun after all runs have ended.
var errClosed = errors.New("all runs have ended")

// leaveBehind is for how long adapters are waited for that ignore the end of their context.
const leaveBehind = 2 * time.Second

// finishAll lets the attempts under way end, within their timeouts, and tells of how many. From
// the end of ctx on they have the time that those of a world have when it is closed.
func (a *answers) finishAll(ctx context.Context, tell func(attempts int)) {
	a.stop(errClosed)
	if n := a.flights(); n > 0 && tell != nil {
		tell(n)
	}
	landed := make(chan struct{})
	go func() {
		a.flying.Wait()
		close(landed)
	}()
	select {
	case <-landed:
		return
	case <-ctx.Done():
	}
	for _, wait := range []time.Duration{host.DefaultGrace, leaveBehind} {
		timer := time.NewTimer(wait)
		select {
		case <-landed:
			timer.Stop()
			return
		case <-timer.C:
			a.kill()
		}
	}
}

func (a *answers) flights() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

func (a *answers) close() error {
	a.kill()
	var err error
	for _, p := range a.made {
		err = errors.Join(err, p.Close())
	}
	if a.beside != nil {
		err = errors.Join(err, a.beside.Close())
	}
	return errors.Join(err, a.lines.close())
}

// instead returns what answers the effects of a run that the adapters stub and recorded do
// not.
func (a *answers) instead(p Planned, r *rules, d *doubts) (map[string]host.Adapter, error) {
	out := make(map[string]host.Adapter)
	for kind, e := range r.manifest.Effects {
		if e.Adapter != "stub" && e.Adapter != "recorded" {
			out[kind] = nil
		}
	}
	if len(out) == 0 {
		return out, nil
	}
	hash, err := r.manifest.Hash()
	if err != nil {
		return nil, err
	}
	var performers *host.Performers
	if a.mode == EffectsLive {
		if performers, err = a.performers(r); err != nil {
			return nil, err
		}
	}
	for kind := range out {
		e := r.manifest.Effects[kind]
		out[kind] = &outside{
			answers: a, run: p, doubts: d, rules: hash, performers: performers, most: e.MaxCost,
			live: a.mode == EffectsLive && a.live.Has(kind, &e),
		}
	}
	return out, nil
}

// performers returns what performs the effects of a manifest: one for all runs whose
// manifests say the same of effects.
func (a *answers) performers(r *rules) (*host.Performers, error) {
	encoded, err := canon.Marshal([]any{r.manifest.Effects, r.manifest.Engines})
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := canon.Sum(encoded)
	if p, ok := a.made[key]; ok {
		return p, nil
	}
	cfg := a.worlds
	cfg.Manifest = r.manifest
	cfg.Content = r.content
	p, err := host.NewPerformers(cfg)
	if err == nil {
		a.made[key] = p
	}
	return p, err
}

// doubts are the intents of a run of which nobody could tell what came of an attempt, whatever
// their cells have heard since.
type doubts struct {
	mu  sync.Mutex
	all map[receipt.Key]bool
}

func (d *doubts) add(key receipt.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = make(map[receipt.Key]bool)
	}
	d.all[key] = true
}

// count returns how many intents of a run are in doubt, or were.
func (d *doubts) count(m *world.Moment) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := uint64(m.Status().Intents[receipt.StateInDoubt])
	for key := range d.all { // order cannot show: a sum
		if e, ok := m.Intent(key); !ok || e.State != receipt.StateInDoubt {
			n++
		}
	}
	return n
}

// outside answers the effects of one kind of a run.
type outside struct {
	*answers
	doubts     *doubts
	run        Planned
	rules      manifest.Hash
	live       bool             // they may be performed
	performers *host.Performers // nil: nothing is performed
	most       manifest.MaxCost // of one attempt
}

// Deterministic implements host.Deterministic: a run hears the same each time.
func (*outside) Deterministic() bool { return true }

// Perform implements host.Adapter.
func (o *outside) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	in := &call.Permit.Intent
	if o.mode == EffectsStub {
		return host.Result{}, &EffectError{Kind: in.Kind, Cell: in.Cell, Params: in.Params, Mode: o.mode}
	}
	x, f, err := o.find(o.key(&call.Permit), call)
	if f != nil {
		select {
		case <-f.done:
			x, err = f.came, f.err
		case <-ctx.Done(): // the run has ended, and the attempt goes on: others may want it
			err = ctx.Err()
		}
	}
	switch {
	case err != nil:
		return host.Result{}, err
	case x.Result == nil:
		o.doubts.add(call.Permit.Key)
		return host.Result{}, &host.DoubtError{Reason: x.Doubt}
	}
	return x.Result.result(), nil
}

// find returns what an attempt has come to, or the attempt under way: who is the first to ask
// begins it.
func (o *outside) find(key canon.Hash, call host.Call) (*answered, *flight, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if x, ok := o.known[key]; ok && !o.underWay[key] {
		return x, nil, nil
	}
	if f, ok := o.asked[key]; ok {
		return nil, f, nil
	}
	in := &call.Permit.Intent
	if !o.live {
		return nil, nil, &EffectError{in.Kind, in.Cell, in.Params, EffectsRecorded, o.underWay[key]}
	}
	f := &flight{hold: reserved(&o.most), done: make(chan struct{})}
	if err := o.beginAttempt(&answered{Key: key, Run: o.run.ID, Cell: in.Cell, Kind: in.Kind, Begun: true, Hold: &f.hold}, f.hold); err != nil {
		return nil, nil, err
	}
	f.end = o.size
	o.asked[key] = f
	o.flying.Go(func() { o.makeAttempt(f, key, call) })
	return nil, f, nil
}

func (o *outside) key(p *receipt.Permit) canon.Hash {
	b := append([]byte("worldkernel/experiment/effect/v1"), o.rules[:]...)
	b = append(strconv.AppendUint(b, o.run.Seed, 10), 0)
	b = append(append(b, p.Step...), 0)
	b = append(append(b, p.Kind...), 0)
	b = append(strconv.AppendUint(b, p.Attempt, 10), 0)
	return canon.Sum(append(b, p.Params...))
}

// makeAttempt makes an attempt outside, once, whichever runs end meanwhile. That it begins is durable before.
func (o *outside) makeAttempt(f *flight, key canon.Hash, call host.Call) {
	defer close(f.done)
	if f.err = o.sync(f.end); f.err != nil {
		return
	}
	if tell := o.worlds.UnderWay; tell != nil {
		defer tell(call.Permit)()
	}
	result, failed := o.performers.Perform(o.life, call)
	x := &answered{Key: key, Run: o.run.ID}
	if failed != nil {
		x.Doubt = cmp.Or(failed.Error(), "nobody can tell what came of it")
		if o.life.Err() != nil {
			x.Doubt = fmt.Sprintf("the experiment was interrupted, and the attempt had not ended %s later: %s", host.DefaultGrace, x.Doubt)
		}
	} else {
		x.Result = &answer{result, result.Payload}
	}
	f.came, f.err = x, o.finish(x, f.hold)
}

// reserved is what an attempt holds of the budget while it is under way.
func reserved(most *manifest.MaxCost) Budget {
	b := Budget{Calls: max(most.Calls, 1)}
	if most.Tokens != nil {
		b.Tokens = *most.Tokens
	}
	if most.Micros != nil {
		b.Micros = *most.Micros
	}
	return b
}

// beginAttempt holds a part of the budget and writes that an attempt begins. It is called with mu
// held.
func (a *answers) beginAttempt(x *answered, hold Budget) error {
	if a.ended != nil {
		return &endedError{a.ended}
	}
	needs := a.used
	needs.add(a.holds)
	needs.add(Budget{hold.Calls, max(hold.Tokens, 1), max(hold.Micros, 1)})
	for _, u := range []struct {
		unit        string
		needs, most uint64
	}{
		{"calls", needs.Calls, a.budget.Calls}, {"tokens", needs.Tokens, a.budget.Tokens}, {"micros", needs.Micros, a.budget.Micros},
	} {
		bounds := u.most > 0 || u.unit == "calls" // what is not named of the others is not bounded
		if bounds && u.needs > u.most {
			return &BudgetError{u.unit, u.most}
		}
	}
	if err := a.write(x); err != nil {
		return err
	}
	a.holds.add(hold)
	return nil
}

// finish writes what came of an attempt, and gives back what it did not use. No run hears of it before
// it is durable.
func (a *answers) finish(x *answered, held Budget) error {
	a.mu.Lock()
	err := a.write(x)
	end := a.size
	a.mu.Unlock()
	if err == nil {
		err = a.sync(end)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.holds.Calls -= held.Calls
	a.holds.Tokens -= held.Tokens
	a.holds.Micros -= held.Micros
	a.used.add(x.used(held))
	a.known[x.Key] = x
	delete(a.asked, x.Key)
	return err
}
