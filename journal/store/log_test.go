package store

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/internal/testrace"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
)

// shared is where the journals of the worlds lie that tests make; nil: in their directories.
// forgotten: what the directory has is deleted before such a world is opened again.
var (
	shared    *logtest.Server
	forgotten bool
)

// TestSuitesOnALog runs, on worlds whose journal lies in a log, the tests of what they have in
// common with those in a directory: with the copies that they leave, and without them.
func TestSuitesOnALog(t *testing.T) {
	shared = &logtest.Server{}
	checks := flag.Lookup("rapid.checks").Value
	defer func(many string) { shared, forgotten = nil, false; _ = checks.Set(many) }(checks.String())
	_ = checks.Set(strconv.Itoa(testrace.Cases(int(100 / fault.Stride(11))))) // as each is tried on a directory as well
	for name, test := range suites() {
		forgotten = false
		t.Run(name, test)
		if name == "past" || name == "moments" || name == "redacted" { // of what is the copy's alone
			continue
		}
		forgotten = true
		t.Run(name+", without a copy", test)
	}
}

func suites() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"read back":      TestAppendedRecordsAreReadBackAfterReopening,
		"pipelined":      TestAppendsArePipelined,
		"close waits":    TestCloseWaitsForPendingAppends,
		"other heads":    TestAppendRefusesAnotherHeadAndGaps,
		"other roots":    TestAppendFollowsARootAndNotAnIDAlone,
		"bad images":     TestCheckpointRefusesHeadsItDoesNotHave,
		"model":          TestStoreEqualsAPlainModel,
		"images":         TestImagesEqualThoseInMemory,
		"versions":       TestAVersionAtAnyRecordIsTheLastThatIsKept,
		"let go":         TestAnImageIsReadWholeWhileItIsLetGo,
		"many versions":  TestImagesAreReadPastManyVersions,
		"moments":        TestNoRecordIsFarFromAnImageAndImagesAreFew,
		"past":           TestImagesOfThePastAreMadeAgain,
		"tree":           TestTreeIsTheSameWithAndWithoutTiles,
		"index":          TestCellRecordsJoinIndexAndTail,
		"intents":        TestRecordsOfAnIntentConcernItsCell,
		"redacted":       TestRedactedBytesAreInNoFile,
		"redacted later": TestPayloadThatOpeningNeedsWaitsForItsImage,
		"not redacted":   TestRedactionWithoutItsRecordIsDropped,
		"comes again":    TestPayloadThatComesAgainStays,
		"chunks":         TestWhatLongPayloadsHaveInCommonIsKeptOnce,
		"versions go":    TestVersionsInChunksGoWithTheirImages,
		"await":          TestAwaitReturnsOnceTheRecordIsDurable,
		"await again":    TestAwaitKnowsWhatWasThereWhenTheStoreWasOpened,
		"ahead":          TestScanReadsAheadOnOneProcessorAndOnTwo,
		"segments":       TestRecordsOfSegmentsAreReadBack,
	}
}

// withLog has a world that tests make in a log, where they do; a disk that lost what was not synced
// is that of a machine that was started again.
func withLog(o Options) Options {
	if shared == nil {
		return o
	}
	o.Log, o.boot = shared.Log(), "another"
	if files, ok := vfs.Root(o.FS).(*vfs.MemFS); ok {
		o.boot = fmt.Sprintf("%p", files)
	}
	return o
}

// onLog has the worlds that a test makes in a log.
func onLog(t testing.TB) {
	t.Helper()
	shared = &logtest.Server{}
	t.Cleanup(func() { shared = nil })
}

// sharedOptions are testOptions that a test says more of.
func sharedOptions(files vfs.FS, log journal.Log) Options {
	o := testOptions(files)
	o.Log = log
	return o
}

// heldLog tells of what is durable only when it is let.
type heldLog struct {
	journal.Log
	asked, gate chan struct{}
}

type heldPending struct {
	journal.Pending
	log *heldLog
}

func (l *heldLog) Append(b journal.Batch) (journal.Pending, error) {
	p, err := l.Log.Append(b)
	return &heldPending{p, l}, err
}

func (p *heldPending) Done() bool {
	select {
	case <-p.log.gate:
		return p.Pending.Done()
	default:
		return false
	}
}

