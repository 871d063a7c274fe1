package local_test

import (
	"context"
	"crypto/ed25519"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

const changingReducer = `def reduce(ctx, state, event):
    if event.name == "receipt":
        return (state or []) + [event.data["payload"]]
    ctx.effect(event.data["kind"], event.data["n"])
    return state or []
`

// probes are the adapters that perform the effects of a world.
type probes struct {
	mu        sync.Mutex
	working   map[*probe]bool     // those that have performed something and are not closed
	performed map[string][]string // who performed it, by external key
	held      chan struct{}       // performing waits for it; nil: it does not
}

func newProbes() *probes {
	return &probes{working: make(map[*probe]bool), performed: make(map[string][]string)}
}

// options have effects performed by probes, which go by these names of adapters.
func (p *probes) options(adapters ...string) local.Options {
	opts := local.Options{Adapters: make(map[string]host.Factory), Paranoid: true}
	for _, adapter := range adapters {
		opts.Adapters[adapter] = func(s host.Setup) (host.Adapter, error) {
			made := &probe{all: p}
			return made, s.Decode(&made.config)
		}
	}
	return opts
}

// names returns what the probes go by that are at work.
func (p *probes) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for made := range p.working {
		out = append(out, made.config.Name)
	}
	slices.Sort(out)
	return out
}

// probe answers with its name.
type probe struct {
	all    *probes
	config struct {
		Name string `cbor:"name"`
	}
}

func (p *probe) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	p.all.mu.Lock()
	p.all.working[p] = true
	p.all.performed[call.External] = append(p.all.performed[call.External], p.config.Name)
	held := p.all.held
	p.all.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return host.Result{}, ctx.Err()
		}
	}
	return host.Result{Status: receipt.StatusOK, Payload: receipt.Data(canon.AppendText(nil, p.config.Name))}, nil
}

// Close implements io.Closer: the host is done with the probe.
func (p *probe) Close() error {
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	delete(p.all.working, p)
	return nil
}

// changing returns the directory of a new world whose one effect the probe "first"
// performs.
func changing(t *testing.T, p *probes) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"world.yaml": worldtest.Caller("changing", "tool.a: {adapter: probe, config: {name: first}}"), "caller.star": changingReducer} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "changing", Keyring: ring(t, "changing", 1)}, p.options("probe")))
	return dir
}

func openWith(t *testing.T, dir string, opts local.Options) *local.World {
	t.Helper()
	w, err := local.Open(dir, opts)
	require.NoError(t, err)
	return w
}

// performedBy returns the manifest in force, with effects of some kinds performed by
// an adapter that goes by a name.
func performedBy(t *testing.T, w *local.World, adapter, name string, kinds ...string) *manifest.Manifest {
	t.Helper()
	var next manifest.Manifest
	w.View(func(w *world.Moment) { next = *w.Manifest() })
	effects := maps.Clone(next.Effects)
	for _, kind := range kinds {
		e := effects["tool.a"]
		e.Adapter = adapter
		var err error
		e.Config, err = canon.Marshal(map[string]string{"name": name})
		require.NoError(t, err)
		effects[kind] = e
	}
	next.Effects = effects
	return &next
}

// approve proposes a manifest, with contents that it names and the world may not have, and has it shadowed and approved.
func approve(t *testing.T, w *local.World, next *manifest.Manifest, contents ...[]byte) uint64 {
	t.Helper()
	p := world.Proposal{Candidate: next, Contents: map[manifest.Hash][]byte{}, Base: w.Status().Manifest, Actor: "ann"}
	for _, c := range contents {
		p.Contents[canon.Sum(c)] = c
	}
	_, n, err := w.Propose(t.Context(), p)
	require.NoError(t, err)
	err = w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Shadow(t.Context(), n, world.ShadowConfig{}, "ann"))
	})
	require.NoError(t, err)
	var terms manifest.Terms
	w.View(func(w *world.Moment) {
		all, f := w.Proposals()
		terms = all[n-1].Terms(f.World)
	})
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	require.NoError(t, w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Approve(t.Context(), n, terms, manifest.Sign(key, terms), "bob", ""))
	}))
	w.View(func(w *world.Moment) { _, err = w.WouldApply(t.Context(), n) })
	require.NoError(t, err, "a moment knows the world's Go reducers")
	return n
}

// ask has a cell ask for effects of a kind.
func ask(t *testing.T, w *local.World, to, kind string, n int) {
	t.Helper()
	_, err := w.Submit(t.Context(), "go", map[string]any{"to": to, "kind": kind, "n": n})
	require.NoError(t, err)
}

