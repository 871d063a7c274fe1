package experiment_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// gated is an oracle that answers when it is let, and knows what it was asked.
type gated struct {
	oracle
	let chan struct{}

	mu   sync.Mutex
	keys map[receipt.Key]bool
}

func newGated() *gated { return &gated{let: make(chan struct{}), keys: make(map[receipt.Key]bool)} }

func (g *gated) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	g.mu.Lock()
	g.keys[call.Permit.Key] = true
	g.mu.Unlock()
	<-g.let
	return g.oracle.Perform(ctx, call)
}

func (g *gated) options() local.Options {
	return local.Options{Adapters: map[string]host.Factory{"oracle": func(host.Setup) (host.Adapter, error) { return g, nil }}}
}

// killed is a world as it lay on the disk when a process ended.
type killed struct {
	dir    string
	head   journal.Seq
	flight []receipt.Key
}

// kill has a world ask, and returns what lies on the disk while nothing is answered yet.
func kill(t *testing.T, dir string) *killed {
	t.Helper()
	g, k := newGated(), &killed{dir: "killed"}
	living := filepath.Join(dir, "asks")
	require.NoError(t, local.Create(living, local.CreateOptions{ID: "asks"}, g.options()))
	lw, err := local.Open(living, g.options())
	require.NoError(t, err)
	for _, to := range []string{"a", "b"} {
		_, err = lw.Submit(t.Context(), "go", map[string]any{"to": to})
		require.NoError(t, err)
	}
	for p := world.Handled; p != world.Waiting; {
		p, err = lw.Next(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, lw.Sync())
	k.head = lw.Status().Head.ID
	lw.View(func(m *world.Moment) {
		for _, e := range m.InFlight() {
			k.flight = append(k.flight, e.Key)
		}
	})
	require.Len(t, k.flight, 2)
	require.NoError(t, os.CopyFS(filepath.Join(dir, k.dir), os.DirFS(living)))
	require.NoError(t, os.Chmod(filepath.Join(dir, k.dir, ".world", "keyring"), 0o600))
	close(g.let)
	require.NoError(t, lw.Close())
	return k
}

// forkedAt returns the record after which a fork began.
func forkedAt(t *testing.T, dir string, o local.Options) journal.Seq {
	t.Helper()
	lw, err := local.Open(dir, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, lw.Close()) }()
	for s, err := range lw.Scan(0) {
		require.NoError(t, err)
		if s.Record.Kind == journal.KindForked {
			return s.ID - 1
		}
	}
	t.Fatal("it is no fork")
	return 0
}

// futures writes an experiment that begins at a moment of the killed world, and reads it.
func (k *killed) futures(t *testing.T, dir, moment, mode string, o local.Options) *experiment.Spec {
	t.Helper()
	path := filepath.Join(dir, "futures.yaml")
	text := fmt.Sprintf("experiment: futures\nversion: 1\nfrom: %[1]q\nseeds: 2\nstop: {ticks: 10}\nmeasures: {cells: {cells: asker}}\n"+
		"effects: {mode: %[2]s, record: answers-%[3]s, budget: {calls: 20}}\n", k.dir+"@"+moment, mode, k.dir)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	var live manifest.Live
	if mode == experiment.EffectsLive {
		live = manifest.Live{"model.ask"}
	}
	s, err := experiment.Load(path, experiment.LoadOptions{Worlds: o, Live: live})
	require.NoError(t, err)
	return s
}

// still returns what a world is read with.
func (g *gated) still() local.Options {
	o := g.options()
	o.Still = true
	return o
}

// fork makes a fork of the killed world, and returns where it begins and where the world ends.
func (k *killed) fork(t *testing.T, dir string, at journal.Seq, g *gated) (journal.Seq, journal.Head) {
	t.Helper()
	lw, err := local.Open(filepath.Join(dir, k.dir), g.still())
	require.NoError(t, err)
	fork := filepath.Join(t.TempDir(), "fork")
	_, err = lw.Fork(t.Context(), fork, local.ForkOptions{At: at, Effects: journal.ForkLive, Live: manifest.Live{}})
	require.NoError(t, err)
	head := lw.Status().Head
	require.NoError(t, lw.Close())
	return forkedAt(t, fork, g.still()), head
}

func TestFuturesOfAWorldWithLiveEffects(t *testing.T) {
	dir := filepath.Dir(document(t, ""))
	k := kill(t, dir)
	for moment, at := range map[string]journal.Seq{"head": 0, fmt.Sprintf("#%d", k.head): k.head} {
		g := newGated()
		close(g.let)
		want, head := k.fork(t, dir, at, g)
		var flight []receipt.Key
		if at == 0 {
			require.Less(t, want, head.ID, "a tick is under way, with what came of the kill")
		} else {
			require.Equal(t, want, at)
			flight = k.flight
		}
		for _, mode := range []string{experiment.EffectsStub, experiment.EffectsLive, experiment.EffectsRecorded} {
			require.Equal(t, want, g.futures(t, k.futures(t, dir, moment, mode, g.options()), len(flight)), "it begins where a fork does")
		}
		for _, key := range flight {
			require.NotContains(t, g.keys, key, "what was in flight is not performed again")
		}
		_, now := k.fork(t, dir, at, g)
		require.Equal(t, head, now, "the world has not changed")
	}
}

// futures makes the runs of an experiment, each with so many effects in doubt, and returns
// where they begin.
func (g *gated) futures(t *testing.T, s *experiment.Spec, inDoubt int) journal.Seq {
	t.Helper()
	o := experiment.Options{Dir: t.TempDir(), Worlds: g.options()}
	before := g.asked.Load()
	out, err := experiment.Run(t.Context(), s, o)
	require.NoError(t, err)
	if s.Effects.Mode != experiment.EffectsLive {
		require.Equal(t, before, g.asked.Load(), s.Effects.Mode)
	}
	for _, f := range out.Failed {
		require.Equal(t, experiment.EffectsStub, s.Effects.Mode, f.Error)
		require.Contains(t, f.Error, "nothing answers model.ask of asker/")
	}
	require.EqualValues(t, 2*inDoubt, out.InDoubt.All)
	kept := filepath.Join(t.TempDir(), "kept")
	again, err := experiment.Keep(t.Context(), s, 2, o, kept)
	require.NoError(t, err)
	require.True(t, again.Recorded)
	return forkedAt(t, kept, g.still())
}
