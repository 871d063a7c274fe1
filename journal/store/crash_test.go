package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
)

// clone copies all that a file system holds, synced or not.
func clone(mem *vfs.MemFS) *vfs.MemFS {
	return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// story is one run of a world that reopens, appends and takes checkpoints, and
// knows at any time what was acknowledged to it.
type story struct {
	batches []journal.Batch
	images  []*journal.Image // one after every third batch
	created atomic.Bool
	acked   atomic.Int64 // batches
}

func newStory() *story {
	st := &story{}
	w := &writer{}
	for i := range 12 {
		third := strings.Repeat("x", 6<<10) // in pieces, so that the anchor does not lead over it
		if i%3 > 0 {
			third = longPayload
		}
		st.batches = append(st.batches, w.batch(fmt.Sprintf("agent/%d", i%3), longPayload+fmt.Sprint(i), third+fmt.Sprint(i)))
	}
	for i, keep := range [][]journal.Seq{nil, {9}, {18}, {18}} {
		text := func(what string) []byte { return fmt.Appendf(nil, "%s %d", what, i) }
		st.images = append(st.images, &journal.Image{
			Head: st.batches[3*i+2].Head, Core: text("core"), Keep: keep,
			Cells: []journal.CellVersion{
				{Cell: "agent/a", Bytes: text("a")}, {Cell: "agent/b", Bytes: text("b")[:i%2*3]}, {Cell: fmt.Sprint("agent/c", i/2), Bytes: text("c")},
			},
			Intents: []journal.IntentVersion{{Key: journal.Hash{1}, Bytes: text("intent")}},
		})
	}
	return st
}

// requireImages checks that the store holds all images as they were after one of
// the story's checkpoints.
func (st *story) requireImages(t *testing.T, s *Store) {
	t.Helper()
	h := &history{s: s}
	last, err := s.Image(journal.Last)
	require.NoError(t, err)
	if last != nil {
		require.LessOrEqual(t, last.Head.ID, s.Head().ID)
		for _, img := range st.images {
			if img.Head.ID <= last.Head.ID {
				h.want.Add(img)
			}
		}
	}
	for _, img := range st.images {
		h.compare(t, img.Head.ID, []string{"agent/a", "agent/b", "agent/c0", "agent/c1"})
	}
	requireNothingUnneeded(t, s)
}

// tell runs the story to its end or its first error.
func (st *story) tell(opts Options) error {
	s, err := Create(testDir, opts)
	if err != nil {
		return err
	}
	st.created.Store(true)
	for i, img := range st.images {
		at := 3 * (i + 1)
		err := st.appendTo(s, st.batches[at-3:at], at-3)
		if err == nil {
			err = s.Checkpoint(img)
		}
		if err != nil {
			return errors.Join(err, s.Close())
		}
		if i%2 == 0 {
			continue
		}
		if err := s.Close(); err != nil {
			return err
		}
		if s, err = Open(testDir, opts); err != nil {
			return err
		}
		if err := st.restore(s); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	return s.Close()
}

// restore stores the images that were lost, as a world does that is opened.
func (st *story) restore(s *Store) error {
	last, err := s.Image(journal.Last)
	if err != nil {
		return err
	}
	for _, img := range st.images {
		if img.Head.ID > s.Head().ID || last != nil && img.Head.ID <= last.Head.ID {
			continue
		}
		if err := s.Checkpoint(img); err != nil {
			return err
		}
	}
	return nil
}

func (st *story) appendTo(s *Store, batches []journal.Batch, first int) error {
	var waiting []journal.Pending
	for i, b := range batches {
		p, err := s.Append(b)
		if err != nil {
			return err
		}
		waiting = append(waiting, p)
		if i%2 == 0 && i+1 < len(batches) {
			continue
		}
		for _, p := range waiting {
			if err := p.Wait(); err != nil {
				return err
			}
			st.acked.Add(1)
		}
		waiting = waiting[:0]
		if want := int64(first + i + 1); st.acked.Load() != want {
			return fmt.Errorf("%d batches are acknowledged instead of %d", st.acked.Load(), want)
		}
	}
	return nil
}

// survives checks what is found after a crash at which acked batches had been
// acknowledged: all of them, and of the others each wholly or not at all.
func (st *story) survives(t *testing.T, files *vfs.MemFS, created bool, acked int) {
	t.Helper()
	s, err := Open(testDir, testOptions(files))
	if !created && errors.Is(err, ErrNotWorld) {
		s, err = Create(testDir, testOptions(files))
	}
	require.NoError(t, err)
	found := s.Head()
	whole := found.ID == 0 && acked == 0
	for i, b := range st.batches {
		whole = whole || b.Head == found && i+1 >= acked
	}
	require.True(t, whole, "found #%d of %d acknowledged batches", found.ID, acked)
	require.LessOrEqual(t, s.anchor.slot.Head.ID, found.ID)
	n := 0
	for _, r := range scanAll(t, s, 0) {
		require.Equal(t, scanned(st.batches[n/3].Records[n%3]), r)
		n++
	}
	require.Empty(t, damageOf(s))
	st.requireImages(t, s)
	require.NoError(t, st.restore(s))
	st.requireImages(t, s)

	// What Open found and reported is durable from then on.
	crashed := files.CrashClone(vfs.CrashCloneCfg{})
	appendAll(t, s, resume(s).batch("more"))
	require.NoError(t, s.Close())
	s = reopen(t, crashed)
	require.Equal(t, found, s.Head())
	require.NoError(t, s.Close())
}

// moment is the state of the disk before one write.
type moment struct {
	files   *vfs.MemFS
	created bool
	acked   int
}

func TestCrashAtEveryWriteLosesNothingAcknowledged(t *testing.T) {
	for seed, keep := range []int{0, 100, 50, 50, 50, 50} {
		t.Run(fmt.Sprintf("unsynced=%d%%,seed=%d", keep, seed), func(t *testing.T) {
			mem, st := memFS(t), newStory()
			var mu sync.Mutex
			var moments []moment
			rng := rand.New(rand.NewPCG(7, uint64(seed)))
			files := beforeWrites(mem, &mu, func() {
				// Asked first: what is acknowledged now is in the clone.
				m := moment{created: st.created.Load(), acked: int(st.acked.Load())}
				m.files = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: rng})
				moments = append(moments, m)
			})
			require.NoError(t, st.tell(testOptions(files)))
			require.Greater(t, len(moments), 100)
			stride := fault.Stride(7)
			first := fault.From(t, stride)
			for i, m := range moments {
				if int64(i)%stride != first {
					continue
				}
				if !t.Run(fmt.Sprint("write ", i), func(t *testing.T) { st.survives(t, m.files, m.created, m.acked) }) {
					return
				}
			}
			st.survives(t, mem.CrashClone(vfs.CrashCloneCfg{}), true, len(st.batches))
		})
	}
}

