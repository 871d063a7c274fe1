package local_test

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// wander lets a world of bots live through what was made up: events at once, later
// and to a cell that is named, ticks in which nothing happens, and jumps.
func wander(t *testing.T, w *local.World, rng *rand.Rand, inputs int) {
	t.Helper()
	ctx := context.Background()
	acts := []map[string]any{
		{"emit": "ping", "to": "b"},
		{"effect": "tool.a", "param": "x"},
		{"effect": "tool.b", "param": "error"},
		{"effect": "tool.bad"},
		{"timer": 1},
		{"timer": 5},
		{"random": 9},
		{"delete": true},
	}
	for range inputs {
		var do []any
		for range rng.IntN(4) {
			do = append(do, acts[rng.IntN(len(acts))])
		}
		data, err := canon.Marshal(map[string]any{"to": string(rune('a' + rng.IntN(3))), "do": do})
		require.NoError(t, err)
		s := world.Submission{Name: "go", Data: data}
		switch rng.IntN(4) {
		case 0:
			s.At = w.Status().Time + manifest.Tick(1+rng.IntN(4))
		case 1:
			s.To = &reducer.Cell{Reducer: "bot", Key: "c"}
		}
		_, err = w.SubmitEvent(ctx, s)
		require.NoError(t, err)
		switch rng.IntN(4) {
		case 0:
			require.NoError(t, w.Run(ctx))
		case 1:
			require.NoError(t, w.Step(ctx))
			require.NoError(t, w.Step(ctx))
		case 2:
			require.NoError(t, w.Step(ctx))
		}
	}
}

// recordedFork forks a world, and returns both, open, and where they part.
func recordedFork(t *testing.T, dir string, at journal.Seq, amend ...world.Amendment) (parent, fork *local.World, forked *local.Forked) {
	t.Helper()
	parent = open(t, dir)
	to := filepath.Join(t.TempDir(), "fork")
	options := local.ForkOptions{At: at, Effects: journal.ForkRecorded, Actor: "ada"}
	for _, amend := range amend {
		options.Amend = amend
	}
	forked, err := parent.Fork(t.Context(), to, options)
	require.NoError(t, err)
	require.NoError(t, parent.Close())
	fork = open(t, to)
	parent = open(t, dir)
	t.Cleanup(func() { require.NoError(t, fork.Close()); require.NoError(t, parent.Close()) })
	return parent, fork, forked
}

func differs(t *testing.T, a, b *local.World) world.Difference {
	t.Helper()
	var d world.Difference
	a.View(func(a *world.Moment) {
		b.View(func(b *world.Moment) { d = world.Compare(a, b) })
	})
	return d
}

// TestForkThatFollowsItsParentComesToTheSame from wherever it begins, the clock
// included.
func TestForkThatFollowsItsParentComesToTheSame(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		dir := create(t)
		w := open(t, dir)
		wander(t, w, rng, 8)
		before := w.Status()
		require.NoError(t, w.Close())

		parent, fork, forked := recordedFork(t, dir, journal.Seq(1+rng.Uint64N(uint64(before.Head.ID))))
		_, err := fork.Follow(context.Background(), local.Past{World: parent, After: forked.At, Last: before.Time})
		require.NoError(t, err)
		d := differs(t, parent, fork)
		require.True(t, d.Same(), "seed %d, forked at #%d of %d: %+v", seed, forked.At, before.Head.ID, d)
		require.Equal(t, before.Time, fork.Status().Time, "seed %d", seed)
		require.Equal(t, before, parent.Status(), "the parent does not change")
	}
}

// TestFollowStopsAfterItsLastTick with the inputs that came before the next.
func TestFollowStopsAfterItsLastTick(t *testing.T) {
	ctx := context.Background()
	dir := create(t)
	w := open(t, dir)
	for range 3 {
		_, err := w.Submit(ctx, "go", map[string]any{"to": "a"})
		require.NoError(t, err)
		require.NoError(t, w.Step(ctx))
	}
	require.NoError(t, w.Close())
	parent, fork, forked := recordedFork(t, dir, 1)
	followed, err := fork.Follow(ctx, local.Past{World: parent, After: forked.At, Last: 1})
	require.NoError(t, err)
	require.Equal(t, local.Followed{Events: 2}, followed)
	s := fork.Status()
	require.Equal(t, manifest.Tick(1), s.Time)
	require.Equal(t, 1, s.EventsPending)
}

