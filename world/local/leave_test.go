package local_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// handClock goes when it is told to.
type handClock struct{ at atomic.Int64 }

func (c *handClock) Now() time.Time { return time.Unix(0, c.at.Load()) }

// Wait waits for ever.
func (c *handClock) Wait(ctx context.Context, _ time.Time) error {
	<-ctx.Done()
	return ctx.Err()
}

// doer counts what it has done.
type doer struct{ done *atomic.Int64 }

func (d doer) Perform(context.Context, host.Call) (host.Result, error) {
	d.done.Add(1)
	return host.OK(nil)
}

// effectsLater is how many effects the world of dueLater asks for.
const effectsLater = 7

// dueLater makes a world with a real clock in which effects are asked for when the clock has
// gone on by a minute, and what it is opened with.
func dueLater(t *testing.T, a host.Adapter) (dir string, clock *handClock, opts local.Options) {
	dir = t.TempDir()
	for name, text := range map[string]string{"world.yaml": `
world: jobs
clock: {mode: real, epoch: 2026-01-01T00:00:00Z, tick: 1s}
reducers:
  job: {engine: starlark, source: job.star, grants: [go]}
events: {begin: }
effects: {job.do: {adapter: doer}}
caps: {go: {type: any, params: {kinds: [job.do]}}}
policies: [{name: all, when: 'true', decide: allow}]
routing: [{event: begin, reducer: job, key: event.data.who}]
`, "job.star": `
def reduce(ctx, state, event):
    if event.name == "begin":
        ctx.timer("5s", "later")
    elif event.name != "receipt":
        for i in range(7):
            ctx.effect("job.do", {"i": i})
    return state
`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	clock = new(handClock)
	clock.at.Store(time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC).UnixNano())
	opts = local.Options{Clock: clock, Adapters: map[string]host.Factory{
		"doer": func(host.Setup) (host.Adapter, error) { return a, nil },
	}}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "jobs", Keyring: ring(t, "jobs", 1)}, opts))
	w := openWith(t, dir, opts)
	_, err := w.Submit(t.Context(), "begin", map[string]any{"who": "ada"})
	require.NoError(t, err)
	_, err = w.Drive(t.Context(), local.Course{Ticks: 1})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	clock.at.Add(int64(time.Minute))
	return dir, clock, opts
}

// requireDoneOnce requires that a world is left with nothing in doubt, and that whoever runs
// it next has each effect performed once.
func requireDoneOnce(t *testing.T, dir string, opts local.Options, done *atomic.Int64) {
	w := openWith(t, dir, opts)
	require.Zero(t, w.Status().Intents[receipt.StateInDoubt], "nobody has begun them")
	_, err := w.Drive(t.Context(), local.Course{})
	require.NoError(t, err)
	require.Equal(t, effectsLater, w.Status().Intents[receipt.StateCommitted])
	require.EqualValues(t, effectsLater, done.Load(), "each was done once")
	require.NoError(t, w.Close())
}

// TestWhoIsRefusedLeavesNoAttemptBehind: an input brings a world with a real clock to now
// first, and then it is refused and the process ends. What was asked for on the way is
// permitted by who drives the world, and performed once.
func TestWhoIsRefusedLeavesNoAttemptBehind(t *testing.T) {
	done := new(atomic.Int64)
	dir, _, opts := dueLater(t, doer{done})
	require.Zero(t, done.Load(), "its time has not come")
	w := openWith(t, dir, opts)
	err := w.Update(func(w *world.World) error {
		_, err := w.Resume(t.Context(), reducer.Cell{Reducer: "job", Key: "ada"}, world.SkipEvent, "ben", "x")
		return err
	})
	require.ErrorIs(t, err, world.ErrNotHalted)
	require.Equal(t, effectsLater, w.Status().Intents[receipt.StateOpen], "asked for on the way to now")
	require.NoError(t, w.Close())
	requireDoneOnce(t, dir, opts, done)
}

// TestWhoIsStillBeginsNothing: whoever opens a world for one input leaves what falls due
// outside to whoever runs it, how often ever.
func TestWhoIsStillBeginsNothing(t *testing.T) {
	done := new(atomic.Int64)
	dir, clock, opts := dueLater(t, doer{done})
	still := opts
	still.Still = true
	for range 3 {
		snapshotOnce(t, dir, still)
		require.Zero(t, done.Load())
		clock.at.Add(int64(time.Second))
	}
	w := openWith(t, dir, still)
	require.Equal(t, effectsLater, w.Status().Intents[receipt.StateOpen])
	for r, err := range w.Scan(0) {
		require.NoError(t, err)
		require.NotEqual(t, journal.KindStarted, r.Record.Kind, "nobody was there to begin anything")
	}
	require.NoError(t, w.Close())
	requireDoneOnce(t, dir, opts, done)
}

// TestWhoIsStillGivesBackWhatACrashLeft: a tick that ended in its middle is ended by whoever
// opens the world next. What that permits is given back by one who is still, also where the
// rules change meanwhile.
func TestWhoIsStillGivesBackWhatACrashLeft(t *testing.T) {
	done := new(atomic.Int64)
	dir, clock, opts := dueLater(t, doer{done})
	clock.at.Add(-int64(time.Minute))
	w := openWith(t, dir, opts)
	next, _ := w.InForce()
	other := *next
	other.Version++
	n := approve(t, w, &other)
	clock.at.Add(int64(time.Minute))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err := w.Next(stopped)
	require.ErrorIs(t, err, context.Canceled, "before the turn of the cell")
	require.NoError(t, w.Close())

	still := opts
	still.Still = true
	w = openWith(t, dir, still)
	soon, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	_, _, err = w.Apply(soon, n, "ada")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	snapshotOnce(t, dir, still)
	require.Zero(t, done.Load())
	requireDoneOnce(t, dir, opts, done)
}

func snapshotOnce(t *testing.T, dir string, opts local.Options) {
	w := openWith(t, dir, opts)
	require.NoError(t, w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Snapshot(t.Context(), "", "", "ada"))
	}))
	require.NoError(t, w.Close())
	require.Empty(t, w.Left())
}