// heard returns the answers that a cell has got.
func heard(t *testing.T, w *local.World, key string) []any {
	t.Helper()
	var out []any
	w.View(func(w *world.Moment) {
		c, ok := w.Cell(reducer.Cell{Reducer: "caller", Key: key})
		require.True(t, ok)
		v, err := canon.Decode(c.State)
		require.NoError(t, err)
		out, ok = v.([]any)
		require.True(t, ok)
	})
	return out
}

func requireSound(t *testing.T, w *local.World) {
	t.Helper()
	r, err := w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
}

func TestAppliedManifestIsPerformedAtOnce(t *testing.T) {
	p := newProbes()
	w := openWith(t, changing(t, p), p.options("probe"))
	ask(t, w, "x", "tool.a", 1)
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, []string{"first"}, p.names())

	n := approve(t, w, performedBy(t, w, "probe", "second", "tool.a", "tool.b"))
	require.NoError(t, worldtest.ErrorOf(w.Apply(t.Context(), n, "ann")))
	require.Empty(t, p.names(), "the old host is closed")
	ask(t, w, "x", "tool.a", 2)
	ask(t, w, "x", "tool.b", 3)
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, []any{"first", "second", "second"}, heard(t, w, "x"))
	require.Equal(t, []string{"second", "second"}, p.names(), "one for each kind")
	requireSound(t, w)
	require.NoError(t, w.Close())
	require.Empty(t, p.names())
}

func TestApplyAwaitsWhatIsInFlight(t *testing.T) {
	p := newProbes()
	p.held = make(chan struct{})
	w := openWith(t, changing(t, p), p.options("probe"))
	n := approve(t, w, performedBy(t, w, "probe", "second", "tool.a"))
	ask(t, w, "x", "tool.a", 1)
	for len(p.names()) == 0 {
		_, err := w.Next(t.Context())
		require.NoError(t, err)
	}
	applied := make(chan error, 1)
	go func() { applied <- worldtest.ErrorOf(w.Apply(t.Context(), n, "ann")) }()
	ask(t, w, "x", "tool.a", 2) // who has to wait for the apply only waits for what it asks for
	close(p.held)
	require.NoError(t, <-applied)
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, []any{"first", "second"}, heard(t, w, "x"), "who began it ends it")
	require.Len(t, p.performed, 2)
	requireSound(t, w)
	require.NoError(t, w.Close())
}

// busyWorld runs a world that asks for five effects, of which the host performs one at a time, until the
// first is under way.
func busyWorld(t *testing.T, p *probes) *local.World {
	t.Helper()
	p.held = make(chan struct{})
	opts := p.options("probe")
	opts.Workers = 1
	w := openWith(t, changing(t, p), opts)
	for n := range 5 {
		ask(t, w, string(rune('a'+n)), "tool.a", n)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { keepRunning(ctx, t, w) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		require.NoError(t, w.Close())
	})
	require.Eventually(t, func() bool { return w.Status().Intents[receipt.StateInFlight] == 5 && len(p.names()) == 1 }, time.Minute, time.Millisecond)
	return w
}

// ends waits until nothing of a world is in flight or open.
func ends(t *testing.T, w *local.World) world.Status {
	t.Helper()
	require.Eventually(t, func() bool {
		at := w.Status().Intents
		return at[receipt.StateInFlight]+at[receipt.StateOpen] == 0
	}, time.Minute, time.Millisecond)
	return w.Status()
}

func TestAppliedDenyEndsWhatTheHostHasNotBegun(t *testing.T) {
	p := newProbes()
	w := busyWorld(t, p)
	denies := *performedBy(t, w, "probe", "first", "tool.a")
	denies.Policies = []manifest.Policy{{Name: "none", When: "true", Decide: "deny"}}
	n := approve(t, w, &denies)
	f, err := w.PreviewApply(t.Context(), &denies, nil)
	require.NoError(t, err)
	require.Equal(t, []uint64{4, 4, 1, 4}, []uint64{f.Open.Open, f.Open.Queued, f.Open.UnderWay, f.Open.Denied})
	applied := make(chan error, 1)
	go func() { applied <- worldtest.ErrorOf(w.Apply(t.Context(), n, "ann")) }()
	require.Eventually(t, func() bool { return w.Status().Intents[receipt.StateOpen] == 4 }, time.Minute, time.Millisecond, "they are given back")
	close(p.held)
	require.NoError(t, <-applied)
	at := ends(t, w).Intents
	require.Equal(t, []int{1, 4}, []int{at[receipt.StateCommitted], at[receipt.StateDenied]})
	require.Len(t, p.performed, 1)
	requireSound(t, w)
}