// TestFollowKeepsTheTickWhereTheClockIsBehind: nothing happens in the fork until
// an event comes in a tick that only its parent has reached.
func TestFollowKeepsTheTickWhereTheClockIsBehind(t *testing.T) {
	ctx := context.Background()
	dir := create(t)
	w := open(t, dir)
	data, err := canon.Marshal(map[string]any{"to": "a"})
	require.NoError(t, err)
	alarm, err := w.SubmitEvent(ctx, world.Submission{Name: "go", Data: data, When: world.When{At: 50}})
	require.NoError(t, err)
	require.NoError(t, w.Run(ctx))
	_, err = w.Submit(ctx, "go", map[string]any{"to": "b"})
	require.NoError(t, err)
	require.NoError(t, w.Run(ctx))
	require.NoError(t, w.Close())

	parent, fork, _ := recordedFork(t, dir, alarm.ID-1)
	_, err = fork.Follow(ctx, local.Past{World: parent, After: alarm.ID, Last: 50})
	require.NoError(t, err)
	require.Equal(t, manifest.Tick(50), fork.Status().Time)
	require.NoError(t, fork.RunUntil(ctx, 51))
	require.Equal(t, manifest.Tick(51), fork.Status().Time)
	d := differs(t, parent, fork)
	require.Len(t, d.CellsGone, 1, "bot/a")
	require.Empty(t, d.CellsChanged, "bot/b saw the same tick")
}

// TestFollowLeavesOutWhatItCannotRepeat and says so.
func TestFollowLeavesOutWhatItCannotRepeat(t *testing.T) {
	ctx := context.Background()
	dir := create(t)
	w := open(t, dir)
	_, err := w.Submit(ctx, "go", map[string]any{"to": "a", "do": []any{map[string]any{"fail": "it has to"}}})
	require.NoError(t, err)
	require.NoError(t, w.Step(ctx))
	require.NoError(t, w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Resume(ctx, reducer.Cell{Reducer: "bot", Key: "a"}, world.SkipEvent, "", ""))
	}))
	_, err = w.Submit(ctx, "skip", map[string]any{"to": "b"})
	require.NoError(t, err)
	_, err = w.Submit(ctx, "go", map[string]any{"to": "b"})
	require.NoError(t, err)
	skipped := w.Status().Head.ID - 1
	require.NoError(t, w.Run(ctx))
	require.NoError(t, w.Close())

	parent, fork, forked := recordedFork(t, dir, 1, func(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
		next := *base
		next.Routing = next.Routing[:len(next.Routing)-1] // of skip
		return &next, nil, nil
	})

	followed, err := fork.Follow(ctx, local.Past{World: parent, After: forked.At, Last: math.MaxUint64})
	require.NoError(t, err)
	require.Equal(t, uint64(2), followed.Events)
	require.Equal(t, uint64(1), followed.Refused)
	require.Equal(t, skipped, followed.First.Record)
	require.ErrorIs(t, followed.First.Err, world.ErrNoRoute)
	require.Equal(t, []local.LeftOut{{Kind: journal.KindResumed, Records: 1}}, followed.LeftOut)
	d := differs(t, parent, fork)
	require.Len(t, d.CellsGone, 1, "skip/b")
	require.Len(t, d.CellsChanged, 1, "nobody lets bot/a go on")
}

// TestMissIsTheSameWherever: of several effects that nothing answers the first is
// named, and those before it have their answers.
func TestMissIsTheSameWherever(t *testing.T) {
	ctx := context.Background()
	dir := create(t)
	w := open(t, dir)
	asks := func(params ...string) map[string]any {
		var do []any
		for _, p := range params {
			do = append(do, map[string]any{"effect": "tool.a", "param": p})
		}
		return map[string]any{"to": "a", "do": do}
	}
	_, err := w.Submit(ctx, "go", asks("x", "y"))
	require.NoError(t, err)
	require.NoError(t, w.Run(ctx))
	require.NoError(t, w.Close())

	for _, name := range []string{"once", "again", "and again"} { // the host's workers come upon them in any order
		t.Run(name, func(t *testing.T) {
			_, fork, _ := recordedFork(t, dir, 1)
			_, err := fork.Submit(ctx, "go", asks("x", "new", "y", "newer"))
			require.NoError(t, err)
			err = fork.RunUntil(ctx, math.MaxUint64)
			var miss *host.MissError
			require.ErrorAs(t, err, &miss)
			require.Equal(t, canon.Raw("\xa1apcnew"), miss.Params)
			asked := fork.Unanswered()
			require.Len(t, asked, 2)
			require.Equal(t, miss.Step, asked[0].Step)
			fork.View(func(w *world.Moment) { require.Len(t, w.InFlight(), 3, "the first one has its answer") })
		})
	}
}
