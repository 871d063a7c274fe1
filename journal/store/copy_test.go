package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/worldkernel/worldkernel/internal/fault"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
)

const copyDir = "f/.world"

// copyOptions are those of a copy, which has another key, and where it is one of a world in a log
// lies in one, too.
func copyOptions(files vfs.FS) Options {
	opts := testOptions(files)
	opts.AnchorKey = []byte("another key")
	if heir != nil {
		opts.Log = heir.Log()
	}
	return opts
}

// heir is where the journals of copies lie that are made of worlds in a log; nil: in their directories.
var heir *logtest.Server

func copyTo(t require.TestingT, s *Store, at journal.Seq, files vfs.FS) *Store {
	opts := copyOptions(files)
	if heir != nil {
		*heir = logtest.Server{}
		require.NoError(t, opts.Log.(journal.Movable).Make(context.Background(), journal.Making{}))
	}
	c, done, err := s.CopyTo(copyDir, at, opts)
	require.NoError(t, err)
	if heir != nil {
		require.NoError(t, opts.Log.(journal.Movable).Publish(context.Background()))
	}
	require.Equal(t, done.Head, c.Head())
	require.Positive(t, done.Bytes)
	require.False(t, done.Linked, "files in memory are nobody's")
	return c
}

func removeCopy(t require.TestingT, c *Store, files vfs.FS) {
	require.NoError(t, c.Close())
	require.NoError(t, files.RemoveAll("f"))
}

func idsOf(t require.TestingT, s *Store, cell string) (ids []journal.Seq) {
	for id, err := range s.CellRecords(cell, 0) {
		require.NoError(t, err)
		ids = append(ids, id)
	}
	return ids
}

// A copy holds what a store would that got no more than the records up to there,
// and the images up to there that are still kept.
func TestCopyEqualsAStoreThatGotNoMore(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := newHistory(t)
		require.NoError(r, h.s.Close())
		opts := testOptions(h.mem)
		opts.segmentBytes = rapid.SampledFrom([]int{1, 100, 1 << 10}).Draw(r, "segment")
		var err error
		h.s, err = Open(testDir, opts)
		require.NoError(r, err)
		var records []journal.Stored
		var blobs []journal.Blob
		r.Repeat(map[string]func(*rapid.T){
			"append": func(r *rapid.T) {
				payload := rapid.SampledFrom([]string{"a/1", "a/11 a/1", "b/1", "@1=a/1", "@2=a/2", longPayload})
				b := h.batch(rapid.SliceOfN(payload, 0, 5).Draw(r, "records")...)
				appendAll(t, h.s, b)
				records, blobs = append(records, b.Records...), append(blobs, b.Blobs...)
				h.heads = append(h.heads, h.head)
			},
			"checkpoint": func(r *rapid.T) { h.checkpoint(r, h.drawImage(r)) },
			"reopen": func(r *rapid.T) {
				require.NoError(r, h.s.Close())
				h.s, err = Open(testDir, opts)
				require.NoError(r, err)
			},
		})
		if h.head.ID > 0 {
			at := journal.Seq(rapid.Uint64Range(1, uint64(h.head.ID)).Draw(r, "at"))
			h.compareCopy(t, r, at, records[:at], blobs)
			require.Equal(r, h.head, h.s.Head(), "the store is as it was")
			require.Empty(r, damageOf(h.s))
			h.compare(r, journal.Last, imageCells)
			requireNothingUnneeded(r, h.s)
		}
		require.NoError(r, h.s.Close())
	})
}

