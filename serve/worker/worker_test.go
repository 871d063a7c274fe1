package worker_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/trust"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/serve/worker"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func TestMain(m *testing.M) {
	testlog.Begin()
	m.Run()
}

const (
	callingEffect  = `tool.a: {adapter: outside, timeout: 10m, retry: {attempts: 100, backoff: 1ms}, config: {secret: "secret://KEY"}}`
	callingReducer = `def reduce(ctx, state, event):
    if event.name == "receipt":
        return (state or []) + [event.data["payload"]]
    ctx.effect(event.data.get("kind", "tool.a"), event.data["n"])
    return state or []
`
)

// outside is what effects change. It is safe for concurrent use.
type outside struct {
	mu     sync.Mutex
	calls  map[string]int                                  // by external key
	before func(ctx context.Context, call host.Call) error // nil: nothing
	named  func(name string, call host.Call)               // nil: nobody wants to know
	secret string
	refuse bool // every call
}

func newOutside() *outside { return &outside{calls: make(map[string]int)} }

func (o *outside) adapters() map[string]host.Factory {
	return map[string]host.Factory{"outside": func(s host.Setup) (host.Adapter, error) {
		var config struct {
			Secret string `cbor:"secret"`
			Name   string `cbor:"name"`
		}
		err := s.Decode(&config)
		return &adapter{o, s, config.Name}, err
	}}
}

type adapter struct {
	*outside
	setup host.Setup
	name  string
}

func (a *adapter) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	if a.before != nil {
		if err := a.before(ctx, call); err != nil {
			return host.Result{}, err
		}
	}
	secret, err := a.setup.Secret("secret://KEY")
	if err != nil {
		return host.Result{}, err
	}
	if a.named != nil {
		a.named(a.name, call)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[call.External]++
	a.secret = secret
	if a.refuse {
		return host.Result{Status: receipt.StatusError, Payload: receipt.Data(canon.AppendText(nil, "no"))}, nil
	}
	return host.Result{Status: receipt.StatusOK, Payload: receipt.Data(canon.AppendText(nil, "done"))}, nil
}

// total is how many effects there were, and each was once.
func (o *outside) total(t *testing.T) int {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, n := range o.calls {
		require.Equal(t, 1, n, key)
	}
	return len(o.calls)
}

// served is a world that runs and is served.
type served struct {
	*local.World
	t     *testing.T
	dir   string
	opts  local.Options
	token string // and its hash
	hash  string
	http  *httptest.Server
	proxy atomic.Pointer[func(http.ResponseWriter, *http.Request, http.Handler)] // before the server; nil: nothing
	inner atomic.Pointer[http.Handler]                                           // nil: the server is away
	stop  func()
}

func serve(t *testing.T, opts local.Options) *served {
	t.Helper()
	s := &served{t: t, dir: t.TempDir(), opts: opts}
	s.opts.Remote, s.opts.Grace = true, 50*time.Millisecond
	s.opts.Adapters = newOutside().adapters() // the owner performs nothing
	s.opts.Adapters["special"] = s.opts.Adapters["outside"]
	for name, text := range map[string]string{local.ManifestFile: worldtest.Caller("calling", callingEffect), "caller.star": callingReducer} {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	require.NoError(t, local.Create(s.dir, local.CreateOptions{ID: "w"}, s.opts))
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := s.inner.Load()
		if inner == nil {
			panic(http.ErrAbortHandler) // as if nobody listened
		}
		if p := s.proxy.Load(); p != nil {
			(*p)(w, r, *inner)
			return
		}
		(*inner).ServeHTTP(w, r)
	}))
	t.Cleanup(s.http.Close)
	s.token, s.hash = api.NewToken()
	s.open()
	t.Cleanup(func() { s.stop() })
	return s
}

// open begins to serve; stop ends that.
func (s *served) open() {
	s.t.Helper()
	var err error
	s.World, err = local.Open(s.dir, s.opts)
	require.NoError(s.t, err)
	tokens, err := api.ParseTokens([]byte("hand work " + s.hash + " *\n"))
	require.NoError(s.t, err)
	server, err := api.New(api.Config{Worlds: []*local.World{s.World}, Tokens: tokens})
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			p, err := s.Next(ctx)
			if err == nil && p != world.Ticked {
				err = errors.Join(s.Sync(), s.Wait(ctx)) // also where it is idle: what was given up may come
			}
			if err != nil && ctx.Err() == nil {
				s.t.Errorf("the world: %v", err)
				return
			}
		}
	})
	handler := server.Handler()
	s.inner.Store(&handler)
	s.stop = func() {
		s.inner.Store(nil)
		cancel()
		running.Wait()
		require.NoError(s.t, server.Close())
		require.NoError(s.t, s.Close())
		s.stop = func() {}
	}
}

