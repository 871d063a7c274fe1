package store

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
)

// postingsIn returns what a store has of its index, key by key.
func postingsIn(t testing.TB, s *Store) (all []string) {
	t.Helper()
	s.settleImages()
	s.each(postingPrefix, func(key, value []byte) error {
		all = append(all, fmt.Sprintf("%q %q", bytes.Clone(key), bytes.Clone(value)))
		return nil
	}, func(err error) bool { require.NoError(t, err); return false })
	return all
}

// What was gathered of records as they were appended is what they say when they are read:
// a store that is opened anew before each image has gathered nothing.
func TestGatheredIsWhatRecordsSay(t *testing.T) {
	word := rapid.SampledFrom([]string{"a/1", "a/11", "b/2", "@1=a/1", "@2=b/2", "@1", "@2", "@9", "a/1 b/2 a/1", longPayload})
	rapid.Check(t, func(r *rapid.T) {
		mem, other := memFS(t), memFS(t)
		gathers, reads := create(t, mem), create(t, other)
		w := &writer{}
		for range rapid.IntRange(1, 4).Draw(r, "images") {
			b := w.batch(rapid.SliceOfN(word, 0, 8).Draw(r, "records")...)
			appendAll(t, gathers, b)
			appendAll(t, reads, b)
			require.NoError(t, reads.Close())
			reads = reopen(t, other)
			for _, s := range []*Store{gathers, reads} {
				img := &journal.Image{Head: w.head, Intents: []journal.IntentVersion{askedBy(t, '1', "a/1")}}
				require.NoError(t, s.Checkpoint(img))
			}
			require.Equal(t, postingsIn(t, reads), postingsIn(t, gathers))
		}
		require.NoError(t, gathers.Close())
		require.NoError(t, reads.Close())
	})
}

// What is gathered of a batch is gathered while it syncs; the batch is the caller's again when
// both are over.
func TestAppendIsDoneWithItsBatch(t *testing.T) {
	opts, looked := testOptions(memFS(t)), make(chan struct{})
	opts.EachCell = func(string, []byte, func([]byte)) { <-looked }
	s, err := Create(testDir, opts)
	require.NoError(t, err)
	w := &writer{}
	p, err := s.Append(w.batch("agent/a"))
	require.NoError(t, err)
	for s.Stats().SyncTook.Count == 0 {
		runtime.Gosched()
	}
	for range 1000 {
		runtime.Gosched()
		require.False(t, p.(*pending).Done())
	}
	close(looked)
	require.NoError(t, p.Wait())
	require.NoError(t, s.Close())
}

// An image that comes before the last record that was gathered, one behind it, and more than
// is held at once.
func TestWhatWasNotGatheredIsRead(t *testing.T) {
	g := (&Store{}).newGathering(3)
	g.to = 5
	require.True(t, g.has(3, 5))
	require.False(t, g.has(3, 4))
	require.False(t, g.has(2, 5))
	g.add(journal.Batch{Head: journal.Head{ID: 6}, Records: []journal.Stored{{ID: 6, Bytes: []byte("no record")}}})
	require.False(t, g.has(3, 6))

	s := create(t, memFS(t))
	w := &writer{}
	early := w.batch("agent/a")
	appendAll(t, s, early, w.batch("agent/b agent/a"))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: early.Head}))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head}))
	require.Equal(t, []journal.Seq{1, 2}, cellRecords(t, s, "agent/a", 0))
	require.Equal(t, []journal.Seq{2}, cellRecords(t, s, "agent/b", 0))
	require.NoError(t, s.Close())
}

// An intent that the image before has opened is neither searched for nor read when the next one
// ends it: neither a version that was never written, in between, nor damage shows.
func TestWhatTheImageBeforeHasOpenedIsNotLookedUp(t *testing.T) {
	s := create(t, memFS(t))
	w := &writer{}
	appendAll(t, s, w.batch("@1=agent/a", "agent/b"))
	intent := askedBy(t, '1', "agent/a")
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Intents: []journal.IntentVersion{intent}}))
	s.settleImages()
	name := intentName(nil, intent.Key)
	opened, never := versionKey(nil, name, w.head.ID), versionKey(nil, name, w.head.ID+1)
	require.NoError(t, s.db.Set(never, []byte("damaged"), pebble.NoSync))
	appendAll(t, s, w.batch("agent/b", "@1"))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Intents: []journal.IntentVersion{intent}}))
	s.settleImages()
	require.NoError(t, s.failed())
	for key, there := range map[string]bool{string(opened): false, string(never): true} {
		_, closer, err := s.db.Get([]byte(key))
		require.Equal(t, !there, errors.Is(err, pebble.ErrNotFound))
		if there {
			require.NoError(t, closer.Close())
		}
	}
	require.Equal(t, []journal.Seq{4}, cellRecords(t, s, "agent/a", 0))
	require.NoError(t, s.Close())
}

// Of what no image has had no version before is searched for: one that was never written, from
// before the first, stays.
func TestWhatIsNewIsNotLookedUp(t *testing.T) {
	s := create(t, memFS(t))
	w := &writer{}
	appendAll(t, s, w.batch("agent/a"))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head}))
	s.settleImages()
	never := versionKey(nil, cellName(nil, "agent/a"), 0)
	require.NoError(t, s.db.Set(never, []byte("never"), pebble.NoSync))
	appendAll(t, s, w.batch("agent/a"))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Cells: []journal.CellVersion{{Cell: "agent/a", First: true, Bytes: []byte{1}}}}))
	s.settleImages()
	_, closer, err := s.db.Get(never)
	require.NoError(t, err)
	require.NoError(t, closer.Close())
	require.NoError(t, s.failed())
	require.NoError(t, s.Close())
}
