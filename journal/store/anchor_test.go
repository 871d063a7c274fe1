package store

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

const anchorPath = testDir + "/" + anchorName

// aWorld returns a closed world of nine records in three batches, with a
// checkpoint after the second.
func aWorld(t testing.TB) (*vfs.MemFS, *writer) {
	t.Helper()
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	appendAll(t, s, w.batch("agent/a", "agent/b", longPayload), w.batch("agent/a", "agent/b", longPayload+longPayload))
	require.NoError(t, s.Checkpoint(&journal.Image{
		Head: w.head, Core: []byte("the core"),
		Cells:   []journal.CellVersion{{Cell: "agent/a", Bytes: []byte("state a")}, {Cell: "agent/b", Bytes: []byte("state b")}},
		Intents: []journal.IntentVersion{{Key: journal.Hash{1}, Bytes: []byte("intent 1")}},
	}))
	appendAll(t, s, w.batch("agent/a", "agent/b", "agent/a"))
	require.NoError(t, s.Close())
	return mem, w
}

func flip(t testing.TB, files vfs.FS, path string, at int64) {
	t.Helper()
	f, err := files.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	require.NoError(t, err)
	b[0] ^= 0x10
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestAnyFlippedAnchorByteIsRefusedOrTheOtherSlotIsUsed(t *testing.T) {
	mem, w := aWorld(t)
	newest, err := readAnchor(mem, anchorPath)
	require.NoError(t, err)
	at := int64(newest.Sequence % 2 * slotStride)
	for i := range int64(slotSize) {
		torn := clone(mem)
		flip(t, torn, anchorPath, at+i)
		s := reopen(t, torn)
		require.Equal(t, w.head, s.Head(), "the store leads the older slot")
		require.NoError(t, s.Close())

		flip(t, torn, anchorPath, slotStride-at+i) // what Close left is whole again in one slot
		flip(t, torn, anchorPath, at+i)
		_, err := Open(testDir, testOptions(torn))
		require.ErrorIs(t, err, ErrBadAnchor)
	}
}

func TestAnchorOfAnotherKeyIsRefused(t *testing.T) {
	mem, _ := aWorld(t)
	opts := testOptions(mem)
	opts.AnchorKey = []byte("another")
	_, err := Open(testDir, opts)
	require.ErrorIs(t, err, ErrBadAnchor)
}

func TestMissingOrShortAnchorIsRefused(t *testing.T) {
	mem, _ := aWorld(t)
	require.NoError(t, mem.Remove(anchorPath))
	_, err := Open(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrNoAnchor)
	f, err := mem.Create(anchorPath, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = Open(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrBadAnchor)
}

func TestStoreBehindItsAnchorIsRefused(t *testing.T) {
	mem, w := aWorld(t)
	db := raw(t, mem)
	require.NoError(t, db.Delete(recordKey(9), pebble.Sync))
	require.NoError(t, db.Close())
	_, err := Open(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrBehindAnchor)
	require.ErrorContains(t, err, "#8")
	require.ErrorContains(t, err, "#9")
	require.Equal(t, journal.Seq(9), w.head.ID)
}

func TestOlderCopyOfAStoreIsRefused(t *testing.T) {
	mem, w := aWorld(t)
	_, err := vfs.Clone(mem, mem, testDir+"/store", "w/older", vfs.CloneSync)
	require.NoError(t, err)
	for _, grow := range []bool{false, true} {
		s := reopen(t, mem)
		if grow {
			appendAll(t, s, w.batch("agent/a"))
		}
		require.NoError(t, s.Close())
		old := clone(mem)
		require.NoError(t, old.RemoveAll(testDir+"/store"))
		require.NoError(t, old.Rename("w/older", testDir+"/store"))
		_, err = Open(testDir, testOptions(old))
		require.ErrorIs(t, err, ErrBehindAnchor)
	}
}

func TestStoreWithAnotherPastIsRefused(t *testing.T) {
	mem, _ := aWorld(t)
	other := &writer{}
	b := other.batch("x", "x", "x", "x", "x", "x", "x", "x", "x", "x")
	db := raw(t, mem)
	batch := db.NewBatch()
	require.NoError(t, setRecords(batch, b.Records, 1))
	require.NoError(t, batch.Commit(pebble.Sync))
	require.NoError(t, db.Close())
	_, err := Open(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrOffAnchor)
}

// A batch that is not durable is not acknowledged, whatever came with it.
func TestBatchThatFailedIsNotAnchored(t *testing.T) {
	mem, w := aWorld(t)
	s := reopen(t, mem)
	defer s.Close() //nolint:errcheck // it has failed
	before := s.anchor.slot.Head
	lost := errors.New("the sync failed")
	p := &pending{Batch: journal.Batch{Head: w.head}, err: lost, done: make(chan struct{})}
	s.acknowledgeAll([]*pending{p})
	require.ErrorIs(t, p.Wait(), lost)
	require.Equal(t, before, s.anchor.slot.Head)
	require.ErrorIs(t, s.failed(), lost, "nothing goes on after it")
}

// A group of appends that the anchor has may have come to the disk in part when a process was
// killed: Pebble writes its log while the next batches of the group go in.
func TestStoreThatHasAPartOfItsLeadIsLedFromThere(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	appendAll(t, s, w.batch("agent/a"))
	from := s.anchor.slot.Head
	appendAll(t, s, w.batch("agent/b"))
	lead := bytes.Clone(s.anchor.slot.Lead)
	part := clone(mem) // as killed
	appendAll(t, s, w.batch("agent/c", "agent/a"))
	lead = append(lead, s.anchor.slot.Lead...)
	want := scanAll(t, s, 0)
	require.NoError(t, s.Close())

	a, err := openAnchor(part, testDir+"/anchor", []byte("key"))
	require.NoError(t, err)
	a.slot.Head = from
	require.NoError(t, a.lead(w.head, a.slot.Epoch, lead))
	require.NoError(t, a.file.Close())
	s = reopen(t, part)
	require.Equal(t, want, scanAll(t, s, 0))
	require.Empty(t, damageOf(s))
	require.NoError(t, s.Close())
}