func TestStopEndsWhatTheHostHasNotBegun(t *testing.T) {
	p := newProbes()
	w := busyWorld(t, p)
	stop := func(e *receipt.Entry) error {
		b := journal.Resolved{How: journal.Stop, Key: e.Intent.Key, Params: e.Params, Actor: "ann", Reason: "not today"}
		return w.Decide(t.Context(), &b, e)
	}
	var all []receipt.Entry
	w.View(func(m *world.Moment) {
		for _, x := range m.InFlight() {
			e, _ := m.Intent(x.Key)
			all = append(all, e)
		}
	})
	refused := 0
	for i := range all {
		if err := stop(&all[i]); err != nil {
			require.ErrorIs(t, err, world.ErrNotWaiting)
			refused++
		}
	}
	require.Equal(t, 1, refused, "it is under way")
	close(p.held)
	at := ends(t, w).Intents
	require.Equal(t, []int{1, 4}, []int{at[receipt.StateCommitted], at[receipt.StateDenied]})
	require.Len(t, p.performed, 1)
	requireSound(t, w)
}

// TestWhatAProcessBeforeHasGivenBackIsNotBegun, and one who only looks is told so.
func TestWhatAProcessBeforeHasGivenBackIsNotBegun(t *testing.T) {
	p := newProbes()
	p.held = make(chan struct{})
	opts := p.options("probe")
	opts.Workers, opts.Grace = 1, time.Millisecond
	dir := changing(t, p)
	w := openWith(t, dir, opts)
	for n := range 5 {
		ask(t, w, string(rune('a'+n)), "tool.a", n)
	}
	for len(p.names()) == 0 {
		_, err := w.Next(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	w = openWith(t, dir, opts)
	denies := *performedBy(t, w, "probe", "first", "tool.a")
	denies.Policies = []manifest.Policy{{Name: "none", When: "true", Decide: "deny"}}
	f, err := w.PreviewApply(t.Context(), &denies, nil)
	require.NoError(t, err)
	require.Equal(t, []uint64{4, 4}, []uint64{f.Open.Queued, f.Open.Denied})
	require.NoError(t, w.Close())
}

// TestHeldWorldGoesOnWhereItIsReleased: what was taken back is permitted again.
func TestHeldWorldGoesOnWhereItIsReleased(t *testing.T) {
	p := newProbes()
	w := busyWorld(t, p)
	release, err := w.Hold(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, w.Status().Intents[receipt.StateOpen])
	release()
	close(p.held)
	require.Equal(t, 5, ends(t, w).Intents[receipt.StateCommitted])
	for key, by := range p.performed {
		require.Len(t, by, 1, "%s was performed more than once", key)
	}
	requireSound(t, w)
}

// TestHoldTakesWhatCameWhenTheWorldWasClosed: what its host gave back then, and what it still ended.
func TestHoldTakesWhatCameWhenTheWorldWasClosed(t *testing.T) {
	p := newProbes()
	p.held = make(chan struct{})
	opts := p.options("probe")
	opts.Workers = 1
	dir := changing(t, p)
	w := openWith(t, dir, opts)
	for n := range 5 {
		ask(t, w, string(rune('a'+n)), "tool.a", n)
	}
	for len(p.names()) == 0 {
		_, err := w.Next(t.Context())
		require.NoError(t, err)
	}
	close(p.held)
	require.NoError(t, w.Close())

	opts.Still = true
	w = openWith(t, dir, opts)
	require.Equal(t, 5, w.Status().Intents[receipt.StateInFlight])
	release, err := w.Hold(t.Context())
	require.NoError(t, err)
	at := w.Status().Intents
	require.Equal(t, []int{0, len(p.performed), 5 - len(p.performed)}, []int{at[receipt.StateInFlight], at[receipt.StateCommitted], at[receipt.StateOpen]})
	release()
	requireSound(t, w)
	require.NoError(t, w.Close())
}

// TestApplyBesideARunningWorld changes the rules again and again while others run
// the world, send, and wait for the outside.
func TestApplyBesideARunningWorld(t *testing.T) {
	p := newProbes()
	w := openWith(t, changing(t, p), p.options("probe"))
	ctx, stop := context.WithCancel(t.Context())
	var runner, senders sync.WaitGroup
	runner.Go(func() { keepRunning(ctx, t, w) })
	runner.Go(func() {
		for ctx.Err() == nil {
			if err := w.Wait(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("wait: %v", err)
				return
			}
		}
	})
	const cells, events, changes = 3, 20, 6
	for i := range cells {
		senders.Go(func() {
			for n := range events {
				_, err := w.Submit(ctx, "go", map[string]any{"to": string(rune('a' + i)), "kind": "tool.a", "n": n})
				if err != nil {
					t.Errorf("submit: %v", err)
					return
				}
			}
		})
	}
	for i := range changes {
		n := approve(t, w, performedBy(t, w, "probe", strconv.Itoa(i), "tool.a"))
		require.NoError(t, worldtest.ErrorOf(w.Apply(t.Context(), n, "ann")))
	}
	senders.Wait()
	stop()
	runner.Wait()
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, cells*events, w.Status().Intents[receipt.StateCommitted])
	require.Len(t, p.performed, cells*events)
	for key, by := range p.performed {
		require.Len(t, by, 1, "%s was performed more than once", key)
	}
	require.LessOrEqual(t, len(p.names()), 1)
	requireSound(t, w)
	require.NoError(t, w.Close())
}

// TestApplyWithoutAHostSaysSo takes away what performs a world's effects before it
// has to begin anew.
func TestApplyWithoutAHostSaysSo(t *testing.T) {
	testlog.Skip(t, "who copies its directory has no second world: the store has one")
	p := newProbes()
	dir, recorded := changing(t, p), filepath.Join(t.TempDir(), "recorded")
	require.NoError(t, os.CopyFS(recorded, os.DirFS(dir)))
	require.NoError(t, os.Chmod(filepath.Join(recorded, ".world", "keyring"), 0o600))
	opts := p.options("probe")
	opts.Effects = recorded
	w := openWith(t, dir, opts)
	next := performedBy(t, w, "probe", "second", "tool.a")
	n := approve(t, w, next)
	require.NoError(t, os.RemoveAll(recorded))

	require.ErrorIs(t, worldtest.ErrorOf(w.Apply(t.Context(), n, "ann")), local.ErrNoRecording)
	_, err := w.Submit(t.Context(), "go", map[string]any{"to": "x", "kind": "tool.a", "n": 1})
	require.ErrorIs(t, err, local.ErrNoRecording, "it goes on saying so")
	require.ErrorIs(t, w.Run(t.Context()), local.ErrNoRecording)
	require.ErrorIs(t, w.Close(), local.ErrNoRecording)

	w = openWith(t, dir, p.options("probe"))
	require.Equal(t, hashOf(t, next), w.Status().Manifest, "it was in force before the host was needed")
	ask(t, w, "x", "tool.a", 1)
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, []any{"second"}, heard(t, w, "x"))
	requireSound(t, w)
	require.NoError(t, w.Close())
}

