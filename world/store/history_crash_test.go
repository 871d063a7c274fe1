package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
)

// deed is what a doer is told to do: tool:KIND, ping:CELL, timer:TICKS.
type deed struct {
	To  string   `cbor:"to,omitempty"`
	Do  []string `cbor:"do,omitempty"`
	Pad string   `cbor:"pad,omitempty"`
}

func doer(ctx *reducer.Context, seen []string, e reducer.Event) ([]string, error) {
	if e.Name == reducer.ReceiptEvent {
		r, err := reducer.Decode[reducer.Receipt](e.Data)
		return append(seen, fmt.Sprintf("%s %s", r.Tag, r.Status)), err
	}
	d, err := reducer.Decode[deed](e.Data)
	if err != nil {
		return seen, err
	}
	for i, do := range d.Do {
		switch verb, what, _ := strings.Cut(do, ":"); verb {
		case "tool":
			ctx.Effect(what, map[string]string{"p": what + d.To}, fmt.Sprint(what, i))
		case "ping":
			ctx.EmitTo("ping", deed{To: what}, what)
		case "timer":
			ticks, err := strconv.ParseUint(what, 10, 64)
			if err != nil {
				return seen, err
			}
			ctx.Timer(manifest.Tick(ticks), "alarm", deed{To: d.To, Do: []string{"ping:late"}})
		}
	}
	return append(seen, fmt.Sprintf("%d %s %d", ctx.Time(), e.Name, len(d.Do)), d.Pad), nil
}

// doers is the manifest in which tool.ask needs a person, until ask is allowed.
func doers(version uint64, ask string) *manifest.Manifest {
	m := manifest.Manifest{
		World: "doers", Version: version, Seed: 7,
		Reducers: map[string]manifest.Reducer{"doer": {Engine: manifest.EngineGo, Name: "doer", Version: "1", Grants: []string{"tools"}}},
		Events:   map[string]manifest.Event{"go": {}, "ping": {}},
		Effects: map[string]manifest.Effect{
			"tool.a": {Adapter: "test", Compensate: &manifest.Compensate{Kind: "tool.undo", Params: `{"of": intent.params.p}`}},
			"tool.b": {Adapter: "test"}, "tool.undo": {Adapter: "test"}, "tool.ask": {Adapter: "test"},
		},
		Caps: map[string]manifest.Cap{"tools": {Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"tool.*"}}}},
		Policies: []manifest.Policy{
			{Name: "all", When: "true", Decide: manifest.DecideAllow},
			{Name: "ask", When: `intent.kind == "tool.ask"`, Decide: ask},
		},
		Routing: []manifest.Route{
			{Event: "go", Reducer: "doer", Key: "event.data.to"},
			{Event: "ping", Reducer: "doer", Key: "event.data.to"},
		},
		Limits: manifest.Limits{InFlight: 2},
	}
	m = m.WithDefaults()
	return &m
}

// answering is a host that answers every permit alike, at once.
type answering struct {
	world   string
	keys    *receipt.Keyring
	answers []world.Answer
	woken   chan struct{}
}

func (*answering) Live(string) bool { return false }

func (h *answering) Wake() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

func (h *answering) Start(tasks []world.Task) {
	for _, t := range tasks {
		if t.Work == world.Forget {
			continue
		}
		r := receipt.New(h.world, t.Permit, receipt.StatusOK, receipt.Data(canon.AppendText(nil, t.Tag)))
		r.StartedAt, r.FinishedAt = t.Time, t.Time
		data, err := h.keys.Sign(&r)
		h.answers = append(h.answers, world.Answer{Key: t.Key, Attempt: t.Attempt, Receipt: data, Err: err})
	}
}

func (h *answering) Answers() ([]world.Answer, error) {
	answers := h.answers
	h.answers = nil
	return answers, nil
}