// want asks for effects.
func (s *served) want(from, n int) {
	s.t.Helper()
	for i := range n {
		_, err := s.Submit(s.t.Context(), "go", map[string]any{"to": fmt.Sprint(from + i), "n": from + i})
		require.NoError(s.t, err)
	}
}

// until waits until so many intents are in a state.
func (s *served) until(state receipt.State, n int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	for {
		head := s.Head().ID
		if s.Status().Intents[state] == n {
			return
		}
		require.NoError(s.t, s.Await(ctx, head), "%v", s.Status().Intents)
	}
}

// works runs a worker until what it returns is called.
func (s *served) works(dir string, o *outside, change ...func(*worker.Config)) (stop func() error) {
	s.t.Helper()
	s.t.Setenv("WORLDCTL_SECRET_KEY", "only the worker has it")
	cfg := worker.Config{
		Server: s.http.URL, Token: s.token, Dir: dir, Adapters: o.adapters(), Workers: 8, Grace: time.Minute,
		Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)), Trust: trust.All(),
	}
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx, cfg) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

func TestAWorkerPerformsWhatAServedWorldAsksFor(t *testing.T) {
	s, o, dir := serve(t, local.Options{}), newOutside(), t.TempDir()
	stop := s.works(dir, o)
	s.want(0, 20)
	s.until(receipt.StateCommitted, 20)
	require.Equal(t, 20, o.total(t))
	require.Equal(t, "only the worker has it", o.secret)
	require.ErrorIs(t, worker.Run(t.Context(), worker.Config{Server: s.http.URL, Token: s.token, Dir: dir}), worker.ErrInUse)
	require.NoError(t, stop())
	require.ErrorIs(t, worker.Run(t.Context(), worker.Config{Server: s.http.URL, Token: s.token, Dir: dir, Name: "another"}), worker.ErrOtherName)
	err := s.works(t.TempDir(), o, func(c *worker.Config) { c.Token = "wk_other" })()
	if err != nil {
		require.ErrorIs(t, err, worker.ErrRefused)
	}
}

// Who looks at a worker sees which effects failed, and not those that did not.
func TestAWorkerTellsOfEffectsThatFailed(t *testing.T) {
	s, o := serve(t, local.Options{}), newOutside()
	var log bytes.Buffer // read when nobody writes any more
	told := func(c *worker.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }
	stop := s.works(t.TempDir(), o, told)
	s.want(0, 2)
	s.until(receipt.StateCommitted, 2)
	require.NoError(t, stop())
	require.NotContains(t, log.String(), "an effect has failed")

	o.refuse = true
	stop = s.works(t.TempDir(), o, told)
	s.want(2, 3)
	s.until(receipt.StateFailed, 3)
	require.NoError(t, stop())
	require.Equal(t, 3, strings.Count(log.String(), `level=WARN msg="an effect has failed" world=w kind=tool.a key=`), log.String())
	require.Contains(t, log.String(), "status=error outcome=permanent_failure reason=")
}

// What nobody can tell about is in doubt at once, with the worker's reason, and not when
// its lease runs out: of what only asks, another would ask again.
func TestAWorkerSaysThatNobodyCanTell(t *testing.T) {
	s, o := serve(t, local.Options{Lease: time.Hour}), newOutside()
	o.before = func(context.Context, host.Call) error { return errors.New("the server does not know the task") }
	stop := s.works(t.TempDir(), o)
	s.want(0, 1)
	s.until(receipt.StateInDoubt, 1)
	require.NoError(t, stop())
	said := ""
	for e, err := range s.Scan(0) {
		require.NoError(t, errors.Join(err, e.Err))
		if e.Record.Kind == journal.KindInDoubt {
			body, err := e.Record.LoadBody(s.World)
			require.NoError(t, err)
			said = body.(*journal.InDoubt).Reason
		}
	}
	require.Contains(t, said, "the server does not know the task")
	require.Contains(t, said, "worker ")
}

func TestSeveralWorkersPerformEachEffectOnce(t *testing.T) {
	s, o := serve(t, local.Options{}), newOutside()
	for range 3 {
		defer func(stop func() error) { require.NoError(t, stop()) }(s.works(t.TempDir(), o))
	}
	s.want(0, 60)
	s.until(receipt.StateCommitted, 60)
	require.Equal(t, 60, o.total(t))
}

