package store

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// TestManyShortSessionsDoNotStall opens a store more often than Pebble lets
// files pile up in level 0 before it stops writes, each time after a session
// that ended in a hurry: the compaction that opening holds back has to run.
func TestManyShortSessionsDoNotStall(t *testing.T) {
	files := vfs.NewMem()
	require.NoError(t, create(t, files).Close())
	for range 30 {
		s, err := Open(testDir, testOptions(files))
		require.NoError(t, err)
		_ = s.fail(errors.New("in a hurry")) // Close does not flush
		require.NoError(t, s.Close())
	}
	s, err := Open(testDir, testOptions(files))
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