// beforeWrites calls record before each write to files in memory, one at a time
// under mu. Record may copy them as a crash would leave them.
func beforeWrites(files vfs.FS, mu *sync.Mutex, record func()) vfs.FS {
	return fault.Disk(fault.TakingTurns(files, mu), writesAt(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpFileReadAt && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			record()
		}
		return nil
	}))
}

// writesAt leaves out the kinds that errorfs cannot tell to be reads or writes.
func writesAt(next errorfs.InjectorFunc) errorfs.InjectorFunc {
	return func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileReadAt, errorfs.OpFileSyncData:
			return nil
		case errorfs.OpFileWriteAt:
			op.Kind = errorfs.OpFileWrite
		}
		return next(op)
	}
}

// under does something over a failing disk, to its end: the process lives on.
func under(mem vfs.FS, failing errorfs.InjectorFunc, do func(Options) error) error {
	return do(testOptions(fault.Disk(mem, failing)))
}

func TestEveryFailingOperationIsAnErrorAndLosesNothing(t *testing.T) {
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprintf("all after=%v", all), func(t *testing.T) {
			failed, stride := 0, fault.Stride(7)
			for n := 1 + fault.From(t, stride); ; n += stride {
				mem, st := memFS(t), newStory()
				var count, injected atomic.Int64
				got := under(mem, func(op errorfs.Op) error {
					if op.Kind == errorfs.OpStat && strings.HasSuffix(op.Path, storeName) {
						return nil // a world that cannot be seen is not a world
					}
					if i := count.Add(1); i == n || all && i > n {
						injected.Add(1)
						return &vfsError{op, syscall.EIO}
					}
					return nil
				}, st.tell)
				if injected.Load() == 0 {
					require.NoError(t, got)
					break
				}
				acked := int(st.acked.Load())
				if got == nil { // Pebble could do without, as in removing a file
					require.Equal(t, len(st.batches), acked)
				} else {
					failed++
				}
				st.survives(t, mem.CrashClone(vfs.CrashCloneCfg{}), st.created.Load(), acked)
				if t.Failed() {
					t.Fatalf("operation %d, ended with %v", n, got)
				}
			}
			require.Positive(t, failed)
		})
	}
}

type vfsError struct {
	op  errorfs.Op
	err error
}

func (e *vfsError) Error() string { return fmt.Sprintf("op %d on %s: %v", e.op.Kind, e.op.Path, e.err) }
func (e *vfsError) Unwrap() error { return e.err }