func (p *heldPending) Wait() error {
	close(p.log.asked)
	<-p.log.gate
	return p.Pending.Wait()
}

func TestNothingIsReleasedBeforeTheLogSaysThatItIsDurable(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	held := &heldLog{shared.Log(), make(chan struct{}), make(chan struct{})}
	s, err := Create(testDir, sharedOptions(mem, held))
	require.NoError(t, err)
	w := &writer{}
	p, err := s.Append(w.batch("agent/a"))
	require.NoError(t, err)
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head})) // which the copy has when it is written
	s.settleImages()
	require.Equal(t, w.head, s.readable())
	released := make(chan struct{})
	go func() {
		_ = p.Wait()
		close(released)
	}()
	select {
	case <-held.asked:
	case <-released:
	}
	require.False(t, p.Done())
	require.Zero(t, s.anchoredHead(t))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Await(ended, 0), context.Canceled)
	require.Never(t, func() bool {
		kept, err := shared.Log().Kept(t.Context())
		return err != nil || kept != nil
	}, 50*time.Millisecond, 5*time.Millisecond, "an image of what nobody knows to be durable")
	close(held.gate)
	require.NoError(t, p.Wait())
	require.NoError(t, s.Await(t.Context(), 0))
	require.NoError(t, s.Close())
}

func TestFencedOwnerReleasesNothing(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	appendAll(t, s, w.batch("agent/a"))
	elsewhere := memFSOf(t)
	other, err := Open(testDir, sharedOptions(elsewhere, shared.Log()))
	require.NoError(t, err)
	require.Equal(t, w.head, other.Head())
	_, err = shared.Log().End(t.Context())
	require.NoError(t, err)

	p, err := s.Append(w.batch("agent/lost"))
	require.NoError(t, err)
	require.ErrorIs(t, p.Wait(), journal.ErrFenced)
	_, err = s.Append(w.batch("agent/lost too"))
	require.ErrorIs(t, err, journal.ErrFenced)
	require.Equal(t, journal.Seq(1), s.anchoredHead(t))
	require.ErrorIs(t, s.PutCheckpoint(noteOf(t, 1)), journal.ErrFenced)
	require.NoError(t, s.Close())

	second := resume(other)
	appendAll(t, other, second.batch("agent/b", "agent/c"))
	require.NoError(t, other.Close())
	// What was never acknowledged makes no log a rewound one: it is not there any more.
	s = reopen(t, mem)
	require.Equal(t, second.head, s.Head())
	require.Equal(t, []journal.Seq{2}, cellRecords(t, s, "agent/b", 0))
	require.Empty(t, cellRecords(t, s, "agent/lost", 0))
	require.Empty(t, damageOf(s))
	require.NoError(t, s.Close())
}

// memFSOf returns the disk of another machine.
func memFSOf(t testing.TB) *vfs.MemFS {
	t.Helper()
	was := shared
	defer func() { shared = was }()
	return memFS(t)
}

func noteOf(t testing.TB, size uint64) []byte {
	t.Helper()
	note, err := (checkpoint.Checkpoint{World: "w", Size: size}).Sign(signingKey())
	require.NoError(t, err)
	return note
}

func TestLogThatLostWhatItHadAcknowledgedHaltsTheWorld(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	appendAll(t, s, w.batch("agent/a"))
	backup := shared.Backup()
	before := *w
	appendAll(t, s, w.batch("agent/b", "agent/c"))
	shared.Restore(backup)
	p, err := s.Append(w.batch("agent/d")) // under the owner of then
	require.NoError(t, err)
	require.ErrorIs(t, p.Wait(), journal.ErrRewound)
	require.NoError(t, s.Close())

	files := contentsOf(t, mem)
	_, err = Open(testDir, testOptions(mem))
	require.ErrorIs(t, err, journal.ErrRewound)
	require.Equal(t, files, contentsOf(t, mem), "something was dropped")
	// Somebody else has gone on, even farther.
	other, err := Open(testDir, sharedOptions(memFSOf(t), shared.Log()))
	require.NoError(t, err)
	appendAll(t, other, before.batch("x"), before.batch("y", "z"), before.batch("more"))
	require.NoError(t, other.Close())
	_, err = Open(testDir, testOptions(mem))
	require.ErrorIs(t, err, journal.ErrRewound)
	require.Equal(t, files, contentsOf(t, mem))
	// A person who decides for the log removes the copy.
	require.NoError(t, mem.RemoveAll(testDir))
	s = reopen(t, mem)
	require.Equal(t, before.head, s.Head())
	require.NoError(t, s.Close())
}

