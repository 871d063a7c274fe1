package view

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// TestFirstAtFindsTheFirstRecordNotBefore compares the search with one record
// after another, and bounds what it reads.
func TestFirstAtFindsTheFirstRecordNotBefore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		times := rapid.SliceOfN(rapid.Uint64Range(0, 20), 0, 200).Draw(rt, "times")
		slices.Sort(times)
		tick := rapid.Uint64Range(0, 22).Draw(rt, "tick")
		want := slices.IndexFunc(times, func(at uint64) bool { return at >= tick })
		if want < 0 {
			want = len(times)
		}
		reads := 0
		got, err := firstAt(journal.Seq(len(times)), manifest.Tick(tick), func(id journal.Seq) (manifest.Tick, error) {
			reads++
			return manifest.Tick(times[id-1]), nil
		})
		require.NoError(rt, err)
		require.Equal(rt, journal.Seq(want)+1, got)
		require.LessOrEqual(rt, reads, 8)
	})
}

func TestFirstAtReportsWhatCannotBeRead(t *testing.T) {
	broken := errors.New("broken")
	failed := false
	_, err := firstAt(100, 7, func(id journal.Seq) (manifest.Tick, error) {
		require.False(t, failed, "nothing more is read")
		failed = id > 60
		if failed {
			return 0, broken
		}
		return 1, nil
	})
	require.ErrorIs(t, err, broken)
}
