package local_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

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

const payer = `def reduce(ctx, state, event):
    if event.name == "receipt":
        return (state or []) + [event.data["payload"]]
    ctx.effect("outside.pay", event.data["what"])
    return state or []
`

// till is a live adapter that notes what was paid, with the external key; fails says what
// nobody can tell the outcome of.
type till struct {
	mu      sync.Mutex
	paid    []string
	keys    []string
	fails   string
	declare string // of the effect; empty: on_in_doubt: ask
}

func (p *till) Perform(_ context.Context, call host.Call) (host.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var what string
	if err := call.Decode(&what); err != nil {
		return host.Result{}, err
	}
	p.paid, p.keys = append(p.paid, what), append(p.keys, call.External)
	if what == p.fails {
		return host.Result{}, errors.New("the line is dead")
	}
	return host.OK("paid " + what)
}

func (p *till) options() local.Options {
	return local.Options{Adapters: map[string]host.Factory{
		"till": func(host.Setup) (host.Adapter, error) { return p, nil },
	}}
}

// paying opens a new world whose payments go to a till.
func paying(t *testing.T, p *till) *local.World {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		local.ManifestFile: worldtest.Caller("shop", "outside.pay: {adapter: till, "+cmp.Or(p.declare, "on_in_doubt: ask")+"}"), "caller.star": payer,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "parent"}, p.options()))
	return openPaying(t, dir, p.options())
}

func openPaying(t *testing.T, dir string, opts local.Options) *local.World {
	t.Helper()
	w, err := local.Open(dir, opts)
	require.NoError(t, err)
	return w
}

func pay(t *testing.T, w *local.World, to, what string) {
	t.Helper()
	_, err := w.Submit(t.Context(), "go", map[string]any{"to": to, "what": what})
	require.NoError(t, err)
}

func toldOf(t *testing.T, w *local.World, key string) string {
	t.Helper()
	v, ok, err := w.CellAt(reducer.Cell{Reducer: "caller", Key: key}, w.Status().Head.ID)
	require.NoError(t, err)
	require.True(t, ok)
	text, err := v.State.MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

// forkLive forks a world at a record, closes it, and returns the fork's directory.
func forkLive(t *testing.T, w *local.World, at journal.Seq) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "fork")
	_, err := w.Fork(t.Context(), to, local.ForkOptions{ID: "fork", At: at, Live: manifest.Live{"outside.pay"}})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return to
}

// TestForkPerformsOnlyWhatItsParentHasNotAskedFor: what is recorded answers where it fits,
// also after the first miss, and a miss is performed under a key of the fork's own.
func TestForkPerformsOnlyWhatItsParentHasNotAskedFor(t *testing.T) {
	p := new(till)
	w := paying(t, p)
	pay(t, w, "a", "rent")
	pay(t, w, "b", "milk")
	require.NoError(t, w.Run(t.Context()))
	home := w.Dir()
	to := forkLive(t, w, 1)
	if testlog.On() { // it has its parent with it
		home = filepath.Join(to, ".world", "past")
	}

	opts := p.options()
	var first []*host.MissError
	opts.Missed = func(e *host.MissError) { first = append(first, e) }
	f := openPaying(t, to, opts)
	require.Equal(t, home, f.LiveBeside())
	require.Equal(t, []string{"outside.pay"}, f.Performs())
	pay(t, f, "a", "rent")
	pay(t, f, "a", "bread")
	pay(t, f, "b", "milk")
	pay(t, f, "b", "milk")
	done, err := f.Drive(t.Context(), local.Course{})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"rent", "milk"}, p.paid[:2])
	require.ElementsMatch(t, []string{"bread", "milk"}, p.paid[2:])
	require.Equal(t, uint64(2), done.Missed)
	require.Equal(t, uint64(2), f.Missed())
	require.Len(t, first, 1, "the first is announced")
	require.False(t, first[0].Unanswered)
	require.Equal(t, `["paid rent","paid bread"]`, toldOf(t, f, "a"))
	require.Equal(t, `["paid milk","paid milk"]`, toldOf(t, f, "b"))
	for i, key := range p.keys {
		require.Contains(t, key, []string{"parent", "parent", "fork", "fork"}[i])
	}
	sound(t, f)
	require.NoError(t, f.Close())

	f = openPaying(t, to, p.options()) // another process
	pay(t, f, "a", "bread")
	require.NoError(t, f.Run(t.Context()))
	require.Len(t, p.paid, 5, "the second bread is another one")
	require.NoError(t, f.Close())
}

// TestRecordedForkSaysThatItsParentHasNoAnswerYet, and not that the parent has to ask first.
func TestRecordedForkSaysThatItsParentHasNoAnswerYet(t *testing.T) {
	p := &till{fails: "rent"}
	w := paying(t, p)
	before := w.Status().Head.ID
	pay(t, w, "a", "rent")
	require.NoError(t, w.Run(t.Context()))
	to := filepath.Join(t.TempDir(), "fork")
	_, err := w.Fork(t.Context(), to, local.ForkOptions{At: before, Effects: journal.ForkRecorded, Actor: "ada"})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	f := openPaying(t, to, p.options())
	pay(t, f, "a", "rent")
	var miss *host.MissError
	require.ErrorAs(t, f.Run(t.Context()), &miss)
	require.True(t, miss.Unanswered)
	require.NoError(t, f.Close())
}

