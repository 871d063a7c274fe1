package world_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// States are those of all cells that have one, whether they are in memory or not, and looking
// at them brings none back.
func TestStatesAreThoseOfAllCells(t *testing.T) {
	for _, memory := range []int{0, 1} {
		j := new(worldtest.Journal)
		w := botsWith(t, worldtest.Options{Journal: j, BatchRecords: 1, CheckpointRecords: 1, Memory: memory}, small)
		for i := range 20 {
			require.NoError(t, w.TrySubmit("go", order{To: fmt.Sprint("c", i)}))
			require.NoError(t, w.World.Run(t.Context()))
		}
		reads := 0
		j.FailRead = func() error { reads++; return nil }
		got, unordered := make(map[string]journal.Data), make(map[string]journal.Data)
		var names []string
		for name, state := range w.SortedStates() {
			names = append(names, name)
			got[name] = slices.Clone(state)
		}
		for name, state := range w.States() {
			unordered[name] = slices.Clone(state)
		}
		require.Equal(t, memory > 0, reads > 0)
		before := reads
		for range w.States() {
			break
		}
		for range w.SortedStates() {
			break
		}
		require.Equal(t, memory > 0, reads > before, "they have stayed where they were")
		require.NoError(t, w.Unread())
		require.True(t, slices.IsSorted(names))
		want := make(map[string]journal.Data)
		for _, v := range w.Cells() {
			if len(v.State) > 0 {
				want[v.Cell.String()] = v.State
			}
		}
		require.NotEmpty(t, want)
		require.Equal(t, want, got)
		require.Equal(t, want, unordered)
		require.Len(t, names, len(slices.Collect(maps.Keys(want))))
	}
}
