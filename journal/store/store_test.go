package store

import (
	"bytes"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
)

const testDir = "w/.world"

// writer makes batches that follow each other.
type writer struct {
	head  journal.Head
	chain canon.Chain
}

// testKind names in the payload's text the cells that a record concerns, and as
// @1 or @1=agent/a the intent that it is about.
const testKind = "cell.stepped"

func testCells(kind string, payload []byte, visit func(cell []byte)) {
	if kind != testKind {
		return
	}
	for cell := range bytes.FieldsSeq(payload) {
		if cell[0] != '@' {
			visit(cell)
		}
	}
}

func testIntent(kind string, payload []byte) (key journal.Hash, cell []byte, ok bool) {
	if kind != testKind {
		return key, nil, false
	}
	for word := range bytes.FieldsSeq(payload) {
		if word[0] == '@' {
			_, cell, _ = bytes.Cut(word, []byte("="))
			return journal.Hash{word[1]}, cell, true
		}
	}
	return key, nil, false
}

func cellVersionKey(cell string, at journal.Seq) []byte {
	return versionKey(nil, cellName(nil, cell), at)
}

func ledgerKey(key journal.Hash, at journal.Seq) []byte {
	return versionKey(nil, intentName(nil, key), at)
}

func (w *writer) add(b *journal.Batch, payload string) {
	e := canon.Envelope{ID: uint64(w.head.ID) + 1, Time: 7, Kind: testKind, Payload: []byte(payload)}
	if len(payload) > 100 {
		blob := journal.Blob{Hash: canon.Sum(e.Payload), Bytes: e.Payload}
		e.Payload, e.Blob, e.BlobSize = nil, blob.Hash, uint64(len(blob.Bytes))
		b.Blobs = append(b.Blobs, blob)
	}
	record := canon.AppendEnvelope(nil, e)
	w.head = journal.Head{ID: journal.Seq(e.ID), Root: w.chain.Add(e.ID, e.Kind, record)}
	b.Records = append(b.Records, journal.Stored{ID: w.head.ID, Bytes: record, Root: w.head.Root})
	b.Head = w.head
}

func (w *writer) batch(payloads ...string) journal.Batch {
	b := journal.Batch{After: w.head, Head: w.head}
	for _, p := range payloads {
		w.add(&b, p)
	}
	return b
}

// resume returns a writer at the head of s.
func resume(s *Store) *writer {
	head := s.Head()
	return &writer{head: head, chain: *canon.ResumeChain(head.Root)}
}

func memFS(t testing.TB) *vfs.MemFS {
	t.Helper()
	if shared != nil {
		shared = &logtest.Server{}
	}
	mem := vfs.NewCrashableMem()
	require.NoError(t, mem.MkdirAll("w", 0o755))
	root, err := mem.OpenDir("")
	require.NoError(t, err)
	require.NoError(t, root.Sync())
	require.NoError(t, root.Close())
	return mem
}

func testOptions(files vfs.FS) Options {
	return withLog(Options{FS: files, AnchorKey: []byte("key"), EachCell: testCells, IntentOf: testIntent, memTableBytes: 32 << 10, segmentBytes: 1})
}

func create(t testing.TB, files vfs.FS) *Store {
	t.Helper()
	s, err := Create(testDir, testOptions(files))
	require.NoError(t, err)
	return s
}

func reopen(t testing.TB, files vfs.FS) *Store {
	t.Helper()
	if forgotten {
		require.NoError(t, files.RemoveAll(testDir))
	}
	s, err := Open(testDir, testOptions(files))
	require.NoError(t, err)
	return s
}

func appendAll(t testing.TB, s *Store, batches ...journal.Batch) {
	t.Helper()
	for _, b := range batches {
		p, err := s.Append(b)
		require.NoError(t, err)
		require.NoError(t, p.Wait())
	}
}

func scanned(r journal.Stored) journal.Scanned {
	return journal.NewScanned(r.ID, r.Bytes, r.Root[:])
}

func scannedAll(records []journal.Stored) []journal.Scanned {
	var all []journal.Scanned
	for _, r := range records {
		all = append(all, scanned(r))
	}
	return all
}

