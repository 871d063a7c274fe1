package local_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestALookLeavesImagesWhereThereAreNone: a world that had no images of its past has them
// once somebody has looked.
func TestALookLeavesImagesWhereThereAreNone(t *testing.T) {
	dir := create(t)
	opened := func(every journal.Seq) *local.World {
		w, err := local.Open(dir, local.Options{Checkpoint: every})
		require.NoError(t, err)
		return w
	}
	w := opened(1 << 40)
	for range 40 {
		_, err := w.Submit(context.Background(), "go", map[string]any{"to": "a", "do": []any{map[string]any{"emit": "ping", "to": "b"}, map[string]any{"timer": 2}}})
		require.NoError(t, err)
		require.NoError(t, w.Step(context.Background()))
	}
	require.NoError(t, w.Close())
	const every = 20
	w = opened(every)
	end := w.Status().Head.ID
	require.Greater(t, end, journal.Seq(10*every))
	at := end - 5
	before, err := w.Image(at)
	require.NoError(t, err)
	require.True(t, before == nil || before.Head.ID < every, "there is no image near")
	first, err := w.At(at)
	require.NoError(t, err)
	for near := journal.Seq(2 * every); near < at; near += every {
		img, err := w.Image(near)
		require.NoError(t, err)
		require.Less(t, near-img.Head.ID, journal.Seq(2*every))
	}
	again, err := w.At(at)
	require.NoError(t, err)
	require.Equal(t, first.StateRoot(), again.StateRoot())
	requireCellsOfAt(t, w)
	r, err := w.Verify(context.Background(), local.Verification{})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.NoError(t, w.Close())
}