func TestFullDiskEndsWithAClearError(t *testing.T) {
	mem := memFS(t)
	var full atomic.Bool
	opts := testOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate) {
			return syscall.ENOSPC
		}
		return nil
	})))
	s, err := Create(testDir, opts)
	require.NoError(t, err)
	w := &writer{}
	appendAll(t, s, w.batch("a"))
	acked := w.head
	full.Store(true)
	for err == nil {
		var p journal.Pending
		if p, err = s.Append(w.batch("b")); err == nil {
			err = p.Wait()
		}
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "free space on "+testDir)
	_ = s.Close() // it says so again, or not
	s = reopen(t, mem.CrashClone(vfs.CrashCloneCfg{}))
	require.Contains(t, []journal.Seq{acked.ID, acked.ID + 1}, s.Head().ID, "the anchor may have what the log could not take")
	require.NoError(t, s.Close())
}

// TestAnchorHasWhatItLeadsBy: it is written while the log is, and a crash may take the log
// and leave the anchor.
func TestAnchorHasWhatItLeadsBy(t *testing.T) {
	mem, st := memFS(t), newStory()
	var mu sync.Mutex
	var moments []*vfs.MemFS
	// The moment before an anchor is synced, with the anchor as if it were, and
	// the rest as it is on disk.
	require.NoError(t, st.tell(testOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpFileSyncData || !strings.HasSuffix(op.Path, anchorName) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		crashed := mem.CrashClone(vfs.CrashCloneCfg{})
		if err := vfs.CopyAcrossFS(mem, anchorPath, crashed, anchorPath); err != nil {
			return err
		}
		moments = append(moments, crashed)
		return nil
	})))))
	led := 0
	for _, files := range moments {
		anchored, err := readAnchor(files, anchorPath)
		require.NoError(t, err)
		s := reopen(t, files)
		require.GreaterOrEqual(t, s.Head().ID, anchored.Head.ID)
		if len(anchored.Lead) > 0 {
			led++
		}
		require.Empty(t, damageOf(s))
		require.NoError(t, s.Close())
	}
	require.NotZero(t, led)
}

// TestStoreGetsItsNameAfterItsAnchor: a store by its name without one is refused for good.
func TestStoreGetsItsNameAfterItsAnchor(t *testing.T) {
	mem := memFS(t)
	var crashed *vfs.MemFS // before the store gets its name
	s, err := Create(testDir, testOptions(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRename && strings.HasSuffix(op.Path, newStoreName) {
			crashed = mem.CrashClone(vfs.CrashCloneCfg{})
		}
		return nil
	}))))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = readAnchor(crashed, anchorPath)
	require.NoError(t, err)
}

// TestWhatIsAcknowledgedIsAnchored: else nobody could tell a store that lost its last
// records from one that never had them.
func TestWhatIsAcknowledgedIsAnchored(t *testing.T) {
	mem := memFS(t)
	var on atomic.Bool
	appended, early := make(chan journal.Pending, 1), make(chan bool, 1)
	s, err := Create(testDir, testOptions(syncing(mem, anchorName, &on, func() error {
		p := <-appended
		early <- p.Done()
		return nil
	})))
	require.NoError(t, err)
	on.Store(true)
	w := &writer{}
	p, err := s.Append(w.batch("a"))
	require.NoError(t, err)
	appended <- p
	require.NoError(t, p.Wait())
	anchored, err := readAnchor(mem.CrashClone(vfs.CrashCloneCfg{}), anchorPath)
	require.NoError(t, err)
	require.Equal(t, w.head, anchored.Head)
	require.False(t, <-early)
	on.Store(false)
	require.NoError(t, s.Close())
}

// syncing returns files that do something before they sync the one whose path ends so, as
// long as on is set, and fail where that does.
func syncing(files vfs.FS, path string, on *atomic.Bool, do func() error) vfs.FS {
	return errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if on.Load() && op.Kind == errorfs.OpFileSyncData && strings.HasSuffix(op.Path, path) {
			return do()
		}
		return nil
	}))
}

func TestFailureSticks(t *testing.T) {
	mem := memFS(t)
	var broken atomic.Bool
	s, err := Create(testDir, testOptions(syncing(mem, anchorName, &broken, func() error { return syscall.EIO })))
	require.NoError(t, err)
	w := &writer{}
	appendAll(t, s, w.batch("a"))
	broken.Store(true)
	p, err := s.Append(w.batch("b"))
	require.NoError(t, err)
	require.ErrorIs(t, p.Wait(), syscall.EIO)
	broken.Store(false)
	_, err = s.Append(w.batch("c"))
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorIs(t, s.Checkpoint(&journal.Image{}), syscall.EIO)
	require.NoError(t, s.Close())
	s = reopen(t, mem)
	require.Contains(t, []journal.Seq{1, 2}, s.Head().ID)
	require.NoError(t, s.Close())
}
