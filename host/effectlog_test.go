package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

const storePath = "w/effects"

func storeFS(t testing.TB) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewCrashableMem()
	require.NoError(t, mem.MkdirAll("w", 0o700))
	root, err := mem.OpenDir("/")
	require.NoError(t, err)
	require.NoError(t, root.Sync())
	return mem
}

// told collects what a log says.
type told struct {
	mu     sync.Mutex
	news   *sync.Cond
	groups [][]entry // of results
	failed []error
}

func (s *told) results() map[attempt][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[attempt][]byte)
	for _, g := range s.groups {
		for _, e := range g {
			out[e.attempt] = e.receipt
		}
	}
	return out
}

// until waits until n results are durable, or the log has failed.
func (s *told) until(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := func() (n int) {
		for _, g := range s.groups {
			n += len(g)
		}
		return n
	}
	for count() < n && len(s.failed) == 0 {
		s.news.Wait()
	}
}

func run(l *effectLog) *told {
	s := new(told)
	s.news = sync.NewCond(&s.mu)
	l.start(func(group []entry) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.groups = append(s.groups, slices.DeleteFunc(slices.Clone(group), func(e entry) bool { return e.receipt == nil }))
		s.news.Broadcast()
	}, func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = append(s.failed, err)
		s.news.Broadcast()
	})
	return s
}

func result(n int) entry {
	h := canon.Sum(binary.BigEndian.AppendUint64(nil, uint64(n)))
	return entry{attempt: attempt{receipt.Key{Hash: h}, uint64(n%3 + 1)}, receipt: bytes.Repeat([]byte{byte(n)}, 1+n*37%90), sure: true}
}

func results(ns ...int) map[attempt][]byte {
	out := make(map[attempt][]byte)
	for _, n := range ns {
		e := result(n)
		out[e.attempt] = e.receipt
	}
	return out
}

// reopen returns what a store holds.
func reopen(t testing.TB, files vfs.FS) map[attempt][]byte {
	t.Helper()
	l, err := openEffectLog(files, storePath, "town")
	require.NoError(t, err)
	s := run(l)
	kept := l.kept()
	require.NoError(t, l.close())
	require.Empty(t, s.failed)
	return kept
}

func content(t testing.TB, files vfs.FS) []byte {
	t.Helper()
	b, err := readAll(files, storePath)
	require.NoError(t, err)
	return b
}

