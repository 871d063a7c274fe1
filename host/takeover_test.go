package host_test

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// contest is a world that one owner after the other has, and whose attempts are in a table.
type contest struct {
	t       *testing.T
	shared  shared
	journal *worldtest.Journal
	made    atomic.Int64 // how often its effect was performed
}

// shared is where the owners of a world keep its attempts, and the time that goes by there.
type shared struct {
	log   func() journal.Log // as one more process has it
	lease time.Duration      // by which it is taken over; that of its hosts is longer
	quiet func(h *host.Host) // returns when nothing goes on any more in one that has no world
}

// inMemory is in a bubble of time.
func inMemory() shared {
	s := &logtest.Server{Lease: host.DefaultLease / 10}
	return shared{s.Log, s.Lease, func(*host.Host) { synctest.Wait() }}
}

// onPostgres is where time is real.
func onPostgres(t *testing.T, lease time.Duration) shared {
	t.Helper()
	url, key := pgtest.URL(t), make([]byte, 32)
	require.NoError(t, pglog.Init(t.Context(), url))
	s, err := pglog.Open(t.Context(), url, pglog.Options{Lease: lease})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.NoError(t, s.Create(t.Context(), town, key))
	return shared{
		func() journal.Log { return s.World(town, pglog.Claim{Key: key, Take: true}) },
		lease,
		func(h *host.Host) { _ = h.Close() },
	}
}

// contender is one of its owners.
type contender struct {
	*owned
	table   *table
	perform func() // while it performs; nil: nothing
}

// takeOver has another process own the world, which it opens where it is there.
func (x *contest) takeOver(stop func(*contender)) *contender {
	x.t.Helper()
	loaded, err := source.Load("../world/worldtest/testdata/bots/world.yaml")
	require.NoError(x.t, err)
	m := loaded.Manifest.WithDefaults()
	e := m.Effects["tool.a"]
	e.Adapter, e.Config, e.Files, e.OnInDoubt = "live", nil, nil, manifest.InDoubtAsk
	m.Effects["tool.a"] = e
	c := &contender{owned: &owned{t: x.t}, table: ownLog(x.t, x.shared.log())}
	if stop != nil {
		stop(c)
	}
	perform := func(ctx context.Context, _ host.Call) (host.Result, error) {
		x.made.Add(1)
		if c.perform != nil {
			c.perform()
		}
		return host.Result{Status: receipt.StatusOK}, ctx.Err()
	}
	c.cfg = world.Config{
		Journal: x.journal, History: x.journal, Keys: worldtest.Keyring(x.t, town),
		NewHost: func(id string, m *manifest.Manifest) (world.Host, error) {
			c.owner, err = host.New(host.Config{
				World: id, Manifest: m, Content: x.journal.Blob, Keys: worldtest.Keyring(x.t, town), Attempts: c.table,
				Adapters: map[string]host.Factory{"live": func(host.Setup) (host.Adapter, error) { return outside(perform), nil }},
			})
			x.t.Cleanup(func() { _ = c.owner.Close() }) // whose world is another's, perhaps
			return c.owner, err
		},
	}
	if x.journal.Head().ID > 0 {
		c.World, err = world.Open(c.cfg)
	} else {
		c.World, err = world.Create(c.cfg, world.Genesis{ID: town, Seed: m.Seed, Manifest: &m, Contents: loaded.Contents})
	}
	require.NoError(x.t, err)
	return c
}

func (c *contender) submit() {
	c.t.Helper()
	_, err := c.Submit(c.t.Context(), world.Submission{Name: "go", Data: data(c.t, `{"to": "a", "do": [{"effect": "tool.a", "param": "x"}]}`)})
	require.NoError(c.t, err)
}

// settle drives until nothing more happens.
func (c *contender) settle() receipt.Entry {
	c.t.Helper()
	for {
		c.drive()
		if e := c.Intents()[0]; e.State != receipt.StateInFlight {
			return e
		}
		require.NoError(c.t, c.Wait(c.t.Context()))
	}
}

type takeoverMoment int

const (
	beforeAll takeoverMoment = iota // the first owner stops before it does anything
	journaled                       // when its journal has the receipt
	delivered                       // when its cell has handled that
)

// takeoverWindow is a row of docs/guarantees.md, "A live effect on PostgreSQL".
type takeoverWindow struct {
	stop   func(c *contender, here func()) // has the first owner stop: here returns when the second is done
	free   bool                            // a control: the first owner writes to the table under the token of the second
	where  takeoverMoment                  // where stop is nil
	made   int64                           // by both of them
	became receipt.State
	decide journal.Resolution // of what is in doubt
	after  int64              // made then
}

func begins(c *receipt.AttemptChanges) bool { return len(c.Begin) > 0 }
func ends(c *receipt.AttemptChanges) bool   { return len(c.End) > 0 }

// stopsAt is here where the first change of a sort is asked for, or durable.
func stopsAt(where *func(*receipt.AttemptChanges), sort func(*receipt.AttemptChanges) bool, here func()) {
	*where = func(c *receipt.AttemptChanges) {
		if sort(c) {
			*where = nil
			here()
		}
	}
}