// A world goes on while somebody else's rules are made ready and run on its history.
func TestCandidatesDoNotHoldTheWorld(t *testing.T) {
	p := newProbes()
	opts := p.options("probe")
	var w *local.World
	looked := 0
	look := func() { // who waits for the world hangs here, and so does the test
		looked++
		ask(t, w, "x", "tool.a", looked)
		require.NoError(t, w.Run(t.Context()))
	}
	opts.Adapters["other"] = func(s host.Setup) (host.Adapter, error) {
		look()
		return p.options("probe").Adapters["probe"](s)
	}
	w = openWith(t, changing(t, p), opts)
	for n := range 200 {
		ask(t, w, "y", "tool.a", n)
	}
	require.NoError(t, w.Run(t.Context()))
	_, n, err := w.Propose(t.Context(), world.Proposal{Candidate: performedBy(t, w, "other", "second", "tool.a"), Base: w.Status().Manifest, Actor: "ann"})
	require.NoError(t, err)
	require.Equal(t, 1, looked)
	before := w.Status().Head.ID
	_, r, err := w.Shadow(t.Context(), n, world.ShadowConfig{Progress: func(journal.Seq) { look() }}, "ann")
	require.NoError(t, err)
	require.Greater(t, looked, 1)
	require.EqualValues(t, before, r.To, "what came meanwhile is not in the report")
	require.Greater(t, w.Status().Head.ID, before)
	requireSound(t, w)
	require.NoError(t, w.Close())
}

func hashOf(t *testing.T, m *manifest.Manifest) manifest.Hash {
	t.Helper()
	encoded, err := m.Encode()
	require.NoError(t, err)
	return canon.Sum(encoded)
}

