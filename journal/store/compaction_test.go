package store

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// TestFailedOpenLeavesNoCompactionBehind fails the last step of opening a store
// that Pebble would like to compact: Pebble frees then what a compaction uses.
func TestFailedOpenLeavesNoCompactionBehind(t *testing.T) {
	mem, w := aWorld(t)
	db := raw(t, mem)
	for range 8 {
		require.NoError(t, db.Set(recordKey(1), mustGet(t, db, recordKey(1)), nil))
		require.NoError(t, db.Flush())
	}
	require.NoError(t, db.Close())
	noOptions := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRename && strings.Contains(op.Path, ".dbtmp") {
			return syscall.EIO
		}
		return nil
	}))
	for range 20 {
		_, err := Open(testDir, testOptions(noOptions))
		require.ErrorIs(t, err, syscall.EIO)
	}
	s := reopen(t, mem)
	require.Equal(t, w.head, s.Head())
	require.NoError(t, s.Close())
}

func mustGet(t testing.TB, db *pebble.DB, key []byte) []byte {
	t.Helper()
	value, closer, err := db.Get(key)
	require.NoError(t, err)
	value = bytes.Clone(value)
	require.NoError(t, closer.Close())
	return value
}

// TestManyShortSessions writes a small table in every session. Were compactions
// held back for good, the last sessions would wait for one forever.
func TestManyShortSessions(t *testing.T) {
	mem := memFS(t)
	require.NoError(t, create(t, mem).Close())
	w := &writer{}
	for range (&Store{}).pebbleOptions().L0StopWritesThreshold + 10 {
		s := reopen(t, mem)
		appendAll(t, s, w.batch("agent/a"))
		require.NoError(t, s.Close())
	}
	s := reopen(t, mem)
	require.Equal(t, w.head, s.Head())
	require.NoError(t, s.Close())
}