func takeoverWindows() map[string]takeoverWindow {
	return map[string]takeoverWindow{
		"1 no permit": {made: 1, became: receipt.StateCommitted},
		"2 permit durable, not begun": {
			stop: func(c *contender, here func()) { stopsAt(&c.table.before, begins, here) },
			made: 1, became: receipt.StateCommitted,
		},
		"2 permit durable, not begun, no fence": {
			stop: func(c *contender, here func()) { stopsAt(&c.table.before, begins, here) },
			free: true, made: 2, became: receipt.StateCommitted,
		},
		"2 begun, not performed": {
			stop:   func(c *contender, here func()) { stopsAt(&c.table.after, begins, here) },
			became: receipt.StateInDoubt, decide: journal.NotExecuted, after: 1,
		},
		"2 performed": {
			stop: func(c *contender, here func()) { c.perform = here },
			made: 1, became: receipt.StateInDoubt, decide: journal.Executed, after: 1,
		},
		"2 result not stored": {
			stop: func(c *contender, here func()) { stopsAt(&c.table.before, ends, here) },
			made: 1, became: receipt.StateInDoubt, decide: journal.Executed, after: 1,
		},
		"3 result stored": {
			stop: func(c *contender, here func()) { stopsAt(&c.table.after, ends, here) },
			made: 1, became: receipt.StateCommitted,
		},
		"4 receipt journaled": {where: journaled, made: 1, became: receipt.StateCommitted},
		"5 delivered":         {where: delivered, made: 1, became: receipt.StateCommitted},
	}
}

// TestTakenOverInEveryWindow stops an owner at each boundary of an effect's way, has another
// one take the world over and go on, and then lets the first one go on, which believes that
// the world still is its own.
func TestTakenOverInEveryWindow(t *testing.T) {
	for name, w := range takeoverWindows() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { w.run(t, inMemory()) })
		})
	}
}

func TestTakenOverInEveryWindowOnPostgres(t *testing.T) {
	for name, w := range takeoverWindows() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.run(t, onPostgres(t, time.Second))
		})
	}
}

func (w *takeoverWindow) run(t *testing.T, in shared) {
	x := &contest{t: t, shared: in, journal: new(worldtest.Journal)}
	stopped, goOn := make(chan struct{}), make(chan struct{})
	one := x.takeOver(func(c *contender) {
		if w.stop != nil {
			w.stop(c, func() { close(stopped); <-goOn })
		}
	})
	one.submit()
	switch {
	case w.stop != nil:
		one.drive()
		<-stopped
	case w.where == journaled:
		one.upTo(receipt.StateCommitted)
	case w.where == delivered:
		one.settle()
	}
	time.Sleep(in.lease) // for which nobody takes it over
	two := x.takeOver(nil)
	require.Equal(t, w.became, two.settle().State)
	if w.free {
		require.NoError(t, two.owner.Close()) // so the table has no more of it
		one.table.Attempts = two.table.Attempts
	}
	close(goOn)
	in.quiet(one.owner)
	one.goOnFenced()
	require.Equal(t, w.made, x.made.Load(), "by both of them")
	if w.decide != "" {
		e := two.Intents()[0]
		_, err := two.Resolve(t.Context(), journal.Resolved{Key: e.Intent.Key, How: w.decide, Params: e.Params, Actor: "ada", Reason: "she looked"})
		require.NoError(t, err)
		require.Equal(t, receipt.StateCommitted, two.settle().State)
		require.Equal(t, w.after, x.made.Load())
	}
	head := two.Status().Head
	three := x.takeOver(nil)
	three.drive()
	require.Equal(t, head, three.Status().Head, "and then nothing is left to do")
}

// upTo goes on until the one intent of the world is in a state, and no further.
func (c *contender) upTo(s receipt.State) {
	c.t.Helper()
	for len(c.Intents()) == 0 || c.Intents()[0].State != s {
		p, err := c.Next(c.t.Context())
		require.NoError(c.t, err)
		if p == world.Waiting {
			require.NoError(c.t, c.Sync())
			require.NoError(c.t, c.Wait(c.t.Context()))
		}
	}
	require.NoError(c.t, c.Sync())
}

// goOnFenced has an owner go on whose world is another's.
func (c *contender) goOnFenced() {
	for range 10 {
		if _, err := c.Next(c.t.Context()); err != nil {
			return
		}
		if err := c.Sync(); err != nil {
			return
		}
	}
}

// race is a world in a model: permits, whose ends are in a journal that only the owner
// appends to, and hosts that perform them and do not know that they have been taken over.
type race struct {
	t      *testing.T
	log    func() journal.Log // as one more process has it
	second time.Duration      // how long it is
	rng    *rand.Rand
	fenced bool // the table asks for the token
	hosts  []*host.Host

	mu       sync.Mutex // guards what follows
	open     map[receipt.Key]receipt.Permit
	made     map[receipt.Key]int
	twice    int
	doubts   int
	attempts int
}

