package world_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// forkOf forks a world under other rules, and returns the journal of both.
func forkOf(ctx context.Context, t *testing.T, w *worldtest.World, id string, b world.Bounds, amend world.Amendment) (*worldtest.Journal, error) {
	t.Helper()
	past := w.Journal.Clone()
	cfg := world.Config{Journal: past, History: past, Keys: worldtest.Keyring(t, id), Bounds: b}
	return past, world.Fork(ctx, cfg, &journal.Forked{World: id, Effects: journal.ForkHold, Actor: "ada"}, amend)
}

// amendTo puts other rules in the place of all.
func amendTo(next *manifest.Manifest, contents map[manifest.Hash][]byte) world.Amendment {
	return func(*manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
		return next, contents, nil
	}
}

func TestForkIsAnotherWorld(t *testing.T) {
	m, contents := rulesOf(t, plain, keeps)
	w := worldtest.New(t, *m, contents, worldtest.Options{ID: "parent"})
	before := w.Journal.Head()
	past, err := forkOf(t.Context(), t, w, "parent", world.Bounds{}, nil)
	require.ErrorIs(t, err, world.ErrSameWorld)
	require.Equal(t, before, past.Head(), "nothing is written")
	_, err = forkOf(t.Context(), t, w, "child", world.Bounds{}, nil)
	require.NoError(t, err)
}

// TestRulesDoNotChangeTheSeed: randomness comes from the one that a world began with, so
// a change of it would come to nothing.
func TestRulesDoNotChangeTheSeed(t *testing.T) {
	m, contents := rulesOf(t, plain, keeps)
	w := worldtest.New(t, *m, contents, worldtest.Options{ID: "parent"})
	other := *m
	other.Seed++
	before := w.Journal.Head()
	past, err := forkOf(t.Context(), t, w, "child", world.Bounds{}, amendTo(&other, contents))
	require.ErrorIs(t, err, world.ErrSeed)
	require.Equal(t, before, past.Head(), "nothing is written")
	_, _, err = w.Propose(t.Context(), world.Proposal{Candidate: &other, Base: w.Status().Manifest, Actor: "ada"})
	require.ErrorIs(t, err, world.ErrSeed)
	require.Equal(t, before, w.Journal.Head())
}

// TestForkUnderOtherRulesIsBounded: they are a stranger's, like a candidate's.
func TestForkUnderOtherRulesIsBounded(t *testing.T) {
	m, contents := rulesOf(t, plain, keeps)
	w := worldtest.New(t, *m, contents, worldtest.Options{})
	w.Submit("go", map[string]any{"to": "a"})
	w.Run()
	rich := strings.Replace(plain, "source: r.star}", "source: r.star, "+raised+"}", 1)
	small := world.Bounds{Gas: 100_000, Memory: 1 << 20}
	for name, x := range map[string]struct{ bound, yaml, program string }{
		"a migration without end":      {"gas", rich, "def migrate(state):\n    while True:\n        pass\n" + keeps},
		"a migration to a large state": {"memory", rich, "def migrate(state):\n    return ['x' * 1000] * 1000\n" + keeps},
		"code that loads for ever":     {"gas", rich, "def f():\n    while True:\n        pass\nf()\n" + keeps},
		"more policies than it takes":  {"memory", plain + "policies:\n" + strings.Repeat("  - {name: NAME, when: 'true', decide: deny}\n", 100), keeps},
	} {
		t.Run(name, func(t *testing.T) {
			next, contents := rulesOf(t, numbered(x.yaml), x.program)
			past, err := forkOf(t.Context(), t, w, "child", small, amendTo(next, contents))
			var bound *world.BoundError
			require.ErrorAs(t, err, &bound)
			require.Equal(t, x.bound, bound.Name, "%v", err)
			require.Equal(t, w.Journal.Head(), past.Head(), "nothing is written")
		})
	}
	next, contents := rulesOf(t, plain, "# other\n"+keeps)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errWaited)
	_, err := forkOf(ctx, t, w, "child", small, amendTo(next, contents))
	require.ErrorIs(t, err, errWaited)
	_, err = forkOf(t.Context(), t, w, "child", small, amendTo(next, contents))
	require.NoError(t, err)
}

// numbered gives each NAME in rules a number.
func numbered(yaml string) string {
	for i := 0; strings.Contains(yaml, "NAME"); i++ {
		yaml = strings.Replace(yaml, "NAME", "p"+string(rune('a'+i/26))+string(rune('a'+i%26)), 1)
	}
	return yaml
}

// TestTrialEndsAtItsBounds: what a step was at when it needed too much is nowhere.
func TestTrialEndsAtItsBounds(t *testing.T) {
	rich := strings.Replace(plain, "source: r.star}", "source: r.star, "+raised+"}", 1)
	m, contents := rulesOf(t, rich, "def reduce(ctx, state, event):\n    for _ in range(event.data[\"n\"]):\n        pass\n    return event.data\n")
	w := worldtest.New(t, *m, contents, worldtest.Options{ID: "trial"})
	w.Submit("go", map[string]any{"to": "a", "n": 10})
	w.Submit("go", map[string]any{"to": "b", "n": 3_000_000})
	w.Crash()
	trial, err := world.Try(world.Config{
		Journal: w.Journal, History: w.Journal, Keys: worldtest.Keyring(t, "trial"),
		Bounds:  world.Bounds{Gas: 1_000_000, Memory: 16 << 20},
		NewHost: func(string, *manifest.Manifest) (world.Host, error) { return new(worldtest.Outside), nil },
	})
	require.NoError(t, err)
	err = trial.Run(t.Context())
	var bound *world.BoundError
	require.ErrorAs(t, err, &bound)
	require.Equal(t, "gas", bound.Name)
	head := w.Journal.Head()
	require.ErrorAs(t, trial.Run(t.Context()), &bound, "it has ended")
	require.ErrorAs(t, trial.Checkpoint(), &bound)
	require.Equal(t, head, w.Journal.Head())
}
