package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
)

// onHeir has copies of worlds in a log be made in one, too.
func onHeir(t *testing.T) {
	t.Helper()
	onLog(t)
	heir = &logtest.Server{}
	t.Cleanup(func() { heir = nil })
}

// TestCopyIntoALogEqualsAStoreThatGotNoMore is what the name says, of any history.
func TestCopyIntoALogEqualsAStoreThatGotNoMore(t *testing.T) {
	onHeir(t)
	TestCopyEqualsAStoreThatGotNoMore(t)
}

// TestCopyIntoALogNeedsNothingOfTheCopy of the world that it is made of: what that lacks is
// inherited in the log. It opens by an image of its own.
func TestCopyIntoALogNeedsNothingOfTheCopy(t *testing.T) {
	onHeir(t)
	mem := memFS(t)
	s, w := create(t, mem), &writer{}
	var heads []journal.Head
	for range 20 {
		appendAll(t, s, w.batch("a/1", "b/1", longPayload))
		heads = append(heads, w.head)
		require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Cells: []journal.CellVersion{{Cell: "a/1", Bytes: []byte(w.head.Root.String())}}}))
	}
	want := scanAll(t, s, 0)
	for _, at := range []journal.Seq{1, 2, heads[3].ID, heads[10].ID + 1, heads[19].ID} {
		require.NoError(t, s.Close())
		require.NoError(t, mem.RemoveAll(testDir))
		s = reopen(t, mem)
		c := copyTo(t, s, at, mem)
		require.Equal(t, want[:at], scanAll(t, c, 0))
		ours, err := s.TreeAt(at)
		require.NoError(t, err)
		theirs, err := c.TreeAt(at)
		require.NoError(t, err)
		require.Equal(t, ours.Root(), theirs.Root())
		next := resume(c)
		appendAll(t, c, next.batch("of its own"))
		require.NoError(t, c.Checkpoint(&journal.Image{Head: next.head}))
		for range 2 { // the second time without its copy
			require.NoError(t, c.Close())
			kept, err := heir.Log().Kept(t.Context())
			require.NoError(t, err)
			require.Equal(t, next.head, kept.Head)
			require.NoError(t, mem.RemoveAll("f"))
			c, err = Open(copyDir, copyOptions(mem))
			require.NoError(t, err)
			require.Equal(t, want[:at], scanAll(t, c, 0)[:at])
			require.Empty(t, damageOf(c))
		}
		removeCopy(t, c, mem)
	}
	require.Equal(t, want, scanAll(t, s, 0), "the world is as it was")
	require.NoError(t, s.Close())
}

// TestCopyIntoALogIsRefused where the log is not one in which worlds are made, or the world lies in a directory.
func TestCopyIntoALogIsRefused(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	s, w := create(t, mem), &writer{}
	appendAll(t, s, w.batch("a", "b"))
	opts := testOptions(mem)
	opts.Log = struct{ journal.Log }{(&logtest.Server{}).Log()}
	_, _, err := s.CopyTo(copyDir, journal.Last, opts)
	require.ErrorIs(t, err, journal.ErrElsewhere)
	opts.Log = (&logtest.Server{}).Log() // which nobody makes
	_, _, err = s.CopyTo("g/.world", journal.Last, opts)
	require.Error(t, err)
	require.NoError(t, s.Close())

	shared = nil
	files := vfs.NewMem()
	s = create(t, files)
	appendAll(t, s, (&writer{}).batch("a"))
	opts = testOptions(files)
	opts.Log = (&logtest.Server{}).Log()
	_, _, err = s.CopyTo(copyDir, journal.Last, opts)
	require.ErrorIs(t, err, ErrInTheLog)
	require.NoError(t, s.Close())
}