func (h *answering) Wait(ctx context.Context) error {
	if len(h.answers) > 0 {
		return nil
	}
	select {
	case <-h.woken:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// told is what is known of a story: the heads of its batches, and the last record
// that was acknowledged.
type told struct {
	mu    sync.Mutex
	heads []world.Head
	acked atomic.Uint64
}

// shelf is the journal of a world. A late one gives images to the store only when
// records after them are durable, as when their writer is slow.
type shelf struct {
	*Store

	told *told
	late bool
	held []*world.Image
}

func (s *shelf) Append(b world.Batch) (world.Pending, error) {
	p, err := s.Store.Append(b)
	if err != nil {
		return nil, err
	}
	s.told.mu.Lock()
	s.told.heads = append(s.told.heads, b.Head)
	s.told.mu.Unlock()
	done := &shelved{Pending: p, told: s.told, head: b.Head.ID}
	if len(s.held) > 2 {
		if err := done.Wait(); err != nil {
			return nil, err
		}
		err = s.release()
	}
	return done, err
}

type shelved struct {
	world.Pending

	told *told
	head world.Seq
}

func (p *shelved) Wait() error {
	err := p.Pending.Wait()
	if err == nil {
		p.told.acked.Store(uint64(p.head))
	}
	return err
}

func (s *shelf) Checkpoint(img *world.Image) error {
	s.held = append(s.held, img)
	if s.late {
		return nil
	}
	return s.release()
}

func (s *shelf) release() error {
	for _, img := range s.held {
		if err := s.Store.Checkpoint(img); err != nil {
			return err
		}
	}
	s.held = nil
	return nil
}

func (s *shelf) Part(at world.Seq, cells []string) (*world.Image, error) {
	if err := s.release(); err != nil {
		return nil, err
	}
	return s.Store.Part(at, cells)
}

// actors is a world of doers and its store.
type actors struct {
	*world.World

	shelf *shelf
}

func doersOptions(files vfs.FS) Options {
	opts := testOptions(files)
	opts.EachCell = func(kind string, payload []byte, visit func(cell []byte)) {
		_ = world.EachCell(world.Kind(kind), payload, visit)
	}
	opts.IntentOf = func(kind string, payload []byte) (world.Hash, []byte, bool) {
		return world.IntentOf(world.Kind(kind), payload)
	}
	return opts
}

func doersConfig(s *shelf) world.Config {
	secret := sha256.Sum256([]byte("doers"))
	keys, err := receipt.NewKeyring("doers-1", []receipt.Epoch{{Number: 1, Secret: secret[:]}})
	if err != nil {
		panic(err)
	}
	registry := new(reducer.Registry)
	registry.Register("doer", "1", reducer.Typed(1, doer))
	return world.Config{
		Journal: s, History: s, Keys: keys, Registry: registry, BatchRecords: 3,
		NewHost: func(id string, _ *manifest.Manifest) (world.Host, error) {
			return &answering{world: id, keys: keys, woken: make(chan struct{}, 1)}, nil
		},
	}
}

// begin opens the world, or makes it where there is none.
func begin(opts Options, to *told, late bool) (*actors, error) {
	s, err := Open(testDir, opts)
	if errors.Is(err, ErrNotWorld) {
		s, err = Create(testDir, opts)
	}
	if err != nil {
		return nil, err
	}
	a := &actors{shelf: &shelf{Store: s, told: to, late: late}}
	if s.Head().ID == 0 {
		a.World, err = world.Create(doersConfig(a.shelf), world.Genesis{ID: "doers-1", Seed: 7, Manifest: doers(1, manifest.DecideRequireApproval)})
	} else {
		a.World, err = world.Open(doersConfig(a.shelf))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return a, nil
}

func (a *actors) end() error { return errors.Join(a.shelf.release(), a.shelf.Close()) }

// chapter is a part of the story. One that was cut short can be told again.
type chapter struct {
	name string
	tell func(context.Context, *actors) error
	some bool // it is several batches; else it is one, so that it has happened or not
}

// chapters are a story of snapshots, rollbacks and manifests, and what happens
// between them. An intent is asked for before the first snapshot and answered
// after it, so that the rollbacks have something to tell again; another never
// starts, so that they have something to cancel; the timers outlive the ticks of
// their chapters.
func chapters() []chapter {
	big := strings.Repeat("long ", 1000)
	return []chapter{
		acting("run", 2, "", deed{To: "a", Do: []string{"tool:tool.a", "tool:tool.ask", "timer:3"}}, deed{To: "b", Do: []string{"ping:c"}, Pad: big}),
		snapshotting("first"),
		acting("run on", 5, "doer/a", deed{To: "a", Do: []string{"tool:tool.a", "tool:tool.b"}}, deed{To: "c", Do: []string{"tool:tool.ask", "timer:9"}}),
		snapshotting("second"),
		acting("run a little", 6, "", deed{To: "b", Do: []string{"tool:tool.b"}, Pad: big}),
		snapshotting("third"),
		changing("prune", func(ctx context.Context, a *actors) error {
			return a.Prune(ctx, world.SnapshotPruned{Name: "second", Actor: "ada"})
		}),
		acting("run after pruning", 8, "", deed{To: "d", Do: []string{"tool:tool.a", "ping:a"}}),
		returning("roll back to the first", world.RolledBack{Snapshot: "first", Ack: true, Compensate: true}),
		acting("run after the rollback", 10, "", deed{To: "a", Do: []string{"tool:tool.b", "timer:2"}}, deed{To: "e", Do: []string{"tool:tool.ask"}}),
		changing("adopt", func(ctx context.Context, a *actors) error {
			return a.Adopt(ctx, doers(2, manifest.DecideAllow), nil, a.Status().Manifest, "ada")
		}),
		changing("retain one", func(ctx context.Context, a *actors) error {
			_, err := a.Retain(ctx, world.SnapshotRetention{Max: 1, Actor: "ada"})
			return err
		}),
		snapshotting("fourth"),
		acting("run on the other manifest", 12, "", deed{To: "e", Do: []string{"tool:tool.ask", "tool:tool.a"}, Pad: big}),
		returning("roll back to the fourth", world.RolledBack{Snapshot: "fourth", Ack: true, Fresh: true}),
		acting("run to the end", 14, "", deed{To: "b", Do: []string{"tool:tool.a"}}, deed{To: "f"}),
	}
}

func changing(name string, tell func(context.Context, *actors) error) chapter {
	return chapter{name: name, tell: tell}
}

func snapshotting(name string) chapter {
	return changing("snapshot "+name, func(ctx context.Context, a *actors) error {
		_, err := a.Snapshot(ctx, name, "", "ada")
		return err
	})
}

func returning(name string, b world.RolledBack) chapter {
	b.Actor, b.Reason = "ada", "a try"
	return changing(name, func(ctx context.Context, a *actors) error {
		_, err := a.Rollback(ctx, b)
		return err
	})
}

// acting submits deeds, those that the journal does not have, approves what a cell
// asks for, and runs to a tick.
func acting(name string, until manifest.Tick, approve string, deeds ...deed) chapter {
	return chapter{name: name, some: true, tell: func(ctx context.Context, a *actors) error {
		for _, d := range deeds {
			d.Pad += name // no chapter has the deeds of another
			data, err := canon.Marshal(d)
			if err != nil {
				return err
			}
			if there, err := a.submitted(data); err != nil {
				return err
			} else if there {
				continue
			}
			if _, err = a.Submit(ctx, world.Submission{Name: "go", Data: data}); err != nil {
				return err
			}
		}
		for _, e := range a.Intents() {
			if e.Intent.Cell != approve || e.State != receipt.StateParked {
				continue
			}
			b := world.Resolved{Key: e.Intent.Key, Params: e.Params, How: world.Approve, Actor: "ada", Reason: "so"}
			if err := a.Resolve(ctx, b); err != nil {
				return err
			}
		}
		for a.Time() < until {
			if err := a.Step(ctx); err != nil {
				return err
			}
		}
		return nil
	}}
}

func (a *actors) submitted(data []byte) (bool, error) {
	for s, err := range a.shelf.Scan(0) {
		if err != nil {
			return false, err
		}
		if s.Record.Kind != world.KindSubmitted {
			continue
		}
		rec := s.Record
		if err := rec.Load(a.shelf); err != nil {
			return false, err
		}
		if strings.HasSuffix(string(rec.Payload), string(data)) {
			return true, nil
		}
	}
	return false, nil
}

// standing is where a world is.
type standing struct {
	status    world.Status
	state     world.Hash
	snapshots []snapshot.Snapshot
}

func (a *actors) stands() standing {
	return standing{a.Status(), a.StateRoot(), a.Snapshots()}
}

// undisturbed is a story that nothing disturbed: where the world is before each
// chapter and after the last, what is on disk before each, and the heads of the
// batches of each.
type undisturbed struct {
	before []standing
	files  []*vfs.MemFS
	heads  [][]world.Head
}

func tellUndisturbed(t *testing.T) *undisturbed {
	t.Helper()
	mem, to := memFS(t), new(told)
	u := new(undisturbed)
	open := func() *actors {
		a, err := begin(doersOptions(mem), to, false)
		require.NoError(t, err)
		u.before = append(u.before, a.stands())
		return a
	}
	a := open()
	for _, c := range chapters() {
		require.NoError(t, a.end())
		u.files = append(u.files, clone(mem))
		a = open()
		require.Equal(t, u.before[len(u.before)-2], u.before[len(u.before)-1], "opening changes nothing")
		u.before = u.before[:len(u.before)-1]
		to.heads = nil
		require.NoError(t, c.tell(t.Context(), a), c.name)
		require.True(t, c.some || len(to.heads) == 1, c.name)
		u.before, u.heads = append(u.before, a.stands()), append(u.heads, to.heads)
	}
	require.NoError(t, a.end())
	return u
}

// manner is how a story is told.
type manner struct {
	reopening bool // a process for each chapter, instead of one for all
	late      bool // images lag behind the records after them
	every     int  // one crash in so many writes is looked at
}

// scene is what the disk may hold after a crash in a chapter.
type scene struct {
	files   *vfs.MemFS
	chapter int
	acked   world.Seq
}

// scenes tells the story and returns what crashes at its writes may leave.
func (u *undisturbed) scenes(t *testing.T, how manner, rng *rand.Rand) []scene {
	t.Helper()
	mem, to := memFS(t), new(told)
	var mu sync.Mutex
	var scenes []scene
	at := -1
	recorder := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if at < 0 || at == len(u.heads) || rng.IntN(how.every) > 0 {
			return nil
		}
		// Asked first: what is acknowledged now is in the clone.
		s := scene{chapter: at, acked: world.Seq(to.acked.Load())}
		s.files = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * rng.IntN(3), RNG: rng})
		scenes = append(scenes, s)
		return nil
	})
	turn := func(page int) {
		mu.Lock()
		defer mu.Unlock()
		at = page
	}
	opts := doersOptions(errorfs.Wrap(mem, writesAt(recorder)))
	a, err := begin(opts, to, how.late)
	require.NoError(t, err)
	for i, c := range chapters() {
		turn(i)
		if how.reopening {
			require.NoError(t, a.end())
			a, err = begin(opts, to, how.late)
			require.NoError(t, err)
		}
		require.NoError(t, c.tell(t.Context(), a), c.name)
		if !how.late {
			a.shelf.settleImages()
		}
	}
	require.Equal(t, u.before[len(u.heads)], a.stands())
	turn(len(u.heads))
	require.NoError(t, a.end())
	return scenes
}