// contentsOf returns what is in a directory and its store, but for the lock and the mark.
func contentsOf(t testing.TB, files vfs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range append(filesOf(t, files, testDir+"/"+storeName), anchorPath) {
		all[path] = string(readFile(t, files, path))
	}
	return all
}

func TestCopyThatNobodyClosedIsBelievedOnlyInTheSameBoot(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	appendAll(t, s, w.batch("agent/a", "agent/b"))
	killed := clone(mem)
	lost := mem.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, s.Close())
	for name, c := range map[string]struct {
		files *vfs.MemFS
		boot  string
		own   bool
	}{
		"closed":                  {mem, "", true},
		"killed":                  {killed, fmt.Sprintf("%p", mem), true},
		"killed, in another boot": {clone(killed), "", false},
		"power cut":               {lost, "", false},
	} {
		opts := testOptions(c.files)
		opts.boot = cmp.Or(c.boot, opts.boot)
		log := &countedLog{Log: shared.Log()}
		opts.Log = log
		s, err := Open(testDir, opts)
		require.NoError(t, err, name)
		require.Equal(t, w.head, s.Head(), name)
		require.Len(t, scanAll(t, s, 0), 2, name)
		want := 2
		if c.own {
			want = 1 // the last, to compare it
		}
		require.Equal(t, want, log.records, name)
		require.NoError(t, s.Close(), name)
	}
}

// countedLog counts what is read of it, and what is put.
type countedLog struct {
	journal.Log
	records, imageBytes, images int
}

func (l *countedLog) Records(ctx context.Context, after journal.Seq) iter.Seq2[journal.Linked, error] {
	return func(yield func(journal.Linked, error) bool) {
		for r, err := range l.Log.Records(ctx, after) {
			l.records++
			if !yield(r, err) {
				return
			}
		}
	}
}

func (l *countedLog) PutImage(ctx context.Context, img *journal.KeptImage) error {
	counted := *img
	counted.Parts = func(yield func([]byte, error) bool) {
		for part, err := range img.Parts {
			l.imageBytes += len(part)
			if !yield(part, err) {
				return
			}
		}
	}
	l.images++
	return l.Log.PutImage(ctx, &counted)
}

// The state is a mebibyte and the journal grows far beyond that: opening without a copy reads
// the image and what follows, and images are no more than what was appended.
func TestOpeningWithoutACopyReadsTheImageAndWhatFollows(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	log := &countedLog{Log: shared.Log()}
	s, err := Create(testDir, sharedOptions(mem, log))
	require.NoError(t, err)
	w := &writer{}
	var cells []journal.CellVersion
	for i := range 200 {
		cells = append(cells, journal.CellVersion{Cell: fmt.Sprintf("agent/%03d", i), Bytes: []byte(prose(uint64(i), 8<<10))})
	}
	appended := 0
	for i := range 20 {
		b := w.batch(slices.Repeat([]string{"agent/a"}, 100)...)
		text := prose(uint64(1000+i), 200<<10)
		w.add(&b, text)
		b.Head = w.head
		appendAll(t, s, b)
		appended += len(text)
		require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Core: []byte("core"), Cells: slices.Clone(cells)}))
		s.settleImages()
		// A log that takes long is given fewer images, so this one is awaited.
		require.Eventually(t, func() bool {
			s.keeping.Lock()
			defer s.keeping.Unlock()
			return !s.unkept.Load() || s.grown.Load() < s.imageSize
		}, time.Minute, time.Millisecond)
	}
	require.NoError(t, s.Close())
	require.Less(t, log.imageBytes, 2*appended)
	require.Greater(t, log.images, 2)

	counted := &countedLog{Log: shared.Log()}
	cold, err := Open(testDir, sharedOptions(memFSOf(t), counted))
	require.NoError(t, err)
	require.Equal(t, w.head, cold.Head())
	// The last image is of the batch whose bytes made it due, or of the one before.
	require.Less(t, counted.records, 450, "of %d", w.head.ID)
	got, err := cold.Image(journal.Last)
	require.NoError(t, err)
	require.Len(t, got.Cells, 200)
	require.Equal(t, prose(7, 8<<10), string(got.Cells[7].Bytes))
	require.Len(t, cellRecords(t, cold, "agent/a", w.head.ID-50), 49)
	require.Less(t, counted.records, 450, "what is indexed is not read")
	require.Len(t, cellRecords(t, cold, "agent/a", 0), 2000)
	require.NoError(t, cold.Close())
}