func overwrite(t testing.TB, mem *vfs.MemFS, b []byte) {
	t.Helper()
	f, err := mem.Create(storePath, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(slices.Clone(b)) // a vfs.File may change it, and does under -race
	require.NoError(t, errors.Join(err, f.Sync(), f.Close()))
	dir, err := mem.OpenDir("w")
	require.NoError(t, err)
	require.NoError(t, dir.Sync())
}

func crash(mem *vfs.MemFS) *vfs.MemFS { return mem.CrashClone(vfs.CrashCloneCfg{}) }

// threeGroups writes results 1, 2 and 3 to 5, each group at its own sync, and
// returns the file and where each group ends.
func threeGroups(t testing.TB) (file []byte, ends []int) {
	t.Helper()
	mem := storeFS(t)
	l, err := openEffectLog(mem, storePath, "town")
	require.NoError(t, err)
	s := run(l)
	n := 0
	for _, group := range [][]int{{1}, {2}, {3, 4, 5}} {
		l.mu.Lock() // so that the writer sees all of them at once
		for _, i := range group {
			l.waiting = append(l.waiting, change{entry: result(i)})
			l.urgent++
			n++
		}
		l.work.Signal()
		l.mu.Unlock()
		s.until(n)
		file = content(t, mem)
		_, end, err := parseStore(file, "town")
		require.NoError(t, err)
		file = file[:end] // zeros follow
		ends = append(ends, end)
	}
	require.Len(t, s.groups, 3)
	require.NoError(t, l.close())
	return file, ends
}

func TestStoreKeepsWhatWasSyncedAndNotForgotten(t *testing.T) {
	mem := storeFS(t)
	l, err := openEffectLog(mem, storePath, "town")
	require.NoError(t, err)
	s := run(l)
	for n := range 50 {
		l.put(result(n))
	}
	s.until(50)
	require.Equal(t, s.results(), reopen(t, crash(mem)), "what was acknowledged survives")
	var kept []int
	for n := range 50 {
		if n%3 == 0 {
			kept = append(kept, n)
		} else {
			l.forget(result(n).attempt)
			l.forget(result(n).attempt)
		}
	}
	require.Equal(t, results(kept...), l.kept())
	l.put(result(50))
	s.until(51)
	require.Equal(t, results(append(kept, 50)...), reopen(t, crash(mem)), "the next group tells the file")
	require.NoError(t, l.close())
	require.Equal(t, results(append(kept, 50)...), reopen(t, crash(mem)))
}

func TestStoreIsEmptyWhenAllIsForgotten(t *testing.T) {
	mem := storeFS(t)
	require.Empty(t, reopen(t, mem))
	empty := content(t, mem)
	l, err := openEffectLog(mem, storePath, "town")
	require.NoError(t, err)
	s := run(l)
	l.put(result(1))
	s.until(1)
	l.forget(result(1).attempt)
	require.NoError(t, l.close())
	require.Equal(t, empty, content(t, crash(mem)))
}

func TestWhatNobodyRecoversIsDroppedWithTheFirstAttempt(t *testing.T) {
	mem := storeFS(t)
	file, _ := threeGroups(t)
	overwrite(t, mem, file)
	l, err := openEffectLog(mem, storePath, "town")
	require.NoError(t, err)
	s := run(l)
	require.Equal(t, left{receipt: result(3).receipt}, l.recover(result(3).attempt))
	require.Equal(t, left{}, l.recover(result(9).attempt), "a file cannot tell what was not begun")
	l.dropStale()
	require.Equal(t, results(3), l.kept())
	l.put(result(6))
	s.until(1)
	l.dropStale()
	require.Equal(t, results(3, 6), reopen(t, crash(mem)))
	require.NoError(t, l.close())
}

func TestTornTailIsCutAtEveryByte(t *testing.T) {
	file, ends := threeGroups(t)
	for cut := ends[1]; cut <= ends[2]; cut++ {
		for _, rest := range [][]byte{nil, make([]byte, 3), make([]byte, 5000)} { // a file can grow before its data are there
			mem := storeFS(t)
			overwrite(t, mem, append(slices.Clone(file[:cut]), rest...))
			want := results(1, 2)
			if cut == ends[2] {
				want = results(1, 2, 3, 4, 5)
			}
			require.Equal(t, want, reopen(t, mem), "cut at %d", cut)
			require.Equal(t, want, reopen(t, crash(mem)), "and is gone")
			_, end, err := parseStore(content(t, mem), "town")
			require.NoError(t, err)
			require.Len(t, content(t, mem), end)
		}
	}
}

func TestDamageBeforeTheTailNamesItsPlace(t *testing.T) {
	file, ends := threeGroups(t)
	begin := frameHeader + len(storeMagic) + len("town")
	for at := range file {
		mem := storeFS(t)
		bad := slices.Clone(file)
		bad[at] ^= 0x10
		overwrite(t, mem, bad)
		if at >= ends[1] {
			require.Equal(t, results(1, 2), reopen(t, mem), "the last group may be torn")
			continue
		}
		_, err := openEffectLog(mem, storePath, "town")
		var damage *DamageError
		require.ErrorAs(t, err, &damage, "byte %d", at)
		require.Equal(t, storePath, damage.Path)
		want := 0
		switch {
		case at >= ends[0]:
			want = ends[0]
		case at >= begin:
			want = begin
		}
		require.Equal(t, int64(want), damage.Offset, "byte %d", at)
		require.Equal(t, bad, content(t, mem), "nothing was written")
	}
}

func TestStoreOfAnotherWorldIsRefused(t *testing.T) {
	mem := storeFS(t)
	require.Empty(t, reopen(t, mem))
	_, err := openEffectLog(mem, storePath, "city")
	require.Error(t, err)
	overwrite(t, mem, nil)
	_, err = openEffectLog(mem, storePath, "town")
	var damage *DamageError
	require.ErrorAs(t, err, &damage, "it is never made empty")
}

func TestLargeStoreThatIsMostlyDeadIsWrittenAnew(t *testing.T) {
	mem := storeFS(t)
	l, err := openEffectLog(mem, storePath, "town")
	require.NoError(t, err)
	l.large = 2000
	s := run(l)
	for n := range 300 {
		l.put(result(n))
		s.until(n + 1)
		if n%50 != 0 {
			l.forget(result(n).attempt)
		}
	}
	require.NoError(t, l.close())
	require.Less(t, len(content(t, mem)), maxAhead+3000)
	require.Equal(t, results(0, 50, 100, 150, 200, 250), reopen(t, crash(mem)))
}

// TestStoreThatIsWrittenAnewIsDurableAtOnce: whatever was acknowledged is there if the
// power goes before the next group is synced.
func TestStoreThatIsWrittenAnewIsDurableAtOnce(t *testing.T) {
	mem := storeFS(t)
	var crashed []*vfs.MemFS // before the sync of each group
	l, err := openEffectLog(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData {
			crashed = append(crashed, crash(mem))
		}
		return nil
	})), storePath, "town")
	require.NoError(t, err)
	l.large = 500
	s := run(l)
	for n := range 40 {
		l.put(result(n))
		s.until(n + 1)
		if n%2 == 0 {
			l.forget(result(n).attempt)
		}
	}
	require.NoError(t, l.close())
	for n, files := range crashed[:40] {
		kept := reopen(t, files)
		for m := 1; m < n; m += 2 {
			require.Equal(t, result(m).receipt, kept[result(m).attempt])
		}
	}
}

