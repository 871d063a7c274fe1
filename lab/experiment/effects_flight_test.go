package experiment_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
)

// slow is an oracle that answers when it is let.
type slow struct {
	oracle
	let chan struct{}
}

func (o *slow) Perform(ctx context.Context, call host.Call) (host.Result, error) {
	result, err := o.oracle.Perform(ctx, call)
	select {
	case <-o.let:
		return result, err
	case <-ctx.Done():
		return host.Result{}, errors.New("killed")
	}
}

func (o *slow) options(jobs int, dir string) experiment.Options {
	return experiment.Options{Dir: dir, Jobs: jobs, Worlds: local.Options{
		Adapters: map[string]host.Factory{"oracle": func(host.Setup) (host.Adapter, error) { return o, nil }},
	}}
}

// begin carries out an experiment, and returns when all that it can do without an answer is
// done.
func (o *slow) begin(t *testing.T, ctx context.Context, path string, opts experiment.Options) (ended chan error) { //nolint:revive // t is first in tests
	t.Helper()
	o.let = make(chan struct{})
	s, err := experiment.Load(path, experiment.LoadOptions{Worlds: opts.Worlds, Live: manifest.Live{"model.ask"}})
	require.NoError(t, err)
	ended = make(chan error, 1)
	go func() {
		_, err := experiment.Run(ctx, s, opts)
		ended <- err
	}()
	synctest.Wait()
	return ended
}

// twins have equal rules, and inputs that could be told apart.
const twins = "variants: {one: , same: {params: {}}}\nseeds: 5"

func TestRunsThatAskTheSameAtOnceAskItOnce(t *testing.T) {
	path := asking(t, "seeds: 5", twins, "go.jsonl", "go.star", "{idle: true}", "{ticks: 5}")
	synctest.Test(t, func(t *testing.T) {
		var o slow
		ended := o.begin(t, t.Context(), path, o.options(2, t.TempDir()))
		require.EqualValues(t, 1, o.asked.Load())
		close(o.let)
		require.NoError(t, <-ended)
		require.EqualValues(t, 10, o.asked.Load())
	})
	var o oracle
	together, alone := t.TempDir(), t.TempDir()
	run(t, o.load(t, path, ""), experiment.Options{Dir: together, Worlds: o.options(), Jobs: 2})
	run(t, o.load(t, path, ""), experiment.Options{Dir: alone, Worlds: o.options(), Jobs: 1})
	require.Equal(t, tables(t, together), tables(t, alone))
	require.Zero(t, o.asked.Load())
}

// TestLiveRunsWaitTogether: who waits for a model needs no core.
func TestLiveRunsWaitTogether(t *testing.T) {
	path := asking(t, "seeds: 5", "seeds: 40", "calls: 10", "calls: 100")
	synctest.Test(t, func(t *testing.T) {
		var o slow
		ended := o.begin(t, t.Context(), path, o.options(0, t.TempDir()))
		require.EqualValues(t, max(32, runtime.GOMAXPROCS(0)), o.asked.Load())
		close(o.let)
		require.NoError(t, <-ended)
	})
}

func TestAttemptsUnderWayEndWhenTheBudgetIsUsedUp(t *testing.T) {
	path := asking(t, "seeds: 5", "seeds: 2", "calls: 10", "calls: 1")
	synctest.Test(t, func(t *testing.T) {
		var o slow
		var waiting int
		opts := o.options(2, t.TempDir())
		opts.Waiting = func(attempts int) { waiting = attempts }
		ended := o.begin(t, t.Context(), path, opts)
		require.Empty(t, ended, "an attempt is under way")
		require.Equal(t, 1, waiting, "and somebody is told")
		close(o.let)
		require.ErrorAs(t, <-ended, new(*experiment.BudgetError))
		require.EqualValues(t, 1, o.asked.Load())
	})
	edit(t, path, "calls: 1}", "calls: 4}")
	var o oracle
	out := run(t, o.load(t, path, ""), experiment.Options{Dir: t.TempDir(), Worlds: o.options()})
	require.EqualValues(t, 3, o.asked.Load(), "what was under way has its answer")
	require.EqualValues(t, 4, out.Spent.Calls)
	require.Zero(t, out.FailedEffects.All)
}

func TestAttemptsUnderWayHaveTimeToEndOnInterrupt(t *testing.T) {
	for _, in := range []struct {
		time  time.Duration
		asked int64
		lost  uint64
	}{{host.DefaultGrace - time.Second, 3, 0}, {host.DefaultGrace + time.Second, 3, 1}} {
		path := asking(t, "seeds: 5", "seeds: 2")
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			var o slow
			ended := o.begin(t, ctx, path, o.options(1, t.TempDir()))
			interrupt()
			time.Sleep(in.time) //nolint:forbidigo // the clock of the bubble
			synctest.Wait()
			close(o.let)
			require.ErrorIs(t, <-ended, context.Canceled)
			require.EqualValues(t, 1, o.asked.Load())
		})
		var o oracle
		out := run(t, o.load(t, path, ""), experiment.Options{Dir: t.TempDir(), Worlds: o.options()})
		require.Equal(t, in.lost, out.FailedEffects.All)
		require.Equal(t, in.asked, o.asked.Load())
	}
}

// edit changes a file.
func edit(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.Replace(text, []byte(from), []byte(to), 1), 0o600))
}

// TestWhatAnotherProcessMakesNowIsNotInDoubt to who reads the same answers meanwhile: it is to
// come, or in doubt when that process has ended without it.
func TestWhatAnotherProcessMakesNowIsNotInDoubt(t *testing.T) {
	path := asking(t, "seeds: 5", "seeds: 2")
	beside, alone := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var o slow
		ended := o.begin(t, t.Context(), path, o.options(2, alone))
		recorded := func() *experiment.Outcome {
			out, err := experiment.Run(t.Context(), o.load(t, path, experiment.EffectsRecorded), experiment.Options{Dir: beside, Worlds: o.options(2, "").Worlds})
			require.NoError(t, err)
			return out
		}
		out := recorded()
		require.Len(t, out.Failed, 2)
		require.Contains(t, out.Failed[0].Error, "another process makes the attempt now")
		require.Zero(t, out.InDoubt)
		close(o.let)
		require.NoError(t, <-ended)
		require.Empty(t, recorded().Failed)
		require.EqualValues(t, 4, o.asked.Load())
	})
	require.Equal(t, tables(t, alone), tables(t, beside))
}
