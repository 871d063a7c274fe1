package world_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// keepers are a world of plain rules and n cells.
func keepers(t *testing.T, n int) *worldtest.World {
	t.Helper()
	m, contents := rulesOf(t, plain, keeps)
	w := worldtest.New(t, *m, contents, worldtest.Options{})
	for i := range n {
		w.Submit("go", map[string]any{"to": fmt.Sprint(i)})
	}
	w.Run()
	return w
}

// migrating are plain rules whose next version migrates, with limits that bound nothing.
func migrating(t *testing.T, migrate string) (*manifest.Manifest, map[manifest.Hash][]byte) {
	t.Helper()
	yaml := strings.Replace(plain, "source: r.star}", "source: r.star, "+raised+"}", 1)
	return rulesOf(t, strings.Replace(yaml, "version: 1", "version: 2", 1), "def migrate(state):\n"+migrate+keeps)
}

// view looks at a world at once.
func view(w *worldtest.World) func(func(*world.Moment)) {
	return func(look func(*world.Moment)) { look(&w.Moment) }
}

// Who looks at a candidate lets it use for all cells what he lets a step use.
func TestAPreviewIsBoundedInAll(t *testing.T) {
	w := keepers(t, 40)
	before := w.Status()
	next, contents := migrating(t, "    for _ in range(10000):\n        pass\n    return [state]\n")
	p, err := world.PreviewApply(t.Context(), view(w), next, contents)
	require.NoError(t, err)
	require.EqualValues(t, 40, p.Cells)
	require.Len(t, p.First, 40)
	require.Equal(t, "r/0", p.First[0].Cell)

	next, contents = migrating(t, "    for _ in range(200000):\n        pass\n    return [state]\n")
	var bound *world.BoundError
	_, err = world.PreviewApply(t.Context(), view(w), next, contents)
	require.ErrorAs(t, err, &bound, "no cell takes what one step may")
	require.Equal(t, "gas", bound.Name)
	require.Equal(t, before, w.Status())

	loads := "def f():\n    for _ in range(150000):\n        pass\nf()\n" + keeps
	all := new(strings.Builder)
	for i := range 40 {
		fmt.Fprintf(all, "  r%d: {engine: starlark, source: r.star}\n", i)
	}
	next, contents = rulesOf(t, strings.Replace(plain, "reducers:\n", "reducers:\n"+all.String(), 1), loads)
	_, err = world.PreviewApply(t.Context(), view(w), next, contents)
	require.ErrorAs(t, err, &bound, "nor does any load")
	require.Contains(t, err.Error(), "the code of reducer")
}

// The world goes on while somebody looks at what a candidate would make of it.
func TestAPreviewDoesNotHoldTheWorld(t *testing.T) {
	w, next := growing(t)
	for i := range 3 {
		w.Submit("go", order{To: fmt.Sprint("b", i), Say: "hello"})
	}
	w.Run()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	looks := 0
	p, err := world.PreviewApply(ctx, func(look func(*world.Moment)) {
		if looks++; looks > 1 { // before the states are copied, and after
			w.Submit("go", order{To: "b1", Say: "again"})
			w.Run()
			defer func() {
				w.Submit("go", order{To: "b1", Say: "once more"})
				w.Run()
			}()
		}
		look(&w.Moment)
	}, &next, nil)
	require.NoError(t, err)
	require.Equal(t, 2, looks)
	require.EqualValues(t, 3, p.Cells)
	require.Equal(t, "bot/b1", p.First[1].Cell)
	require.Contains(t, fmt.Sprint(p.First[1].State), "again")
	require.NotContains(t, fmt.Sprint(p.First[1].State), "once more")

	_, err = world.PreviewApply(ctx, func(look func(*world.Moment)) {
		look(&w.Moment)
		cancel()
	}, &next, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// patience is a context that ends after it was asked so often whether it has.
type patience struct {
	context.Context

	left int
}

func (p *patience) Err() error {
	if p.left--; p.left < 0 {
		return errWaited
	}
	return nil
}

func (p *patience) Done() <-chan struct{} { return make(chan struct{}) }

// approved proposes a manifest and has it shadowed and approved.
func approved(t *testing.T, w *worldtest.World, next *manifest.Manifest, contents map[manifest.Hash][]byte) uint64 {
	t.Helper()
	_, n, err := w.Propose(t.Context(), world.Proposal{Candidate: next, Contents: contents, Base: w.Status().Manifest, Actor: "ann"})
	require.NoError(t, err)
	_, _, err = w.Shadow(t.Context(), n, world.ShadowConfig{}, "ann")
	require.NoError(t, err)
	terms, err := w.Terms(n)
	require.NoError(t, err)
	require.NoError(t, worldtest.ErrorOf(w.Approve(t.Context(), n, terms, manifest.Sign(worldtest.Key(1), terms), "ben", "")))
	return n
}

// Approved rules are the world's own, and bounded by their limits; until they are in force
// whoever applies them can still think better of it.
func TestAnApplyEndsWithItsContext(t *testing.T) {
	w := keepers(t, 3)
	next, contents := migrating(t, "    while True:\n        pass\n    return [state]\n")
	n := approved(t, w, next, contents)
	before, root := w.Status(), w.StateRoot()
	for what, run := range map[string]func(context.Context) error{
		"apply":       func(ctx context.Context) error { return worldtest.ErrorOf(w.Apply(ctx, n, "dan")) },
		"would apply": func(ctx context.Context) error { return worldtest.ErrorOf(w.WouldApply(ctx, n)) },
	} {
		require.ErrorIs(t, run(&patience{context.Background(), 100}), errWaited, what)
		require.Equal(t, before, w.Status())
		require.Equal(t, root, w.StateRoot())
	}
}

// What is in force goes on when whoever has applied it has gone, and without the bounds of
// those who look.
func TestAppliedRulesOutliveWhoAppliedThem(t *testing.T) {
	w := keepers(t, 1)
	next, contents := migrating(t, "    for _ in range(6000000):\n        pass\n    return [state]\n")
	n := approved(t, w, next, contents)
	ctx, cancel := context.WithCancel(t.Context())
	_, done, err := w.Apply(ctx, n, "dan")
	require.NoError(t, err)
	require.Equal(t, 1, done.Migrated)
	cancel()
	w.Submit("go", map[string]any{"to": "new"})
	w.Run()
	require.JSONEq(t, `{"to": "new"}`, w.State("r/new"))
}
