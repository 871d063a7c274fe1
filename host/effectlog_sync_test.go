package host

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestWhatAProcessBeforeHasLeftLooseIsSyncedWhereItIsRead: it had no time to, and whoever reads it
// writes behind it, and tells of it.
func TestWhatAProcessBeforeHasLeftLooseIsSyncedWhereItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storeFS(t)
		before, err := openEffectLog(mem, storePath, "town")
		require.NoError(t, err)
		s := run(before)
		head := before.size
		before.put(loose(1))
		s.until(1)
		frame := before.size - head - int64(len(loose(1).receipt)) // without a receipt
		last := loose(2)
		last.receipt = bytes.Repeat([]byte{2}, int(before.filled-before.size-frame))
		before.put(last)
		s.until(2)
		require.Equal(t, before.filled, before.size, "with room behind it the file is written anew where it is read")
		require.Empty(t, reopen(t, crash(mem)))

		next, err := openEffectLog(mem, storePath, "town") // the process before ended in the moment it told
		require.NoError(t, err)
		require.Len(t, next.kept(), 2)
		require.Len(t, reopen(t, crash(mem)), 2)
		require.NoError(t, next.file.Close())
		require.NoError(t, before.close())
	})
}

// TestLooseResultsAreSyncedWhereTheStoreIsClosed, though nothing is forgotten, for which it is written anew.
func TestLooseResultsAreSyncedWhereTheStoreIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storeFS(t)
		l, err := openEffectLog(mem, storePath, "town")
		require.NoError(t, err)
		s := run(l)
		l.put(loose(1))
		l.put(loose(2))
		s.until(2)
		require.Empty(t, reopen(t, crash(mem)))
		require.NoError(t, l.close())
		require.Equal(t, results(1, 2), reopen(t, crash(mem)))
	})
}