// survives opens what a crash has left. It is the world before the chapter or
// after it, or after some of its batches where it has several; and going on from
// there, it becomes the world that was not disturbed.
func (u *undisturbed) survives(t *testing.T, s scene) {
	t.Helper()
	found := clone(s.files)
	a, err := begin(doersOptions(s.files), new(told), false)
	require.NoError(t, err)
	head, now := a.shelf.Head(), a.stands()
	require.GreaterOrEqual(t, head.ID, s.acked)
	before, after := u.before[s.chapter], u.before[s.chapter+1]
	next := s.chapter
	switch head {
	case before.status.Head:
		require.Equal(t, before, now)
	case after.status.Head:
		require.Equal(t, after, now)
		next++
	default:
		require.Contains(t, u.heads[s.chapter], head)
	}
	replayed, err := world.Replay(a.shelf.Store, a.replays())
	require.NoError(t, err)
	require.Equal(t, world.Replayed{Head: now.status.Head, StateRoot: now.state}, *replayed)
	a.requireImages(t)
	for _, to := range now.snapshots {
		rollsBack(t, clone(found), to)
	}
	for _, c := range chapters()[next:] {
		require.NoError(t, c.tell(t.Context(), a), c.name)
	}
	require.Equal(t, u.before[len(u.heads)], a.stands())
	require.NoError(t, a.Checkpoint())
	a.requireImages(t)
	a.requireNoOthers(t)
	require.Empty(t, damageOf(a.shelf.Store))
	require.NoError(t, a.end())
}