// TestNothingIsAcknowledgedThatTheDiskDidNotTake fails each operation in turn,
// once or for good, on a store that is written anew on the way.
func TestNothingIsAcknowledgedThatTheDiskDidNotTake(t *testing.T) {
	for _, forGood := range []bool{false, true} {
		kinds := make(map[errorfs.OpKind]bool)
		for n := 1; ; n++ {
			mem := storeFS(t)
			var mu sync.Mutex
			count, injected := 0, false
			files := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				mu.Lock()
				defer mu.Unlock()
				if count++; count == n || forGood && count > n {
					kinds[op.Kind], injected = true, true
					return syscall.EIO
				}
				return nil
			}))
			acked, err := story(files)
			if !injected {
				require.NoError(t, err)
				break
			}
			require.ErrorIs(t, err, syscall.EIO, "operation %d", n)
			kept := map[attempt][]byte{}
			if _, missing := crash(mem).Stat(storePath); missing == nil {
				kept = reopen(t, crash(mem))
			}
			for at, data := range acked {
				require.Equal(t, data, kept[at], "operation %d", n)
			}
		}
		for _, kind := range []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSyncData, errorfs.OpFileSync, errorfs.OpRename, errorfs.OpCreate} {
			require.True(t, kinds[kind], "no operation of kind %d failed", kind)
		}
	}
}

// TestEffectStoreWaitsForADescriptor has none the first time that a file is opened to be
// written, each time that the store is written anew.
func TestEffectStoreWaitsForADescriptor(t *testing.T) {
	mem := storeFS(t)
	var mu sync.Mutex
	tried := map[errorfs.OpKind]int{errorfs.OpOpen: 1} // but where it is opened to be read
	files := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpOpenDir, errorfs.OpOpen:
		default:
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if tried[op.Kind]++; tried[op.Kind]%2 == 1 {
			return syscall.EMFILE
		}
		return nil
	}))
	acked, err := story(files)
	require.NoError(t, err)
	require.NotEmpty(t, acked)
	require.Greater(t, tried[errorfs.OpCreate], 2)
	require.Equal(t, acked, reopen(t, crash(mem)))
}

// story writes results and forgets the even ones, and returns those that were
// acknowledged and not forgotten.
func story(files vfs.FS) (acked map[attempt][]byte, err error) {
	l, err := openEffectLog(files, storePath, "town")
	if err != nil {
		return nil, err
	}
	l.large = 500
	s := run(l)
	for n := range 20 {
		l.put(result(n))
		s.until(n + 1)
		if n%2 == 0 {
			l.forget(result(n).attempt)
		}
	}
	before := len(s.results())
	err = l.close()
	l.put(result(99))
	if len(s.failed) > 1 || len(s.results()) != before {
		return nil, fmt.Errorf("after a failure nothing may be said: %v", s.failed)
	}
	acked = s.results()
	for n := range 20 {
		if n%2 == 0 {
			delete(acked, result(n).attempt)
		}
	}
	return acked, err
}

func TestAFullGroupIsSplit(t *testing.T) {
	mem := storeFS(t)
	l, err := openEffectLog(mem, storePath, "town")
	require.NoError(t, err)
	var all []int
	for n := range 5 { // more than two groups hold, waiting when the writer begins
		e := result(n)
		e.receipt = bytes.Repeat([]byte{byte(n + 1)}, frameBodyLimit/2+1)
		l.put(e)
		all = append(all, n)
	}
	s := run(l)
	s.until(5)
	require.Len(t, s.groups, 3)
	require.Len(t, reopen(t, crash(mem)), len(all))
	require.NoError(t, l.close())
}

func FuzzParseStore(f *testing.F) {
	file, ends := threeGroups(f)
	f.Add(file)
	f.Add(file[:ends[1]])
	f.Add(append(slices.Clone(file), 0, 0, 0))
	f.Fuzz(func(t *testing.T, file []byte) {
		kept, end, err := parseStore(file, "town")
		if err != nil {
			return
		}
		again, same, err := parseStore(file[:end], "town")
		require.NoError(t, err)
		require.Equal(t, end, same)
		require.Equal(t, kept, again)
	})
}