func scanAll(t testing.TB, s *Store, after journal.Seq) []journal.Scanned {
	t.Helper()
	var all []journal.Scanned
	for r, err := range s.Scan(after) {
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

// allDamage yields what is damaged, the records first.
func allDamage(s *Store) iter.Seq[error] {
	return func(yield func(error) bool) {
		for _, some := range []iter.Seq[error]{s.RecordDamage(), s.Damage()} {
			for err := range some {
				if !yield(err) {
					return
				}
			}
		}
	}
}

func damageOf(s *Store) []string {
	var all []string
	for err := range allDamage(s) {
		all = append(all, err.Error())
	}
	return all
}

var longPayload = strings.Repeat("agent/blob ", 20)

func TestAppendedRecordsAreReadBackAfterReopening(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	first, second := w.batch("agent/a", "agent/b"), w.batch(longPayload, "agent/a agent/b", "")
	appendAll(t, s, first, second)
	require.Equal(t, w.head, s.Head())
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())

	s = reopen(t, mem)
	require.Equal(t, w.head, s.Head())
	require.Equal(t, scannedAll(slices.Concat(first.Records, second.Records)), scanAll(t, s, 0))
	require.Equal(t, scannedAll(second.Records), scanAll(t, s, first.Head.ID))
	require.Empty(t, scanAll(t, s, second.Head.ID))
	got, err := s.Record(2)
	require.NoError(t, err)
	require.Equal(t, first.Records[1].Bytes, got)
	got, err = s.Blob(second.Blobs[0].Hash)
	require.NoError(t, err)
	require.Equal(t, longPayload, string(got))
	_, err = s.Record(9)
	require.ErrorIs(t, err, journal.ErrNotFound)
	_, err = s.Blob(journal.Hash{1})
	require.ErrorIs(t, err, journal.ErrNotFound)
	require.Empty(t, damageOf(s))
	appendAll(t, s, w.batch("more"))
	require.NoError(t, s.Close())
}

func TestAppendsArePipelined(t *testing.T) {
	s := create(t, memFS(t))
	w := &writer{}
	var waiting []journal.Pending
	for i := range 3 * maxPending {
		p, err := s.Append(w.batch(fmt.Sprint(i)))
		require.NoError(t, err)
		waiting = append(waiting, p)
	}
	for _, p := range waiting {
		require.NoError(t, p.Wait())
	}
	require.Equal(t, w.head, s.anchor.slot.Head)
	require.NoError(t, s.Close())
}

func TestCloseWaitsForPendingAppends(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	p, err := s.Append(w.batch("a"))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, p.Wait())
	_, err = s.Append(w.batch("b"))
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Record(1)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.Checkpoint(&journal.Image{}), ErrClosed)
}

func TestAppendRefusesAnotherHeadAndGaps(t *testing.T) {
	s := create(t, memFS(t))
	w := &writer{}
	appendAll(t, s, w.batch("a"))
	stale := (&writer{}).batch("b")
	_, err := s.Append(stale)
	require.ErrorIs(t, err, journal.ErrFenced)

	gap := w.batch("b", "c", "d")
	gap.Records = slices.Delete(gap.Records, 1, 2)
	_, err = s.Append(gap)
	require.ErrorIs(t, err, errGap)

	short := gap
	short.Records = short.Records[:1]
	_, err = s.Append(short)
	require.ErrorIs(t, err, errGap)

	appendAll(t, s, resume(s).batch("e")) // none of these ended the store
	require.NoError(t, s.Close())
}

// Two owners may have come equally far with something else: the id alone would let one
// go on from what the other wrote.
func TestAppendFollowsARootAndNotAnIDAlone(t *testing.T) {
	s := create(t, memFS(t))
	w, other := &writer{}, &writer{}
	appendAll(t, s, w.batch("a"))
	other.batch("b")
	require.Equal(t, w.head.ID, other.head.ID)
	_, err := s.Append(other.batch("c"))
	require.ErrorIs(t, err, journal.ErrFenced)

	elsewhere := w.batch("d")
	elsewhere.Head.Root = other.head.Root
	_, err = s.Append(elsewhere)
	require.ErrorIs(t, err, errGap, "it does not end with the root of its last record")

	require.Len(t, scanAll(t, s, 0), 1)
	appendAll(t, s, resume(s).batch("e"))
	require.NoError(t, s.Close())
}