func (a *actors) replays() world.ReplayConfig {
	cfg := doersConfig(a.shelf)
	return world.ReplayConfig{Keys: cfg.Keys, Registry: cfg.Registry}
}

// requireImages checks that each snapshot of the catalog has its image, and that
// this with the records after it gives the world.
func (a *actors) requireImages(t *testing.T) {
	t.Helper()
	a.shelf.settleImages()
	cells := []string{"doer/a", "doer/b", "doer/c", "doer/d", "doer/e", "doer/f", "doer/late"} // some only in other histories
	for _, s := range a.Snapshots() {
		img, err := a.shelf.Part(world.Seq(s.Record), cells)
		require.NoError(t, err, s.Name)
		require.GreaterOrEqual(t, len(img.Cells), int(s.Cells), "%s has the cells, and those that a rollback has unmade", s.Name)
		cfg := a.replays()
		cfg.From = world.Seq(s.Record)
		replayed, err := world.Replay(a.shelf.Store, cfg)
		if s.Name == "third" && errors.Is(err, world.ErrNotFound) {
			continue // the first, to which a rollback led since, is let go
		}
		require.NoError(t, err, s.Name)
		require.Equal(t, a.StateRoot(), replayed.StateRoot, s.Name)
	}
}

// requireNoOthers checks that the store has no other images than those of the
// catalog and of now, and no version that these do not need.
func (a *actors) requireNoOthers(t *testing.T) {
	t.Helper()
	v, err := a.shelf.look()
	require.NoError(t, err)
	defer v.close()
	heads, err := v.heads()
	require.NoError(t, err)
	var want []world.Seq
	for _, s := range a.Snapshots() {
		want = append(want, world.Seq(s.Record))
	}
	require.Equal(t, append(want, a.Head().ID), heads)
	requireNothingUnneeded(t, a.shelf.Store)
}

