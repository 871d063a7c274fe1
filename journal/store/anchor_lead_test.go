package store

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
)

// ledWorld returns a world whose process has ended when it had acknowledged two batches, and
// where the first and the second of them end.
func ledWorld(t testing.TB) (mem *vfs.MemFS, first, second journal.Head) {
	t.Helper()
	mem = memFS(t)
	s := create(t, mem)
	w := &writer{}
	appendAll(t, s, w.batch("a/1", "b/1"))
	first = w.head
	appendAll(t, s, w.batch("a/1"))
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, s.Close())
	return crashed, first, w.head
}

// lose takes the records after one out of a store, as a log does that loses its end.
func lose(t testing.TB, files vfs.FS, after journal.Seq) {
	t.Helper()
	db := raw(t, files)
	require.NoError(t, db.DeleteRange(recordKey(after+1), recordKey(journal.Last), pebble.Sync))
	require.NoError(t, db.Close())
}

// TestLogThatLostWhatTheAnchorHasIsWhole, and one that lost more is refused.
func TestLogThatLostWhatTheAnchorHasIsWhole(t *testing.T) {
	mem, first, second := ledWorld(t)
	lose(t, mem, first.ID)
	s := reopen(t, mem)
	require.Equal(t, second, s.Head())
	require.Empty(t, damageOf(s))
	require.NoError(t, s.Close())

	mem, _, _ = ledWorld(t)
	lose(t, mem, 1)
	_, err := Open(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrBehindAnchor)
}

// TestAnchorThatIsSettledHasNothing: what came behind the records may be lost with them.
func TestAnchorThatIsSettledHasNothing(t *testing.T) {
	for name, after := range map[string]func(s *Store) error{ // order cannot show: each has a world of its own
		"closed": (*Store).Close,
		"signed": func(s *Store) error {
			note, err := (checkpoint.Checkpoint{World: "w", Size: 2}).Sign(signingKey())
			require.NoError(t, err)
			return s.PutCheckpoint(note)
		},
		"redacted": func(s *Store) error {
			return s.Redact(journal.Hash{1}, func() error { return nil })
		},
	} {
		mem := memFS(t)
		s := create(t, mem)
		w := &writer{}
		appendAll(t, s, w.batch("a/1", "b/1"))
		anchored, err := readAnchor(mem, anchorPath)
		require.NoError(t, err)
		require.NotEmpty(t, anchored.Lead)
		require.NoError(t, after(s), name)
		anchored, err = readAnchor(mem, anchorPath)
		require.NoError(t, err)
		require.Empty(t, anchored.Lead, name)
		require.NoError(t, s.Close())
		lose(t, mem, 1)
		_, err = Open(testDir, testOptions(mem))
		require.ErrorIs(t, err, ErrBehindAnchor, name)
	}
}

// TestLongOrChunkedBatchIsInTheLogFirst: the anchor does not lead over it.
func TestLongOrChunkedBatchIsInTheLogFirst(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	long := w.batch(strings.Repeat("x", leadBytes+1))
	short := w.batch("a/1")
	with := func(bytesOfContent int) journal.Batch {
		b, content := w.batch("a/1"), bytes.Repeat([]byte("x"), bytesOfContent)
		b.Blobs = append(b.Blobs, journal.Blob{Hash: sha256.Sum256(content), Bytes: content})
		return b
	}
	for _, c := range []struct {
		batch journal.Batch
		leads bool
	}{{long, false}, {short, true}, {with(8 * chunkFrom), false}, {with(chunkFrom - 1), true}, {with(chunkFrom), false}} {
		appendAll(t, s, c.batch)
		anchored, err := readAnchor(mem, anchorPath)
		require.NoError(t, err)
		require.Equal(t, c.batch.Head, anchored.Head)
		require.Equal(t, c.leads, len(anchored.Lead) > 0)
	}
	require.NoError(t, s.Close())
}

// TestAnyFlippedByteOfALeadIsNoLead: the slot counts as torn, and the store that has the
// records, or lacks what nobody was told of, goes on.
func TestAnyFlippedByteOfALeadIsNoLead(t *testing.T) {
	mem, first, second := ledWorld(t)
	anchored, err := readAnchor(mem, anchorPath)
	require.NoError(t, err)
	for i := range int64(len(anchored.Lead)) {
		torn := clone(mem)
		flip(t, torn, anchorPath, anchored.leadAt()+i)
		s := reopen(t, torn)
		require.Equal(t, second, s.Head())
		require.NoError(t, s.Close())
	}
	flip(t, mem, anchorPath, anchored.leadAt())
	lose(t, mem, first.ID)
	s := reopen(t, mem)
	require.Equal(t, first, s.Head(), "the other slot says so")
	require.NoError(t, s.Close())
}

// TestClosedAnchorHasNoRoomForLeads, but two slots, of which one may be torn.
func TestClosedAnchorHasNoRoomForLeads(t *testing.T) {
	mem := memFS(t)
	w := &writer{}
	s := create(t, mem)
	for n := range 4 { // either slot may be the newest
		for range n + 1 {
			appendAll(t, s, w.batch("a/1"))
		}
		require.NoError(t, s.Close())
		info, err := mem.Stat(anchorPath)
		require.NoError(t, err)
		require.Equal(t, int64(anchorSize), info.Size())
		newest, err := readAnchor(mem, anchorPath)
		require.NoError(t, err)
		require.Equal(t, w.head, newest.Head)
		torn := clone(mem)
		flip(t, torn, anchorPath, newest.offset())
		older, err := readAnchor(torn, anchorPath)
		require.NoError(t, err)
		require.Equal(t, newest.Sequence-1, older.Sequence)
		require.Equal(t, w.head, older.Head)
		s = reopen(t, mem)
	}
	require.NoError(t, s.Close())
}

// TestAnchorThatCannotBePackedStaysAsItIs: closing goes well.
func TestAnchorThatCannotBePackedStaysAsItIs(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpRename} {
		mem := memFS(t)
		s, err := Create(testDir, testOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind && strings.HasSuffix(op.Path, ".packed") {
				return errorfs.ErrInjected
			}
			return nil
		}))))
		require.NoError(t, err)
		w := &writer{}
		appendAll(t, s, w.batch("a/1"))
		require.NoError(t, s.Close())
		info, err := mem.Stat(anchorPath)
		require.NoError(t, err)
		require.Greater(t, info.Size(), int64(anchorSize))
		s = reopen(t, mem)
		require.Equal(t, w.head, s.Head())
		require.NoError(t, s.Close())
	}
}