// compareCopy copies the store up to a record and compares the copy with a store
// that only ever got these records, and with the images in memory.
func (h *history) compareCopy(t testing.TB, r *rapid.T, at journal.Seq, records []journal.Stored, blobs []journal.Blob) {
	mem := vfs.NewMem()
	opts := testOptions(mem)
	opts.Log = nil
	want, err := Create(testDir, opts)
	require.NoError(r, err)
	last := records[len(records)-1]
	appendAll(t, want, journal.Batch{Head: journal.Head{ID: last.ID, Root: last.Root}, Records: records, Blobs: blobs})

	c := copyTo(r, h.s, at, h.mem)
	for range 2 { // as it is made, and when it has gone on and was opened again
		h.compareRecords(t, r, want, c)
		for _, head := range h.heads {
			if head.ID <= at {
				(&history{s: c, want: h.want}).compare(r, head.ID, imageCells)
			}
		}
		w := resume(want)
		more := w.batch("a/1 b/1", "@1=a/1")
		appendAll(t, want, more)
		appendAll(t, c, more)
		h.compareRecords(t, r, want, c)
		img := &journal.Image{Head: w.head, Cells: []journal.CellVersion{{Cell: "a/1", Bytes: []byte("other")}, {Cell: "b/1"}}}
		for _, head := range h.kept {
			if head <= at {
				img.Keep = append(img.Keep, head)
			}
		}
		require.NoError(r, c.Checkpoint(img))
		require.NoError(r, c.Close())
		c, err = Open(copyDir, copyOptions(h.mem))
		require.NoError(r, err)
	}
	require.NoError(r, want.Close())
	removeCopy(r, c, h.mem)
}

func (h *history) compareRecords(t testing.TB, r *rapid.T, want, got *Store) {
	require.Equal(r, want.Head(), got.Head())
	require.Equal(r, scanAll(t, want, 0), scanAll(t, got, 0))
	for _, cell := range imageCells {
		require.Equal(r, idsOf(r, want, cell), idsOf(r, got, cell), cell)
	}
	requireNothingUnneeded(r, got)
	require.Empty(r, damageOf(got))
}

func TestCopyRefusesRecordsThatAreNotThere(t *testing.T) {
	h := newHistory(t)
	appendAll(t, h.s, h.batch("a/1"))
	for _, at := range []journal.Seq{0, 2} {
		_, _, err := h.s.CopyTo(copyDir, at, copyOptions(h.mem))
		require.ErrorIs(t, err, journal.ErrNotFound)
	}
	_, err := h.mem.Stat("f")
	require.ErrorIs(t, err, fs.ErrNotExist)

	_, _, err = h.s.CopyTo(testDir, 1, testOptions(h.mem))
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	c := copyTo(t, h.s, 1, h.mem)
	_, err = Open(copyDir, copyOptions(h.mem))
	require.ErrorAs(t, err, &locked, "who copies owns the copy")
	require.NoError(t, c.Close())
	_, _, err = h.s.CopyTo(copyDir, 1, copyOptions(h.mem))
	require.ErrorIs(t, err, ErrExists)
	_, err = Open(copyDir, testOptions(h.mem))
	require.ErrorIs(t, err, ErrBadAnchor, "it has an anchor of its own")
	require.NoError(t, h.s.Close())
	_, _, err = h.s.CopyTo("g/.world", 1, copyOptions(h.mem))
	require.ErrorIs(t, err, ErrClosed)
}

// Appends and checkpoints that are under way are in a copy of all that there is.
func TestCopyOfAllWaitsForWhatIsUnderWay(t *testing.T) {
	h := newHistory(t)
	b := h.batch("a/1", longPayload)
	_, err := h.s.Append(b)
	require.NoError(t, err)
	h.checkpoint(t, &journal.Image{Head: h.head, Cells: []journal.CellVersion{{Cell: "a/1", Bytes: []byte("x")}}})
	c := copyTo(t, h.s, journal.Last, h.mem)
	require.Equal(t, h.head, c.Head())
	(&history{s: c, want: h.want}).compare(t, journal.Last, imageCells)
	require.Equal(t, scannedAll(b.Records), scanAll(t, c, 0))
	require.Empty(t, damageOf(c))
	removeCopy(t, c, h.mem)
	require.NoError(t, h.s.Close())
}

