package logtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

func batch(after journal.Head, root byte) journal.Batch {
	r := journal.Stored{ID: after.ID + 1, Bytes: []byte{root}, Root: journal.Hash{root}}
	return journal.Batch{After: after, Head: journal.Head{ID: r.ID, Root: r.Root}, Records: []journal.Stored{r}}
}

func own(t *testing.T, s *Server) (journal.Log, journal.Owned) {
	t.Helper()
	l := s.Log()
	owned, err := l.Own(t.Context())
	require.NoError(t, err)
	return l, owned
}

func appended(t *testing.T, l journal.Log, b journal.Batch) error {
	t.Helper()
	p, err := l.Append(b)
	require.NoError(t, err)
	return p.Wait()
}

func TestWhoTakesOverFencesTheOneBefore(t *testing.T) {
	var s Server
	one, _ := own(t, &s)
	first := batch(journal.Head{}, 1)
	require.NoError(t, appended(t, one, first))
	two, owned := own(t, &s)
	require.Equal(t, journal.Owned{Head: first.Head, Epoch: 2}, owned)
	require.ErrorIs(t, appended(t, one, batch(first.Head, 2)), journal.ErrFenced)
	require.ErrorIs(t, one.PutNote(t.Context(), journal.Note{Size: 1}), journal.ErrFenced)
	require.NoError(t, appended(t, two, batch(first.Head, 3)))
	require.ErrorIs(t, one.Release(t.Context(), journal.WakeNow), journal.ErrFenced)
	require.NoError(t, two.Release(t.Context(), 7))
	wake, free := s.Wake()
	require.True(t, free)
	require.EqualValues(t, 7, wake)
}

func TestARestoredBackupIsRewound(t *testing.T) {
	var s Server
	l, _ := own(t, &s)
	backup := s.Backup()
	first := batch(journal.Head{}, 1)
	require.NoError(t, appended(t, l, first))
	s.Restore(backup)
	require.ErrorIs(t, appended(t, l, batch(first.Head, 2)), journal.ErrRewound)
	end, err := l.End(t.Context())
	require.NoError(t, err)
	require.Zero(t, end)
}