// BenchmarkEffectLog has many effects wait for their result at once, each for
// its own.
func BenchmarkEffectLog(b *testing.B) {
	for _, waiting := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			l, err := openEffectLog(vfs.Default, b.TempDir()+"/effects", "town")
			require.NoError(b, err)
			slots := make(chan struct{}, waiting)
			for range waiting {
				slots <- struct{}{}
			}
			l.start(func(group []entry) {
				for i := range group {
					if group[i].receipt != nil {
						l.forget(group[i].attempt)
						slots <- struct{}{}
					}
				}
			}, func(err error) { panic(err) })
			data := make([]byte, 450)
			b.ReportAllocs()
			for n := range b.N {
				<-slots
				e := entry{attempt: attempt{number: uint64(n)}, receipt: data}
				binary.BigEndian.PutUint64(e.key.Hash[:], uint64(n))
				l.put(e)
			}
			require.NoError(b, l.close())
			b.ReportMetric(float64(l.syncs.Load())/float64(b.N), "syncs/op")
			b.ReportMetric(float64(l.written.Load())/float64(b.N), "written-B/op")
		})
	}
}

// loose is a result that nobody relies on before the journal has it.
func loose(n int) entry {
	e := result(n)
	e.sure = false
	return e
}

// TestLooseResultsOutliveTheProcess: they are told as soon as they are written.
func TestLooseResultsOutliveTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storeFS(t)
		l, err := openEffectLog(mem, storePath, "town")
		require.NoError(t, err)
		s := run(l)
		before := l.syncs.Load()
		for n := range 3 {
			l.put(loose(n))
			s.until(n + 1)
			require.Equal(t, results(0, 1, 2)[result(n).attempt], reopen(t, clone(t, mem))[result(n).attempt])
			l.forget(result(n).attempt)
		}
		time.Sleep(2 * syncAfter) //nolint:forbidigo // of a clock that the test moves
		require.Equal(t, before, l.syncs.Load(), "the journal had them in time")
		require.NoError(t, l.close())
	})
}

// TestLooseResultsAreSyncedWhereTheJournalTarries: so they outlive the machine.
func TestLooseResultsAreSyncedWhereTheJournalTarries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storeFS(t)
		l, err := openEffectLog(mem, storePath, "town")
		require.NoError(t, err)
		s := run(l)
		for n := range 3 {
			l.put(loose(n))
			s.until(n + 1)
			require.NotContains(t, reopen(t, crash(mem)), result(n).attempt, "not yet")
			time.Sleep(2 * syncAfter) //nolint:forbidigo // of a clock that the test moves
			require.Contains(t, reopen(t, crash(mem)), result(n).attempt)
			l.forget(result(0).attempt)
		}
		l.put(loose(3))
		s.until(4)
		require.NoError(t, l.close())
		require.Equal(t, results(1, 2, 3), reopen(t, crash(mem)), "or where it is closed")
	})
}

// TestAnyLooseGroupMayBeTorn: of those since the last sync any may be lost, and the others
// are read. One that was durable when another was written is damage.
func TestAnyLooseGroupMayBeTorn(t *testing.T) {
	file := append(append(beginFrame(nil, 0), storeMagic...), "town"...)
	endFrame(file)
	var places []int
	group := func(n, durable int) {
		at := len(file)
		places = append(places, at)
		e := result(n)
		file = appendEntry(beginGroup(file, int64(at), int64(durable)), &e)
		endFrame(file[at:])
	}
	group(1, len(file))
	group(2, len(file))
	durable := len(file)
	for n := 3; n <= 5; n++ {
		group(n, durable)
	}
	for torn := range 1 << 5 {
		bad := slices.Clone(file)
		want, damaged := results(), int64(0)
		for i, at := range places {
			if torn>>i&1 == 0 {
				maps.Copy(want, results(i+1))
				continue
			}
			bad[at+frameHeader+3] ^= 1
		}
		for i, at := range places { // the next frame that is whole tells
			if torn>>i&1 == 1 && i < 2 && torn>>(i+1) != 1<<(4-i)-1 {
				damaged = int64(at)
				break
			}
		}
		kept, _, err := parseStore(bad, "town")
		if damaged == 0 {
			require.NoError(t, err, "%b", torn)
			require.Equal(t, want, kept, "%b", torn)
			continue
		}
		var damage *DamageError
		require.ErrorAs(t, err, &damage, "%b", torn)
		require.Equal(t, damaged, damage.Offset, "%b", torn)
	}
}

// clone returns the files as the next process finds them.
func clone(t *testing.T, mem *vfs.MemFS) *vfs.MemFS {
	t.Helper()
	next := storeFS(t)
	overwrite(t, next, content(t, mem))
	return next
}