// What a copy holds has been acknowledged: until the append under way is, nothing is
// copied, and what fails is in no copy.
func TestCopyHoldsNothingThatIsNotAcknowledged(t *testing.T) {
	for _, fails := range []error{nil, syscall.EIO} {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { copyBesideAnAppend(t, fails) })
		})
	}
}

// copyBesideAnAppend makes a copy while the last step of an append, which writes the
// anchor, does not end; then it ends so.
func copyBesideAnAppend(t *testing.T, so error) {
	mem := memFS(t)
	held := make(chan struct{})
	var on atomic.Bool
	opts := testOptions(syncing(mem, anchorPath, &on, func() error {
		<-held
		return so
	}))
	s, err := Create(testDir, opts)
	require.NoError(t, err)
	w := &writer{}
	appendAll(t, s, w.batch("a/1"))
	on.Store(true)
	p, err := s.Append(w.batch("a/1"))
	require.NoError(t, err)
	var c *Store
	copied := make(chan error, 1)
	go func() {
		var err error
		c, _, err = s.CopyTo(copyDir, journal.Last, copyOptions(opts.FS))
		copied <- err
	}()
	synctest.Wait()
	early := filesOf(t, mem, copyDir)
	close(held)
	require.ErrorIs(t, p.Wait(), so)
	err = <-copied
	if err == nil {
		require.Equal(t, w.head, c.Head())
		require.NoError(t, c.Close())
	}
	require.NoError(t, s.Close())
	require.ErrorIs(t, err, so)
	require.NotContains(t, early, copyDir+"/"+storeName, "it did not wait")
}

func TestCopyReadsTheArchivesOfTheStore(t *testing.T) {
	h := newHistory(t)
	for range 6 {
		appendAll(t, h.s, h.batch("a/1", "b/1"))
	}
	h.checkpoint(t, &journal.Image{Head: h.head})
	_, err := h.s.Archive(7, "/archived")
	require.NoError(t, err)
	_, _, err = h.s.CopyTo(copyDir, 5, copyOptions(h.mem))
	require.ErrorIs(t, err, journal.ErrArchived)
	for _, at := range []journal.Seq{9, journal.Last} {
		c := copyTo(t, h.s, at, h.mem)
		require.Equal(t, scanAll(t, h.s, 0)[:c.Head().ID], scanAll(t, c, 0))
		require.Empty(t, damageOf(c))
		removeCopy(t, c, h.mem)
	}
	require.NoError(t, h.s.Close())
}

// On one disk the tables are linked; where they cannot be, they are copied.
func TestCopySaysWhetherItSharesItsTables(t *testing.T) {
	dir := t.TempDir()
	opts := copyOptions(vfs.Default)
	s, err := Create(filepath.Join(dir, "a"), opts)
	require.NoError(t, err)
	w := &writer{}
	appendAll(t, s, w.batch("a/1", "b/1"))
	c, done, err := s.CopyTo(filepath.Join(dir, "b"), journal.Last, opts)
	require.NoError(t, err)
	require.True(t, done.Linked)
	require.Equal(t, w.head, done.Head)
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())

	opts.FS = apart{vfs.Default}
	s, err = Open(filepath.Join(dir, "a"), opts)
	require.NoError(t, err)
	c, done, err = s.CopyTo(filepath.Join(dir, "c"), 1, opts)
	require.NoError(t, err)
	require.False(t, done.Linked)
	require.Positive(t, done.Bytes)
	require.Equal(t, journal.Seq(1), c.Head().ID)
	require.Empty(t, damageOf(c))
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	names, err := vfs.Default.List(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.NotContains(t, names, stagedName)
}

// apart is a file system without links, on which no directory can be moved to
// another.
type apart struct{ vfs.FS }

func (apart) Link(string, string) error { return syscall.ENOTSUP }

func (a apart) Rename(from, to string) error {
	if a.PathDir(from) != a.PathDir(to) {
		return syscall.EXDEV
	}
	return a.FS.Rename(from, to)
}