// rollsBack rolls a copy of a world back. That compares the state roots.
func rollsBack(t *testing.T, files *vfs.MemFS, to snapshot.Snapshot) {
	t.Helper()
	a, err := begin(doersOptions(files), new(told), false)
	require.NoError(t, err)
	_, err = a.Rollback(t.Context(), world.RolledBack{Snapshot: to.Name, Ack: true, Actor: "ada", Reason: "a test"})
	require.NoError(t, err, to.Name)
	require.NoError(t, a.end())
}

func TestCrashInHistoryIsBeforeOrAfter(t *testing.T) {
	u := tellUndisturbed(t)
	for seed, how := range []manner{{every: 1}, {every: 1, late: true}, {every: 8, reopening: true}} {
		t.Run(fmt.Sprintf("%+v,seed=%d", how, seed), func(t *testing.T) {
			scenes := u.scenes(t, how, rand.New(rand.NewPCG(7, uint64(seed))))
			require.Greater(t, len(scenes), 80)
			for i, s := range scenes {
				if !t.Run(fmt.Sprint(i, " ", chapters()[s.chapter].name), func(t *testing.T) { u.survives(t, s) }) {
					return
				}
			}
		})
	}
}

// tellUnder tells one chapter over a failing disk, up to its end or that of the
// process.
func (u *undisturbed) tellUnder(mem *vfs.MemFS, at int, to *told, fault errorfs.InjectorFunc) ends {
	end := make(chan ends, 8)
	var armed, dead atomic.Bool
	opts := doersOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if dead.Load() {
			select {} // Pebble would try again, forever
		}
		if !armed.Load() {
			return nil
		}
		return fault(op)
	})))
	opts.Fatal = func(err error) {
		dead.Store(true)
		end <- ends{err: err, fatal: true}
		select {}
	}
	go func() {
		a, err := begin(opts, to, false)
		if err == nil {
			armed.Store(true)
			err = errors.Join(chapters()[at].tell(context.Background(), a), a.end())
		}
		end <- ends{err: err}
	}()
	return <-end
}

// A write that fails is an error, and the world that is opened then is before the
// change or after it.
func TestFailingWriteInHistoryIsBeforeOrAfter(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	u := tellUndisturbed(t)
	kinds := map[ends]int{}
	for at, c := range chapters() {
		if c.some {
			continue
		}
		for n, injected := int64(1), true; injected; n += 1 + rng.Int64N(5) {
			all := rng.IntN(2) == 0
			mem, to := clone(u.files[at]), new(told)
			var count atomic.Int64
			got := u.tellUnder(mem, at, to, func(op errorfs.Op) error {
				if i := count.Add(1); i == n || all && i > n {
					return &vfsError{op, syscall.EIO}
				}
				return nil
			})
			injected = count.Load() >= n
			if got.err == nil {
				require.Equal(t, u.before[at+1].status.Head.ID, world.Seq(to.acked.Load()))
			}
			kinds[ends{fatal: got.fatal}]++
			s := scene{files: mem.CrashClone(vfs.CrashCloneCfg{}), chapter: at, acked: world.Seq(to.acked.Load())}
			name := fmt.Sprintf("%s, operation %d, all after=%v, seed=%d", c.name, n, all, seed)
			if !t.Run(name, func(t *testing.T) { u.survives(t, s) }) {
				t.Fatal("ended with", got.err)
			}
		}
	}
	require.Positive(t, kinds[ends{}])
	require.Positive(t, kinds[ends{fatal: true}], "no failing log ended the process")
}
