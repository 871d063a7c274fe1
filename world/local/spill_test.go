package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// spills returns the names of what lies aside of a world in a directory.
func spills(t *testing.T, dir string) (names []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".world", "spill-*"))
	require.NoError(t, err)
	return names
}

// A world that is larger than memory is computed again with what the disk has, which is gone in
// the end.
func TestReplayAndVerificationPutAsideWhatDoesNotFitInMemory(t *testing.T) {
	w := turned(t)
	want, err := w.Replay(t.Context(), 0, func(uint64) { require.Empty(t, spills(t, w.Dir())) })
	require.NoError(t, err)
	report, err := w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)

	seen := false
	got, err := w.ReplayFrom(t.Context(), 0, 0, 1, func(uint64) { seen = seen || len(spills(t, w.Dir())) > 0 })
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.True(t, seen, "something was put aside")
	again, err := w.Verify(t.Context(), local.Verification{Memory: 1})
	require.NoError(t, err)
	require.Equal(t, report, again)
	var first snapshot.Snapshot
	w.View(func(w *world.Moment) { first, err = w.FindSnapshot("first") })
	require.NoError(t, err)
	got, err = w.ReplayFrom(t.Context(), journal.Seq(first.Record), 0, 1, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Empty(t, spills(t, w.Dir()))
}

// What a process leaves that is killed meanwhile the next owner removes; and what is in the way
// is named, and no verdict.
func TestWhatLiesAsideIsOfOneProcess(t *testing.T) {
	dir := create(t)
	left := filepath.Join(dir, ".world", "spill-1")
	leave := func() {
		require.NoError(t, os.Mkdir(left, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(left, "000001.sst"), []byte("of a killed process"), 0o600))
	}
	leave()
	w, err := local.Open(dir, local.Options{Memory: 1})
	require.NoError(t, err)
	require.NoDirExists(t, left)
	_, err = w.Submit(t.Context(), "go", map[string]any{"to": "a"})
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))

	require.NoError(t, os.WriteFile(left, nil, 0o600))
	r, err := w.Verify(t.Context(), local.Verification{})
	require.Nil(t, r)
	require.ErrorAs(t, err, new(*world.SpillError))
	require.ErrorContains(t, err, left)
	r, err = w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	require.True(t, r.OK)
	require.NoError(t, w.Close())
}