func TestCrashWhileCopyingLeavesTheCopyOrNothing(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		for _, at := range []journal.Seq{20, journal.Last} {
			t.Run(fmt.Sprintf("at=%d,elsewhere=%v", at, elsewhere), func(t *testing.T) {
				mem, st := memFS(t), newStory()
				require.NoError(t, st.tell(testOptions(mem)))
				stride := fault.Stride(11)
				first := fault.From(t, stride)
				for i, files := range crashesWhileCopying(t, mem, at, elsewhere) {
					if int64(i)%stride != first {
						continue
					}
					if !t.Run(fmt.Sprint("write ", i), func(t *testing.T) { st.copied(t, files, at) }) {
						return
					}
				}
			})
		}
	}
}

// crashesWhileCopying returns what the disk may hold after a crash at every write.
func crashesWhileCopying(t *testing.T, mem *vfs.MemFS, at journal.Seq, elsewhere bool) []*vfs.MemFS {
	t.Helper()
	var mu sync.Mutex
	var crashes []*vfs.MemFS
	rng := rand.New(rand.NewPCG(7, uint64(at)))
	var files vfs.FS = mem
	if elsewhere {
		files = apart{mem}
	}
	var on bool
	files = beforeWrites(files, &mu, func() {
		if on {
			crashes = append(crashes, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * (len(crashes) % 3), RNG: rng}))
		}
	})
	s, err := Open(testDir, testOptions(files))
	require.NoError(t, err)
	mu.Lock()
	on = true
	mu.Unlock()
	c := copyTo(t, s, at, files)
	mu.Lock()
	on = false
	mu.Unlock()
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	require.Greater(t, len(crashes), 20)
	return append(crashes, mem.CrashClone(vfs.CrashCloneCfg{}))
}

// copied checks what is found after a crash while a copy was made.
func (st *story) copied(t *testing.T, files *vfs.MemFS, at journal.Seq) {
	t.Helper()
	end := st.batches[len(st.batches)-1].Head
	s := reopen(t, files)
	require.Equal(t, end, s.Head())
	require.Empty(t, damageOf(s))
	st.requireImages(t, s)

	c, err := Open(copyDir, copyOptions(files))
	if err == nil {
		require.Equal(t, min(at, end.ID), c.Head().ID)
		require.Empty(t, damageOf(c))
		requireNothingUnneeded(t, c)
		require.NoError(t, c.Close())
	} else if !errors.Is(err, fs.ErrNotExist) {
		require.ErrorIs(t, err, ErrNotWorld)
	}
	require.NoError(t, files.RemoveAll("f"))
	c, _, err = s.CopyTo(copyDir, at, copyOptions(files))
	require.NoError(t, err, "what a crash left is in nobody's way")
	require.NoError(t, c.Close())
	_, err = files.Stat(s.path(stagedName))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, s.Close())
}

// Where a copy cannot be written the store goes on. Only where Pebble opens what
// is all but made it takes that for a world whose disk fails.
func TestCopyToAFullDiskLeavesTheStoreAlone(t *testing.T) {
	for n := int64(0); ; n += fault.Stride(5) {
		mem := memFS(t)
		var count atomic.Int64
		files := errorfs.Wrap(apart{mem}, errorfs.InjectorFunc(func(op errorfs.Op) error {
			made := op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpMkdirAll || op.Kind == errorfs.OpRename
			if made && strings.HasPrefix(op.Path, "f/") && count.Add(1) > n {
				return syscall.ENOSPC
			}
			return nil
		}))
		s, err := Create(testDir, testOptions(files))
		require.NoError(t, err)
		w := &writer{}
		appendAll(t, s, w.batch("a/1"))

		c, _, err := s.CopyTo(copyDir, journal.Last, copyOptions(files))
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
		}
		appendAll(t, s, w.batch("a/1"))
		require.Empty(t, damageOf(s))
		require.NoError(t, s.Close())
		if count.Load() <= n {
			require.Greater(t, n, int64(5))
			return
		}
	}
}
