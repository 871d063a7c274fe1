package worldctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

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
			var s view.Selection
			require.NoError(t, s.Range(j, fmt.Sprintf("t%d", from), fmt.Sprintf("t%d", to)))
			require.Equal(t, all[at(from):at(to+1)], append([]*view.Entry{}, collect(t, j.Select(t.Context(), &s))...), "%d to %d", from, to)
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
	require.ErrorIs(t, c.saveRecords(lw.Head(), &target{c: c}, filepath.Join(dir, "a"), some), broken)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestReadingTheJournalEndsWhenNobodyWaits ends it after the first record, or the first
// bytes of an export.
func TestReadingTheJournalEndsWhenNobodyWaits(t *testing.T) {
	lw := eventful(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failed error
	for _, err := range recordsOf(lw).Select(ctx, new(view.Selection)) {
		failed = err
		cancel()
	}
	require.ErrorIs(t, failed, context.Canceled)

	for _, format := range local.Formats() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wrote := 0
		once := writing(func(p []byte) (int, error) {
			wrote++
			cancel()
			return len(p), nil
		})
		require.ErrorIs(t, lw.Export(heeding(ctx, once), format, nil), context.Canceled, format)
		require.Equal(t, 1, wrote, format)
	}
}
