package worldtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/verify"
)

// TestJournalsOnPostgresAreThoseInDirectories lives random worlds in memory, in a directory, and in
// PostgreSQL with one owner and with five in turn: the same journal everywhere. None of the five lets
// go, and what each does when it has lost the world stays in its copy, to which it comes back.
func TestJournalsOnPostgresAreThoseInDirectories(t *testing.T) {
	first, runs := fault.Seeds(t, 3, 100)
	loaded, err := source.Load(filepath.Join("testdata", "bots", "world.yaml"))
	require.NoError(t, err)
	nodes := nodesOf(t, 5)
	taken := 0
	for seed := first; seed < first+uint64(runs); seed++ {
		m := *loaded.Manifest
		m.Seed, m.Limits.InFlight, m.Limits.Mailbox = seed, 1+seed%4, 4+seed%60
		script := plan(rand.New(rand.NewPCG(seed, 0)))
		want := inMemory(t, m, loaded, script)
		for owners, id := range map[int]string{0: "", 1: fmt.Sprint("one-", seed), 5: fmt.Sprint("five-", seed)} {
			p := placedAmong(t, nodes[:owners], id)
			require.Equal(t, want, p.live(m, loaded, script), "SEED=%d, %d owners", seed, owners)
			taken += p.lost
		}
	}
	require.Greater(t, taken, runs)
	t.Logf("SEED=%d: %d worlds, taken over %d times", first, runs, taken)
}

// nodesOf returns processes that share a store on PostgreSQL.
func nodesOf(t *testing.T, n int) (nodes []*pglog.Store) {
	t.Helper()
	url := pgtest.URL(t)
	require.NoError(t, pglog.Init(t.Context(), url))
	for i := range n {
		s, err := pglog.Open(t.Context(), url, pglog.Options{Node: fmt.Sprint("node-", i)})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		nodes = append(nodes, s)
	}
	return nodes
}

// facts are what must not depend on where a world lies, and on who has it.
type facts struct {
	records, payloads [][]byte
	refused           []string // actions
	execution         string
	root              journal.Hash
}

func inMemory(t *testing.T, m manifest.Manifest, loaded *source.Loaded, script []action) (f facts) {
	t.Helper()
	w := New(t, m, loaded.Contents, Options{Answer: fate})
	for i := range script {
		f.act(t, w, &script[i])
	}
	w.Run()
	f.read(t, w, w.Journal)
	return f
}

func (f *facts) act(t *testing.T, w *World, d *action) {
	t.Helper()
	err := do(t.Context(), t, w, d)
	if input := new(world.InputError); errors.As(err, &input) {
		f.refused = append(f.refused, err.Error())
		return
	}
	require.NoError(t, err)
}

func (f *facts) read(t *testing.T, w *World, h journal.History) {
	t.Helper()
	for s, err := range h.Scan(0) {
		require.NoError(t, errors.Join(err, s.Err))
		require.NoError(t, s.Record.Load(h))
		f.records, f.payloads = append(f.records, s.Bytes), append(f.payloads, s.Record.Payload)
	}
	r, err := verify.Verify(t.Context(), h, verify.Config{Keys: w.cfg.Keys, Anchor: w.Status().Head})
	require.NoError(t, err)
	require.True(t, r.OK, "%v", r.Faults)
	f.execution, f.root = fmt.Sprint(r.ExecutionHash), w.StateRoot()
}

// placed is a world of which a directory has the journal, or a log that processes own in turn.
type placed struct {
	t    *testing.T
	logs []func() journal.Log // as each process has it; none: a directory
	cfg  world.Config         // but for the journal
	over func(*store.Store) journal.Journal
	dirs [5]string // of the processes, or the first; empty: not yet
	turn int
	lost int // by how many processes

	w     *World
	store *store.Store
}

var sealKey = []byte("a key of thirty-two bytes for it")

// placedAmong returns a world, not made yet, that lies in the store of nodes; where there are none,
// in a directory.
func placedAmong(t *testing.T, nodes []*pglog.Store, id string) *placed {
	t.Helper()
	p := &placed{t: t, cfg: world.Config{Keys: Keyring(t, "test"), Paranoid: true, CheckpointRecords: 30}}
	for _, n := range nodes {
		p.logs = append(p.logs, func() journal.Log { return n.World(id, pglog.Claim{Key: sealKey, Take: true}) })
	}
	if len(nodes) > 0 {
		require.NoError(t, nodes[0].Create(t.Context(), id, sealKey))
	}
	return p
}

func (p *placed) live(m manifest.Manifest, loaded *source.Loaded, script []action) (f facts) {
	p.cfg.NewHost = func(id string, _ *manifest.Manifest) (world.Host, error) {
		return &waking{scripted{world: id, keys: p.cfg.Keys, answer: fate}, make(chan struct{}, 1)}, nil
	}
	p.make(m.WithDefaults(), loaded.Contents)
	for i := range script {
		p.next()
		f.act(p.t, p.w, &script[i])
	}
	p.w.Run()
	p.next()
	f.read(p.t, p.w, p.store)
	require.NoError(p.t, p.store.Close())
	return f
}

// make makes the world.
func (p *placed) make(m manifest.Manifest, contents map[manifest.Hash][]byte) {
	p.open(store.Create, func(cfg world.Config) (*world.World, error) {
		return world.Create(cfg, world.Genesis{ID: "test", Seed: m.Seed, Manifest: &m, Contents: contents})
	})
}

// next has the next process take the world over, which the last one is told; or opens it again where
// there is one at most.
func (p *placed) next() {
	was := p.w
	if left := p.again(); len(p.logs) > 1 {
		require.ErrorIs(p.t, was.World.Step(context.Background()), journal.ErrFenced)
		_ = left.Close() // it has lost the world
	}
}

// again is next, but for what the last process is told. It returns what that has left open.
func (p *placed) again() (left *store.Store) {
	if p.turn++; len(p.logs) < 2 {
		require.NoError(p.t, p.store.Close())
	} else {
		left = p.store
		p.lost++
	}
	p.open(store.Open, world.Open)
	return left
}

func (p *placed) open(open func(string, store.Options) (*store.Store, error), begin func(world.Config) (*world.World, error)) {
	process := p.turn % max(len(p.logs), 1)
	if p.dirs[process] == "" {
		p.dirs[process] = p.t.TempDir()
	}
	opts := store.Options{
		AnchorKey: sealKey,
		EachCell: func(kind string, payload []byte, visit func(cell []byte)) {
			_ = journal.EachCell(journal.Kind(kind), payload, visit)
		},
		IntentOf: func(kind string, payload []byte) (journal.Hash, []byte, bool) {
			return journal.IntentOf(journal.Kind(kind), payload)
		},
	}
	if len(p.logs) > 0 {
		opts.Log = p.logs[process]()
	}
	s, err := open(p.dirs[process], opts)
	require.NoError(p.t, err)
	cfg := p.cfg
	cfg.Journal, cfg.History, cfg.Images = s, s, s
	if p.over != nil {
		cfg.Journal = p.over(s)
	}
	w, err := begin(cfg)
	require.NoError(p.t, err)
	p.store, p.w = s, &World{World: w, t: p.t, cfg: cfg}
}

// waking is a scripted host over a journal that takes its time.
type waking struct {
	scripted
	woken chan struct{}
}

func (h *waking) Wake() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

func (h *waking) Wait(ctx context.Context) error {
	if len(h.answers) > 0 {
		return ctx.Err()
	}
	select {
	case <-h.woken:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