// unfenced is a table that anybody may write to.
type unfenced struct {
	host.Attempts
	now func() host.Attempts
}

func (u unfenced) ChangeAttempts(ctx context.Context, c *receipt.AttemptChanges) (receipt.AttemptsChanged, error) {
	return u.now().ChangeAttempts(ctx, c)
}

// run has one owner after the other perform what is open.
func (r *race) run(takeovers, permits int) {
	var now host.Attempts
	var mu sync.Mutex
	for n := range takeovers {
		var a host.Attempts = ownLog(r.t, r.log())
		mu.Lock()
		now = a
		mu.Unlock()
		if !r.fenced {
			a = unfenced{a, func() host.Attempts {
				mu.Lock()
				defer mu.Unlock()
				return now
			}}
		}
		for range permits / takeovers {
			p := nth(r.t, r.attempts)
			r.attempts++
			r.open[p.Key] = p
		}
		r.owner(a, n)
	}
}

// owner is one owner's time, and the beginning of what it goes on with after it.
func (r *race) owner(a host.Attempts, n int) {
	s := newShared(a, func(_ context.Context, c host.Call) (host.Result, error) {
		time.Sleep(time.Duration(c.Permit.Occurrence%7) * r.second)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.made[c.Permit.Key]++
		if r.made[c.Permit.Key] > 1 {
			r.twice++
		}
		return host.Result{Status: receipt.StatusOK}, nil
	})
	s.workers = 1 + r.rng.IntN(8)
	h := s.doomed(r.t)
	r.hosts = append(r.hosts, h)
	var perform []receipt.Task
	for _, p := range slices.SortedFunc(maps.Values(r.open), func(a, b receipt.Permit) int { return cmp.Compare(a.Occurrence, b.Occurrence) }) {
		h.Start(task(receipt.Recover, p))
		require.NoError(r.t, h.Wait(r.t.Context())) // for the owner before
		answers, err := h.Answers()
		require.NoError(r.t, err)
		require.Len(r.t, answers, 1)
		if answers[0].Unbegun {
			perform = append(perform, receipt.Task{Permit: p})
			continue
		}
		if answers[0].Lost != "" {
			r.doubts++
		}
		delete(r.open, p.Key)
		h.Start(task(receipt.Forget, p))
	}
	h.Start(perform)
	for range r.rng.IntN(12) {
		time.Sleep(r.second)
		answers, err := h.Answers()
		require.NoError(r.t, err, "owner %d", n)
		for _, got := range answers {
			if p, is := r.open[got.Key]; is {
				delete(r.open, got.Key)
				h.Start(task(receipt.Forget, p))
			}
		}
	}
}

// TestNothingIsPerformedTwiceOverTakeovers is many takeovers of owners that go on as if there
// were none, and a control whose table does not ask whose the world is. SIM_RUNS are tens of
// takeovers.
func TestNothingIsPerformedTwiceOverTakeovers(t *testing.T) {
	seed, tens := fault.Seeds(t, 8, 100)
	for name, fenced := range map[string]bool{"fenced": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRace(t, seed, fenced)
				s := &logtest.Server{Lease: 5 * time.Second}
				r.log, r.second = s.Log, time.Second
				r.run(10*tens, 100*tens)
				time.Sleep(time.Hour) // for those that have been taken over
				synctest.Wait()
				r.judge()
			})
		})
	}
}

// TestNothingIsPerformedTwiceOverTakeoversOnPostgres is the same where time is real. So it is up to the
// machine whether few takeovers show anything in the control: there TestTakenOverInEveryWindowOnPostgres has one.
func TestNothingIsPerformedTwiceOverTakeoversOnPostgres(t *testing.T) {
	seed, tens := fault.Seeds(t, 3, 100)
	for name, fenced := range map[string]bool{"fenced": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			if !fenced && tens < 100 {
				t.Skip("too few takeovers: SIM_RUNS=100 has enough")
			}
			r := newRace(t, seed, fenced)
			r.log, r.second = onPostgres(t, 300*time.Millisecond).log, 3*time.Millisecond
			r.run(10*tens, 100*tens)
			require.Eventually(t, func() bool { return r.performed() > r.attempts/2 }, 5*time.Minute, 10*time.Millisecond)
			time.Sleep(time.Second) // for those that have been taken over
			for _, h := range r.hosts {
				_ = h.Close() // when nothing goes on any more
			}
			r.judge()
		})
	}
}

func newRace(t *testing.T, seed uint64, fenced bool) *race {
	return &race{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), fenced: fenced,
		open: make(map[receipt.Key]receipt.Permit), made: make(map[receipt.Key]int),
	}
}

// performed is how many permits were performed.
func (r *race) performed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.made)
}

func (r *race) judge() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Logf("%d permits, %d performed, %d twice, %d in doubt", r.attempts, len(r.made), r.twice, r.doubts)
	if !r.fenced {
		require.NotZero(r.t, r.twice, "the control")
		return
	}
	require.Zero(r.t, r.twice)
	require.Greater(r.t, len(r.made), r.attempts/2)
}