func TestTheServersAbsenceLosesNothing(t *testing.T) {
	s, o := serve(t, local.Options{}), newOutside()
	begun, goOn := make(chan struct{}, 9), make(chan struct{})
	o.before = func(context.Context, host.Call) error {
		begun <- struct{}{}
		<-goOn
		return nil
	}
	stop := s.works(t.TempDir(), o)
	s.want(0, 3)
	for range 3 {
		<-begun
	}
	s.stop() // away, while three effects are performed
	close(goOn)
	require.Eventually(t, func() bool { return o.total(t) == 3 }, time.Minute, time.Millisecond)
	s.open()
	s.until(receipt.StateCommitted, 3)
	s.want(3, 2)
	s.until(receipt.StateCommitted, 5)
	require.Equal(t, 5, o.total(t))
	require.NoError(t, stop())
}

// refuse answers the first requests for a path with a status.
func (s *served) refuse(path string, status, times int) *atomic.Int64 {
	left := new(atomic.Int64)
	left.Store(int64(times))
	s.intercept(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if strings.HasSuffix(r.URL.Path, path) && left.Add(-1) >= 0 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"type": "urn:worldkernel:problem:test", "title": "", "status": %d, "detail": "for the test"}`, status)
			return
		}
		inner.ServeHTTP(w, r)
	})
	return left
}

func (s *served) intercept(f func(http.ResponseWriter, *http.Request, http.Handler)) {
	s.proxy.Store(&f)
}

func TestWhatAWorkerHasLeftIsHandedInByTheNext(t *testing.T) {
	s, o, dir := serve(t, local.Options{Lease: time.Second}), newOutside(), t.TempDir()
	var handedIn sync.Map // what a worker hands in it has noted before
	s.intercept(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/commit") {
			inner.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		handedIn.Store(string(body), true)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	stop := s.works(dir, o, func(c *worker.Config) { c.Grace = 50 * time.Millisecond })
	s.want(0, 4)
	require.Eventually(t, func() bool {
		n := 0
		handedIn.Range(func(any, any) bool { n++; return true })
		return n == 4
	}, time.Minute, time.Millisecond)
	require.Equal(t, 4, o.total(t))
	require.NoError(t, stop())
	s.until(receipt.StateInDoubt, 4)
	s.proxy.Store(nil)
	stop = s.works(dir, o)
	s.until(receipt.StateCommitted, 4)
	require.NoError(t, stop())
	require.Equal(t, 4, o.total(t))
}

func TestWhatIsRefusedForGoodIsForgotten(t *testing.T) {
	s, o, dir := serve(t, local.Options{Lease: time.Second}), newOutside(), t.TempDir()
	left := s.refuse("/commit", http.StatusConflict, 3)
	stop := s.works(dir, o)
	s.want(0, 3)
	s.until(receipt.StateInDoubt, 3)
	require.NoError(t, stop())
	require.Zero(t, left.Load(), "none was handed in twice")
	stop = s.works(dir, o)
	s.want(3, 1)
	s.until(receipt.StateCommitted, 1)
	require.NoError(t, stop())
	require.EqualValues(t, -1, left.Load(), "nor by the next")
}

func TestAWorkerThatIsNotLetInEndsAndKeepsWhatItHas(t *testing.T) {
	s, o, dir := serve(t, local.Options{Lease: time.Second}), newOutside(), t.TempDir()
	s.refuse("/commit", http.StatusUnauthorized, 1)
	done := make(chan error, 1)
	stop := s.works(dir, o, func(c *worker.Config) { c.Grace = time.Second })
	s.want(0, 1)
	s.until(receipt.StateInDoubt, 1)
	go func() { done <- stop() }()
	require.ErrorIs(t, <-done, worker.ErrRefused)
	stop = s.works(dir, o)
	s.until(receipt.StateCommitted, 1)
	require.NoError(t, stop())
	require.Equal(t, 1, o.total(t))
}

// TestNothingBeginsWhenItsLeaseIsOver: the answer with the attempt comes when the
// server has given it up, as it does to a process that was stopped meanwhile.
func TestNothingBeginsWhenItsLeaseIsOver(t *testing.T) {
	s, o := serve(t, local.Options{Lease: time.Second}), newOutside()
	var held atomic.Bool
	asleep, awake := make(chan struct{}), make(chan struct{})
	s.intercept(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		rec := httptest.NewRecorder()
		inner.ServeHTTP(rec, r)
		if strings.HasSuffix(r.URL.Path, "/acquire") && strings.Contains(rec.Body.String(), "nonce") && held.CompareAndSwap(false, true) {
			close(asleep)
			<-awake
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()) // whoever has gone misses it
	})
	var seen atomic.Int64 // attempts
	o.before = func(_ context.Context, call host.Call) error {
		seen.Store(int64(call.Permit.Attempt))
		return nil
	}
	stop := s.works(t.TempDir(), o)
	s.want(0, 1)
	<-asleep
	s.until(receipt.StateInDoubt, 1)
	close(awake)
	s.until(receipt.StateCommitted, 1)
	require.Equal(t, 1, o.total(t))
	require.Greater(t, seen.Load(), int64(1), "the first attempt was given back")
	require.NoError(t, stop())
}

// inTime tries something with a short lease, and with a longer one where the machine was late for it.
func inTime(t *testing.T, try func(t *testing.T, lease time.Duration) bool) {
	t.Helper()
	for lease := 300 * time.Millisecond; ; lease *= 4 {
		require.Less(t, lease, time.Minute, "no machine is so late")
		done := false
		t.Run(lease.String(), func(t *testing.T) { done = try(t, lease) })
		if done || t.Failed() {
			return
		}
	}
}

func TestALeaseIsKeptAndItsEndStopsTheAdapter(t *testing.T) { inTime(t, keptAndStopped) }

func keptAndStopped(t *testing.T, lease time.Duration) bool {
	t.Helper()
	s, o := serve(t, local.Options{Lease: lease}), newOutside()
	var renewed atomic.Int64
	enough, deaf := make(chan struct{}), make(chan struct{})
	s.intercept(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/renew") {
			if renewed.Add(1) == 9 {
				close(enough) // after three leases
			}
			select {
			case <-deaf:
				return
			default:
			}
		}
		inner.ServeHTTP(w, r)
	})
	kept, ended := make(chan bool, 1), make(chan error, 1)
	o.before = func(ctx context.Context, call host.Call) error {
		if string(call.Permit.Params) == "\x00" {
			select {
			case <-enough:
				kept <- true
			case <-ctx.Done():
				kept <- false
			}
			return nil
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	stop := s.works(t.TempDir(), o)
	s.want(0, 1)
	if !<-kept {
		require.NoError(t, stop())
		return false
	}
	s.until(receipt.StateCommitted, 1)
	close(deaf) // renewals do not reach the server any more
	s.want(1, 1)
	require.ErrorIs(t, <-ended, context.Canceled)
	s.until(receipt.StateInDoubt, 1)
	require.Equal(t, 1, o.total(t))
	require.NoError(t, stop())
	return true
}

// TestAnAttemptThatWasLongInComingIsRenewedFirst: a worker counts from before it has
// asked, and the server may have taken its time.
func TestAnAttemptThatWasLongInComingIsRenewedFirst(t *testing.T) { inTime(t, renewedFirst) }

func renewedFirst(t *testing.T, lease time.Duration) bool {
	t.Helper()
	s, o := serve(t, local.Options{Lease: lease}), newOutside()
	var attempts []uint64
	o.named = func(_ string, call host.Call) { attempts = append(attempts, call.Permit.Attempt) }
	asked := make(chan struct{}, 99)
	s.intercept(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/acquire") {
			asked <- struct{}{}
			<-time.After(lease)
		}
		inner.ServeHTTP(w, r)
	})
	stop := s.works(t.TempDir(), o)
	<-asked
	s.want(0, 1)
	s.until(receipt.StateCommitted, 1)
	require.NoError(t, stop())
	require.Len(t, attempts, 1)
	return attempts[0] == 1
}

// TestWhatComesToAWorkerThatStopsIsGivenBack: it has asked, and waits for an answer.
func TestWhatComesToAWorkerThatStopsIsGivenBack(t *testing.T) {
	s, o := serve(t, local.Options{}), newOutside()
	asked, goOn := make(chan struct{}, 99), make(chan struct{})
	s.intercept(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/acquire") {
			asked <- struct{}{}
			<-goOn
		}
		inner.ServeHTTP(w, r)
	})
	stop := s.works(t.TempDir(), o)
	<-asked
	s.want(0, 3)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	require.Eventually(t, func() bool { return s.Status().Intents[receipt.StateInFlight] == 3 }, time.Minute, time.Millisecond)
	close(goOn)
	require.NoError(t, <-stopped)
	require.Zero(t, s.Status().Intents[receipt.StateInDoubt])
	s.proxy.Store(nil)
	stop = s.works(t.TempDir(), o)
	s.until(receipt.StateCommitted, 3)
	require.Equal(t, 3, o.total(t))
	require.NoError(t, stop())
}

// TestAnotherManifestIsFetchedBeforeItsEffectsArePerformed: with an effect that the
// old one did not have, too.
func TestAnotherManifestIsFetchedBeforeItsEffectsArePerformed(t *testing.T) {
	s, o := serve(t, local.Options{}), newOutside()
	var mu sync.Mutex
	performed := make(map[string]int) // by kind and the name in its config
	o.named = func(name string, call host.Call) {
		mu.Lock()
		defer mu.Unlock()
		performed[call.Permit.Kind+" "+name]++
	}
	stop := s.works(t.TempDir(), o)
	s.want(0, 2)
	s.until(receipt.StateCommitted, 2)
	for i, kind := range []string{"tool.a", "tool.b"} {
		name := fmt.Sprint("edition ", i)
		s.apply(func(m *manifest.Manifest) {
			e := m.Effects["tool.a"]
			var err error
			e.Config, err = canon.Marshal(map[string]string{"secret": "secret://KEY", "name": name})
			require.NoError(t, err)
			m.Effects[kind] = e
		})
		_, err := s.Submit(t.Context(), "go", map[string]any{"to": "x", "n": i, "kind": kind})
		require.NoError(t, err)
		s.until(receipt.StateCommitted, 3+i)
	}
	require.NoError(t, stop())
	require.Equal(t, map[string]int{"tool.a ": 2, "tool.a edition 0": 1, "tool.b edition 1": 1}, performed)
	require.Equal(t, 4, o.total(t))
}

// apply puts a changed manifest in force.
func (s *served) apply(change func(*manifest.Manifest)) {
	s.t.Helper()
	var next manifest.Manifest
	s.View(func(w *world.Moment) { next = *w.Manifest() })
	next.Effects = maps.Clone(next.Effects)
	change(&next)
	_, n, err := s.Propose(s.t.Context(), world.Proposal{Candidate: &next, Base: s.Status().Manifest, Actor: "ann"})
	require.NoError(s.t, err)
	err = s.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Shadow(s.t.Context(), n, world.ShadowConfig{}, "ann"))
	})
	require.NoError(s.t, err)
	var terms manifest.Terms
	s.View(func(w *world.Moment) {
		all, f := w.Proposals()
		terms = all[n-1].Terms(f.World)
	})
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	require.NoError(s.t, s.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Approve(s.t.Context(), n, terms, manifest.Sign(key, terms), "bob", ""))
	}))
	require.NoError(s.t, worldtest.ErrorOf(s.Apply(s.t.Context(), n, "ann")))
}

// TestAnEffectThatAWorkerCannotPerformIsLeftToOthers: the worker performs the rest.
func TestAnEffectThatAWorkerCannotPerformIsLeftToOthers(t *testing.T) {
	s, o := serve(t, local.Options{}), newOutside()
	s.apply(func(m *manifest.Manifest) {
		e := m.Effects["tool.a"]
		m.Effects["tool.b"] = e
		e.Adapter = "special"
		m.Effects["tool.a"] = e
	})
	plain := s.works(t.TempDir(), o)
	s.want(0, 1)
	_, err := s.Submit(t.Context(), "go", map[string]any{"to": "x", "n": 9, "kind": "tool.b"})
	require.NoError(t, err)
	s.until(receipt.StateCommitted, 1)
	require.Equal(t, 1, s.Status().Intents[receipt.StateInFlight], "nobody here knows its adapter")
	special := s.works(t.TempDir(), o, func(c *worker.Config) {
		c.Adapters = map[string]host.Factory{"special": o.adapters()["outside"]}
	})
	s.until(receipt.StateCommitted, 2)
	require.NoError(t, plain())
	require.NoError(t, special())
	require.Equal(t, 2, o.total(t))
}

func TestAWorkerIsSomebodyAndSomewhere(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:80", "ftp://x", "http://", "http://x?y"} {
		require.Error(t, worker.Run(t.Context(), worker.Config{Server: url, Token: "wk_x", Dir: t.TempDir()}), "%q", url)
	}
	require.Error(t, worker.Run(t.Context(), worker.Config{Server: "http://127.0.0.1:1", Dir: t.TempDir()}))
	for _, id := range []string{"..", ".", "a/b", "../../x"} {
		dir := t.TempDir()
		require.Error(t, worker.Run(t.Context(), worker.Config{Server: "http://127.0.0.1:1", Token: "wk_x", Dir: dir, Worlds: []string{id}}), "%q", id)
		require.NoDirExists(t, filepath.Join(dir, ".worker", "worlds"))
	}
}