// A checkpoint is one batch, so no version is newer than the image; were there
// one, it is not part of the image.
func TestImageHoldsNothingNewerThanItsHead(t *testing.T) {
	mem, _ := aWorld(t)
	db := raw(t, mem)
	batch := db.NewBatch()
	seal(batch, cellVersionKey("agent/a", 8), []byte("newer"))
	require.NoError(t, batch.Commit(pebble.Sync))
	require.NoError(t, db.Close())
	s := reopen(t, mem)
	img, err := s.Image(journal.Last)
	require.NoError(t, err)
	require.Equal(t, "state a", string(img.Cells[0].Bytes))
	require.NoError(t, s.Close())
}

func TestCheckpointRefusesHeadsItDoesNotHave(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	early := w.batch("a")
	appendAll(t, s, early, w.batch("b"))
	forged := journal.Hash{1}
	for range 2 {
		require.Error(t, s.Checkpoint(&journal.Image{Head: journal.Head{ID: 3}}))
		require.ErrorIs(t, s.Checkpoint(&journal.Image{Head: journal.Head{ID: 2, Root: forged}}), errLink)
		require.ErrorIs(t, s.Checkpoint(&journal.Image{Head: journal.Head{ID: 1, Root: forged}}), errLink)
		require.NoError(t, s.Checkpoint(&journal.Image{Head: early.Head}))
	}
	// One whose record was still on its way is found out when it is written.
	require.ErrorIs(t, s.write(&imageWriter{Image: &journal.Image{Head: journal.Head{ID: 2, Root: forged}}}), errLink)
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head}))
	require.ErrorIs(t, s.Checkpoint(&journal.Image{Head: early.Head}), errEarly)
	require.NoError(t, s.Close())
	s = reopen(t, mem)
	require.ErrorIs(t, s.Checkpoint(&journal.Image{Head: early.Head}), errEarly)
	require.NoError(t, s.Close())
}

func TestCreateRefusesAWorldThatIsThere(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	appendAll(t, s, (&writer{}).batch("a"))
	require.NoError(t, s.Close())
	_, err := Create(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrExists)
	require.NoError(t, mem.RemoveAll(testDir+"/store"))
	_, err = Create(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrExists, "the anchor remembers")
}

func TestOpenRefusesWhatIsNotAWorld(t *testing.T) {
	mem := memFS(t)
	_, err := Open(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrNotWorld)
	require.NoError(t, mem.MkdirAll(testDir, 0o755))
	_, err = Open(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrNotWorld)
	names, err := mem.List(testDir)
	require.NoError(t, err)
	require.Empty(t, names, "nothing is left behind")
}

func TestOpenRefusesANewerFormat(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	require.NoError(t, setMeta(s.db, meta{format: FormatVersion + 1, epoch: 9}))
	require.NoError(t, s.Close())
	_, err := Open(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrNewerFormat)
}

func TestReadOnlyDirectoryIsRefused(t *testing.T) {
	mem := memFS(t)
	require.NoError(t, create(t, mem).Close())
	readOnly := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite || op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, lockName) {
			return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.EROFS}
		}
		return nil
	}))
	_, err := Open(testDir, testOptions(readOnly))
	require.ErrorIs(t, err, syscall.EROFS)
	_, err = Create("w/other", testOptions(readOnly))
	require.ErrorIs(t, err, syscall.EROFS)
	require.NoError(t, reopen(t, mem).Close())
}

func TestEveryOwnerHasItsOwnEpoch(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	for epoch := uint64(1); epoch < 4; epoch++ {
		require.Equal(t, epoch, s.epoch)
		require.Equal(t, epoch, s.anchor.slot.Epoch)
		m, err := s.meta()
		require.NoError(t, err)
		require.Equal(t, meta{format: FormatVersion, epoch: epoch}, m)
		require.NoError(t, s.Close())
		s = reopen(t, mem)
	}
	require.NoError(t, s.Close())
}

// raw opens the Pebble of a closed world.
func raw(t testing.TB, files vfs.FS) *pebble.DB {
	t.Helper()
	s := &Store{dir: testDir, opts: testOptions(files).withDefaults(), failing: make(chan struct{})}
	if shared != nil {
		s.wals = &walList{files: files, path: s.path(walsName)}
		require.NoError(t, s.wals.readWALs(s.path(storeName)))
	}
	options := s.pebbleOptions()
	options.DisableAutomaticCompactions = true
	db, err := pebble.Open(s.path(storeName), options)
	require.NoError(t, err)
	return db
}