// TestForkNeverPerformsWhatItsParentMayYetDo: what the parent had asked for when the fork
// was made, and has no answer to, stops the fork, until the parent has one.
func TestForkNeverPerformsWhatItsParentMayYetDo(t *testing.T) {
	p := &till{fails: "rent"}
	w := paying(t, p)
	before := w.Status().Head.ID
	pay(t, w, "a", "rent")
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, 1, w.Status().Intents[receipt.StateInDoubt])
	home := w.Dir()
	for name, at := range map[string]journal.Seq{"it comes to ask": before, "it is in doubt": 0} {
		t.Run(name, func(t *testing.T) {
			to := forkLive(t, w, at)
			f := openPaying(t, to, p.options())
			if at == before {
				pay(t, f, "a", "rent")
				err := f.Run(t.Context())
				var miss *host.MissError
				require.ErrorAs(t, err, &miss)
				require.True(t, miss.Unanswered)
			} else {
				require.NoError(t, f.Run(t.Context()))
				require.Equal(t, 1, f.Status().Intents[receipt.StateInDoubt], "a person decides")
			}
			require.Equal(t, []string{"rent"}, p.paid, "nobody has paid it again")
			require.NoError(t, f.Close())
			w = openPaying(t, home, p.options())
		})
	}
	to := forkLive(t, w, before)
	f := openPaying(t, to, p.options())
	pay(t, f, "a", "rent")
	require.Error(t, f.Run(t.Context()))
	require.NoError(t, f.Close())

	w = openPaying(t, home, p.options())
	require.NoError(t, w.Update(func(w *world.World) error {
		seen, err := canon.Marshal("seen")
		require.NoError(t, err)
		e := w.Intents()[0]
		return worldtest.ErrorOf(w.Resolve(t.Context(), journal.Resolved{
			Key: e.Intent.Key, How: journal.Executed, Params: e.Params, Actor: "ada", Reason: "the bank says so", Payload: seen,
		}))
	}))
	if testlog.On() { // that fork has its parent as that was: another one has the answer
		to = forkLive(t, w, before)
	} else {
		require.NoError(t, w.Close())
	}
	f = openPaying(t, to, p.options())
	if testlog.On() {
		pay(t, f, "a", "rent")
	}
	require.NoError(t, f.Run(t.Context()))
	require.Equal(t, `["seen"]`, toldOf(t, f, "a"))
	require.Equal(t, []string{"rent"}, p.paid)
	require.NoError(t, f.Close())
}

// TestRecordingTellsWhatEndedInDoubt: nobody knows whether it happened, so a fork does not
// do it again.
func TestRecordingTellsWhatEndedInDoubt(t *testing.T) {
	p := &till{fails: "rent", declare: "on_in_doubt: fail"}
	w := paying(t, p)
	before := w.Status().Head.ID
	pay(t, w, "a", "rent")
	require.NoError(t, w.Run(t.Context()))
	was := toldOf(t, w, "a")
	f := openPaying(t, forkLive(t, w, before), p.options())
	pay(t, f, "a", "rent")
	require.NoError(t, f.Run(t.Context()))
	require.Equal(t, was, toldOf(t, f, "a"))
	require.Equal(t, []string{"rent"}, p.paid)
	require.NoError(t, f.Close())
}

// TestWhatIfOfARunningWorldKnowsWhatItAsksMeanwhile: what is asked for before the fork is
// made is recorded, also where somebody runs the world on.
func TestWhatIfOfARunningWorldKnowsWhatItAsksMeanwhile(t *testing.T) {
	p := new(till)
	w := paying(t, p)
	x, err := w.Suppose(t.Context(), local.WhatIf{
		At: func(*local.World) (journal.Seq, error) {
			before := w.Status().Head.ID
			pay(t, w, "a", "rent")
			return before, w.Run(t.Context())
		},
		Send: func(_ context.Context, fork *local.World) (uint64, error) {
			pay(t, fork, "a", "rent")
			return 1, nil
		},
		Alone: true, Live: manifest.Live{"outside.pay"}, UntilIdle: true, Actor: "ada",
		Dir: filepath.Join(t.TempDir(), "fork"), Copy: filepath.Join(t.TempDir(), "copy"),
	})
	require.NoError(t, err)
	require.NoError(t, x.Run(t.Context(), p.options()))
	require.Equal(t, [2]uint64{1, 0}, [2]uint64{x.Answered, x.Performed})
	require.Equal(t, []string{"rent"}, p.paid)
	require.NoError(t, x.Close())
	require.NoError(t, w.Close())
}