func TestWhatALogDoesIsRefused(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	appendAll(t, s, w.batch("a", "b", "c"))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head}))
	_, err := s.Archive(2, "/archived")
	require.ErrorIs(t, err, ErrInTheLog)
	require.NoError(t, s.Close())
	_, err = Create(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrExists)

	server := shared
	shared = nil
	_, err = Open(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrCopy)
	_, err = Create(testDir, testOptions(mem))
	require.ErrorIs(t, err, ErrCopy)
	own := memFS(t)
	s = create(t, own)
	appendAll(t, s, (&writer{}).batch("the only one"))
	require.NoError(t, s.Close())
	shared = server
	_, err = Open(testDir, testOptions(own))
	require.ErrorIs(t, err, ErrNoCopy)
	shared = nil
	s = reopen(t, own)
	require.Equal(t, journal.Seq(1), s.Head().ID)
	require.NoError(t, s.Close())
}

// A crash between a redaction's record and its end in the log is made up for, with a copy and
// without.
func TestRedactionIsBroughtToAnEndWhoeverOpensTheWorldNext(t *testing.T) {
	requireRedactionsEnd(t, false, false)
	requireRedactionsEnd(t, true, true)
}

func TestRedactionIsFoundInTheTail(t *testing.T) { requireRedactionsEnd(t, true, false) }

// requireRedactionsEnd redacts a payload, cut off, and opens the world again: without the copy, and
// with the record behind an image, or not.
func requireRedactionsEnd(t *testing.T, forget, imaged bool) {
	t.Helper()
	onLog(t)
	mem := memFS(t)
	w, blob := aSecret(t, mem, true)
	s, err := Open(testDir, sharedOptions(mem, &cutLog{shared.Log()}))
	require.NoError(t, err)
	require.ErrorIs(t, s.Redact(blob, func() error {
		appendAll(t, s, w.redaction(t, blob))
		return nil
	}), errCut)
	if imaged {
		require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Core: []byte("core")}))
	}
	require.NoError(t, s.Close())
	if forget {
		require.NoError(t, mem.RemoveAll(testDir))
	}
	_, err = shared.Log().Blob(blob)
	require.NoError(t, err)
	s = reopen(t, mem)
	_, err = s.Blob(blob)
	require.ErrorIs(t, err, journal.ErrRedacted)
	_, err = shared.Log().Blob(blob)
	require.ErrorIs(t, err, journal.ErrRedacted)
	require.NoError(t, s.Close())
	require.Empty(t, holding(t, mem, "w", marker))
}

var errCut = errors.New("cut off")

// cutLog does not come to redactions.
type cutLog struct{ journal.Log }

func (*cutLog) Redact(context.Context, journal.Hash) error { return errCut }

func TestDamagedRecordIsHadFromTheLog(t *testing.T) {
	onLog(t)
	mem, w := aWorld(t)
	db := raw(t, mem)
	require.NoError(t, db.Set(recordKey(2), []byte("damaged"), pebble.Sync))
	require.NoError(t, db.Delete(hashKey(blobPrefix, canon.Sum([]byte(longPayload))), pebble.Sync))
	require.NoError(t, db.Close())
	for range 2 { // the second time it is there
		log := &countedLog{Log: shared.Log()}
		s, err := Open(testDir, sharedOptions(mem, log))
		require.NoError(t, err)
		_, err = s.Record(2)
		require.NoError(t, err)
		require.NoError(t, readAll(s, w))
		_, err = s.Blob(canon.Sum([]byte(longPayload)))
		require.NoError(t, err)
		require.Empty(t, damageOf(s))
		require.NoError(t, s.Close())
		require.LessOrEqual(t, log.records, 3)
	}
}
