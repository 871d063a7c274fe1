package worldctl

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/view"
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

// TestTicksSelectWhatHappenedThen compares every range of ticks with the times of
// all records.
func TestTicksSelectWhatHappenedThen(t *testing.T) {
	lw := eventful(t)
	j := recordsOf(lw)
	all := collect(t, j.Between(1, lw.Head().ID, nil))
	last := uint64(all[len(all)-1].Time)
	require.Greater(t, last, uint64(2))
	at := func(tick uint64) int {
		return sort.Search(len(all), func(i int) bool { return uint64(all[i].Time) >= tick })
	}
	for from := range last + 2 {
		for to := from; to < last+2; to++ {
			records, err := (&selection{fromTick: from, toTick: to}).records(j)
			require.NoError(t, err)
			require.Equal(t, all[at(from):at(to+1)], append([]*view.Entry{}, collect(t, records)...), "%d to %d", from, to)
		}
	}
}

// TestSavedRecordsAreWholeOrNotThere lets saving end in the middle.
func TestSavedRecordsAreWholeOrNotThere(t *testing.T) {
	lw := eventful(t)
	dir := t.TempDir()
	broken := errors.New("broken")
	c := &cli{quiet: true}
	some := func(yield func(*view.Entry, error) bool) {
		e, err := recordsOf(lw).Entry(1)
		_ = yield(e, err) && yield(nil, broken)
	}
	require.ErrorIs(t, c.saveRecords(lw.Head(), filepath.Join(dir, "a"), some), broken)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
