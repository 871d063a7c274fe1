package store

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// TestWhoReadsWhileTheStoreIsClosedGetsAnError: Pebble panics where it is asked after it was closed, and
// a watcher of a world reads what came before its end.
func TestWhoReadsWhileTheStoreIsClosedGetsAnError(t *testing.T) {
	for round := range 30 {
		mem, w := aWorld(t)
		s := reopen(t, mem)
		head := w.head.ID
		blob := aBlobIn(t, s)
		reads := []func() error{
			func() error {
				for _, err := range s.Scan(0) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			func() error { _, err := s.Record(head); return err },
			func() error { _, err := s.Blob(blob); return err },
			func() error { _, err := s.Image(journal.Last); return err },
			func() error {
				for _, err := range s.CellVersions("", journal.Last) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			func() error {
				for _, err := range s.CellRecords("agent/a", 0) {
					if err != nil {
						return err
					}
				}
				return nil
			},
		}
		said := make([]error, len(reads))
		var readers, begun sync.WaitGroup
		for i, read := range reads {
			begun.Add(1)
			readers.Go(func() {
				for n := 0; n < round && said[i] == nil; n++ {
					said[i] = read()
				}
				begun.Done()
				for said[i] == nil {
					said[i] = read()
				}
			})
		}
		begun.Wait()
		require.NoError(t, s.Close(), "nothing is left open")
		readers.Wait()
		for i, err := range said {
			require.ErrorIs(t, err, ErrClosed, "%d", i)
			require.NotErrorAs(t, err, new(*DamageError), "%d", i)
		}
	}
}

// aBlobIn returns the name of a blob that is in chunks.
func aBlobIn(t *testing.T, s *Store) journal.Hash {
	t.Helper()
	for r, err := range s.Scan(0) {
		require.NoError(t, err)
		if !r.Record.Blob.IsZero() {
			return r.Record.Blob
		}
	}
	t.Fatal("no record has a blob")
	return journal.Hash{}
}
