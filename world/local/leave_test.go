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
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
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

// TestWhoIsRefusedLeavesNoAttemptBehind: an input brings a world with a real clock to now
// first, which permits effects, and then it is refused and the process ends. Nobody has
// begun them, so they are given back, and the next process performs each once.
func TestWhoIsRefusedLeavesNoAttemptBehind(t *testing.T) {
	const effects = 7
	dir := t.TempDir()
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
	clock, done := new(handClock), new(atomic.Int64)
	clock.at.Store(time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC).UnixNano())
	opts := local.Options{Clock: clock, Adapters: map[string]host.Factory{
		"doer": func(host.Setup) (host.Adapter, error) { return doer{done}, nil },
	}}
	require.NoError(t, local.Create(dir, local.Birth{ID: "jobs", Keyring: ring(t, "jobs", 1)}, opts))
	open := func() *local.World {
		w, err := local.Open(dir, opts)
		require.NoError(t, err)
		return w
	}
	w := open()
	_, err := w.Submit(t.Context(), "begin", map[string]any{"who": "ada"})
	require.NoError(t, err)
	_, err = w.Drive(t.Context(), local.Course{Ticks: 1})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Zero(t, done.Load(), "its time has not come")

	clock.at.Add(int64(time.Minute))
	w = open()
	err = w.Update(func(w *world.World) error {
		_, err := w.Resume(t.Context(), reducer.Cell{Reducer: "job", Key: "ada"}, world.SkipEvent, "ben", "x")
		return err
	})
	require.ErrorIs(t, err, world.ErrNotParked)
	require.Equal(t, effects, w.Status().Intents[receipt.StateInFlight], "permitted on the way to now")
	require.NoError(t, w.Close())

	w = open()
	require.Zero(t, w.Status().Intents[receipt.StateInDoubt], "nobody has begun them")
	_, err = w.Drive(t.Context(), local.Course{})
	require.NoError(t, err)
	require.Equal(t, effects, w.Status().Intents[receipt.StateCommitted])
	require.EqualValues(t, effects, done.Load(), "each was done once")
	require.NoError(t, w.Close())
}