// A program proposes what it can perform, and applies what it can perform.
func TestEffectsThatNobodyPerformsAreRefused(t *testing.T) {
	p := newProbes()
	dir := changing(t, p)
	w := openWith(t, dir, p.options("probe"))
	before := w.Status()
	next := performedBy(t, w, "other", "second", "tool.a")
	_, _, err := w.Propose(t.Context(), world.Proposal{Candidate: next, Base: before.Manifest, Actor: "ann"})
	var refused *local.AdaptersError
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Faults, 1)
	require.Equal(t, "/effects/tool.a/config", refused.Faults[0].Path)
	require.Equal(t, before, w.Status())
	require.NoError(t, w.Close())

	w = openWith(t, dir, p.options("probe", "other"))
	n := approve(t, w, next)
	require.NoError(t, w.Close())

	w = openWith(t, dir, p.options("probe"))
	before = w.Status()
	for what, change := range map[string]func(w *world.World) error{
		"propose": func(w *world.World) error {
			other := *next
			other.Version = 7
			return worldtest.ErrorOf(w.Propose(t.Context(), world.Proposal{Candidate: &other, Base: before.Manifest, Actor: "ann"}))
		},
		"apply": func(w *world.World) error { return worldtest.ErrorOf(w.Apply(t.Context(), n, "ann")) },
		"would": func(w *world.World) error { return worldtest.ErrorOf(w.WouldApply(t.Context(), n)) },
	} {
		require.ErrorAs(t, w.Update(change), &refused, what)
	}
	require.ErrorAs(t, worldtest.ErrorOf(w.Apply(t.Context(), n, "ann")), &refused)
	require.Equal(t, before, w.Status(), "nothing has changed")
	ask(t, w, "x", "tool.a", 1)
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, []any{"first"}, heard(t, w, "x"))
	require.NoError(t, w.Close())

	w = openWith(t, dir, p.options("probe", "other"))
	require.NoError(t, worldtest.ErrorOf(w.Apply(t.Context(), n, "ann")))
	ask(t, w, "x", "tool.a", 2)
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, []any{"first", "second"}, heard(t, w, "x"))
	requireSound(t, w)
	require.NoError(t, w.Close())
}

// A world whose effects this program does not know how to perform can be read.
func TestWorldWithoutItsAdaptersIsRead(t *testing.T) {
	p := newProbes()
	dir := changing(t, p)
	w := openWith(t, dir, p.options("probe"))
	ask(t, w, "x", "tool.a", 1)
	require.NoError(t, w.Run(t.Context()))
	ask(t, w, "x", "tool.a", 2)
	before := w.Status()
	require.NoError(t, w.Close())

	w = openWith(t, dir, local.Options{})
	lacks := new(manifest.NoAdapterError)
	require.ErrorAs(t, w.Lacks(), &lacks)
	require.Equal(t, "probe", lacks.Name)
	require.Equal(t, before, w.Status())
	require.Equal(t, []any{"first"}, heard(t, w, "x"))
	requireSound(t, w)
	_, err := w.Submit(t.Context(), "ask", nil)
	require.ErrorAs(t, err, &lacks)
	require.ErrorAs(t, w.Run(t.Context()), &lacks)
	require.NoError(t, w.Close())

	keyring := filepath.Join(dir, ".world", "keyring")
	keys, err := os.ReadFile(keyring)
	require.NoError(t, err)
	_, err = local.Rotate(t.Context(), dir, local.Options{}, "ada")
	require.ErrorAs(t, err, &lacks)
	after, err := os.ReadFile(keyring)
	require.NoError(t, err)
	require.Equal(t, keys, after, "no key of which the journal does not know")

	opts := elsewhere(p)
	opts.Adapters = nil
	w = openWith(t, dir, opts)
	_, _, err = w.AcquireEffects(t.Context(), "hand", nil, 1)
	require.ErrorAs(t, err, &lacks)
	require.NoError(t, w.Close())

	w = openWith(t, dir, p.options("probe"))
	require.Equal(t, before, w.Status(), "who looked has changed nothing")
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, []any{"first", "first"}, heard(t, w, "x"))
	require.NoError(t, w.Close())
}

// TestDriveTellsWhatItWaitsFor: before each wait, with what is in flight then.
func TestDriveTellsWhatItWaitsFor(t *testing.T) {
	p := newProbes()
	p.held = make(chan struct{})
	w := openWith(t, changing(t, p), p.options("probe"))
	ask(t, w, "x", "tool.a", 1)
	var told []string
	_, err := w.Drive(t.Context(), local.Course{Waits: func(m *world.Moment) {
		for _, x := range m.InFlight() {
			told = append(told, x.Kind+" of "+x.Cell)
		}
		if len(told) == 1 {
			close(p.held)
		}
	}})
	require.NoError(t, err)
	require.NotEmpty(t, told)
	require.Equal(t, "tool.a of caller/x", told[0])
	require.Equal(t, []any{"first"}, heard(t, w, "x"))
	require.NoError(t, w.Close())
}
