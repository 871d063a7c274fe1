package store

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

func TestAwaitReturnsOnceTheRecordIsDurable(t *testing.T) {
	s := create(t, memFS(t))
	w := &writer{}
	var waiting sync.WaitGroup
	for after := range journal.Seq(3) {
		for range 4 {
			waiting.Go(func() {
				if err := s.Await(t.Context(), after); err != nil {
					t.Error(err)
				}
				if head := s.anchoredHead(t); head <= after {
					t.Errorf("the wait for what comes after #%d ended at #%d", after, head)
				}
			})
		}
	}
	appendAll(t, s, w.batch("a"), w.batch("b", "c"))
	waiting.Wait()
	require.NoError(t, s.Close())
}

// anchoredHead returns what the anchor says, from the disk.
func (s *Store) anchoredHead(t *testing.T) journal.Seq {
	slot, err := readAnchor(s.opts.FS, s.path(anchorName))
	if err != nil {
		t.Error(err)
	}
	return slot.Head.ID
}

func TestAwaitKnowsWhatWasThereWhenTheStoreWasOpened(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	appendAll(t, s, (&writer{}).batch("a"))
	require.NoError(t, s.Close())
	s = reopen(t, mem)
	require.NoError(t, s.Await(t.Context(), 0))
	require.NoError(t, s.Close())
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	s := create(t, memFS(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Await(ctx, 0), context.Canceled)
	require.NoError(t, s.Close())
}

func TestAwaitEndsWhenTheStoreCloses(t *testing.T) {
	s := create(t, memFS(t))
	appendAll(t, s, (&writer{}).batch("a"))
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if err := s.Await(t.Context(), 1); err == nil {
			t.Error("there is no record #2")
		}
	})
	require.NoError(t, s.Close())
	waiting.Wait()
	require.ErrorIs(t, s.Await(t.Context(), 1), ErrClosed)
	require.NoError(t, s.Await(t.Context(), 0), "what is durable stays so")
}

func TestAwaitEndsWhenTheStoreFails(t *testing.T) {
	var broken atomic.Bool
	files := syncing(memFS(t), anchorName, &broken, func() error { return errorfs.ErrInjected })
	s, err := Create(testDir, testOptions(files))
	require.NoError(t, err)
	broken.Store(true)
	p, err := s.Append((&writer{}).batch("a"))
	require.NoError(t, err)
	require.ErrorIs(t, s.Await(t.Context(), 0), errorfs.ErrInjected)
	require.ErrorIs(t, p.Wait(), errorfs.ErrInjected)
	_ = s.Close()
}

// The records that were appended lately are those that the disk has, whatever their caller does with their memory, and however many
// there are in a group.
func TestAwaitedRecordsAreThoseOfTheDisk(t *testing.T) {
	s := create(t, memFS(t))
	w := &writer{}
	for _, texts := range [][]string{{"a"}, make([]string, recentRecords), make([]string, recentRecords+1), {"b", "c"}} {
		b := w.batch(texts...)
		appendAll(t, s, b)
		for _, r := range b.Records {
			clear(r.Bytes)
		}
		for after := range s.Head().ID {
			if after > 1 && after+3 < s.Head().ID && after%500 > 14 {
				continue // much the same
			}
			var disk, awaited []journal.Scanned
			for r, err := range s.Scan(after) {
				require.NoError(t, err)
				disk = append(disk, r)
			}
			for r, err := range s.AwaitRecords(t.Context(), after) {
				require.NoError(t, err)
				awaited = append(awaited, r)
			}
			require.Equal(t, disk, awaited)
			stored, err := s.Record(after + 1)
			require.NoError(t, err)
			require.Equal(t, disk[0].Bytes, stored)
		}
	}
	require.NoError(t, s.Close())
	for _, err := range s.AwaitRecords(t.Context(), s.Head().ID) {
		require.ErrorIs(t, err, ErrClosed)
	}
}
