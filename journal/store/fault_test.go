package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
)

// standing is where a world is.
type standing struct {
	status    world.Status
	state     journal.Hash
	snapshots []snapshot.Snapshot
}

func (a *actors) stands() standing {
	return standing{a.Status(), a.StateRoot(), a.Snapshots()}
}

// undisturbed is a story that nothing disturbed: where the world is before each
// chapter and after the last, what is on disk before each, and the heads of the
// batches of each.
type undisturbed struct {
	before []standing
	files  []*vfs.MemFS
	heads  [][]journal.Head
}

func tellUndisturbed(t *testing.T) *undisturbed {
	t.Helper()
	mem, to := memFS(t), new(told)
	u := new(undisturbed)
	open := func() *actors {
		a, err := begin(doersOptions(mem), to, false)
		require.NoError(t, err)
		u.before = append(u.before, a.stands())
		return a
	}
	a := open()
	for _, c := range chapters() {
		require.NoError(t, a.end())
		u.files = append(u.files, clone(mem))
		a = open()
		require.Equal(t, u.before[len(u.before)-2], u.before[len(u.before)-1], "opening changes nothing")
		u.before = u.before[:len(u.before)-1]
		to.heads = nil
		require.NoError(t, c.tell(t.Context(), a), c.name)
		require.True(t, c.some || len(to.heads) == 1, c.name)
		u.before, u.heads = append(u.before, a.stands()), append(u.heads, to.heads)
	}
	require.NoError(t, a.end())
	return u
}

// manner is how a story is told.
type manner struct {
	reopening bool // a process for each chapter, instead of one for all
	late      bool // images lag behind the records after them
	every     int  // crashes at one in so many writes are looked at
}

// scene is what the disk may hold after a crash in a chapter.
type scene struct {
	files   *vfs.MemFS
	chapter int
	acked   journal.Seq
}

// scenes tells the story and returns what crashes at its writes may leave.
func (u *undisturbed) scenes(t *testing.T, how manner, rng *rand.Rand) []scene {
	t.Helper()
	mem, to := memFS(t), new(told)
	var mu sync.Mutex
	var scenes []scene
	at := -1
	files := beforeWrites(mem, &mu, func() {
		if at < 0 || at == len(u.heads) {
			return
		}
		every := how.every
		if chapters()[at].some {
			every *= 4 // of running, other tests tell
		}
		if rng.IntN(every) > 0 {
			return
		}
		// Asked first: what is acknowledged now is in the clone.
		s := scene{chapter: at, acked: journal.Seq(to.acked.Load())}
		s.files = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * rng.IntN(3), RNG: rng})
		scenes = append(scenes, s)
	})
	turn := func(page int) {
		mu.Lock()
		defer mu.Unlock()
		at = page
	}
	opts := doersOptions(files)
	a, err := begin(opts, to, how.late)
	require.NoError(t, err)
	for i, c := range chapters() {
		turn(i)
		if how.reopening {
			require.NoError(t, a.end())
			a, err = begin(opts, to, how.late)
			require.NoError(t, err)
		}
		require.NoError(t, c.tell(t.Context(), a), c.name)
		if !how.late {
			a.testJournal.settleImages()
		}
	}
	require.Equal(t, u.before[len(u.heads)], a.stands())
	turn(len(u.heads))
	require.NoError(t, a.end())
	return scenes
}

// survives opens what a crash has left. It is the world before the chapter or
// after it, or after some of its batches where it has several; and going on from
// there, it becomes the world that was not disturbed.
func (u *undisturbed) survives(t *testing.T, s scene) {
	t.Helper()
	found := clone(s.files)
	a, err := begin(doersOptions(s.files), new(told), false)
	require.NoError(t, err)
	head, now := a.testJournal.Head(), a.stands()
	require.GreaterOrEqual(t, head.ID, s.acked)
	before, after := u.before[s.chapter], u.before[s.chapter+1]
	next := s.chapter
	switch head {
	case before.status.Head:
		require.Equal(t, before, now)
	case after.status.Head:
		require.Equal(t, after, now)
		next++
	default:
		require.Contains(t, u.heads[s.chapter], head)
	}
	replayed, err := world.Replay(t.Context(), a.testJournal.Store, a.replays())
	require.NoError(t, err)
	require.Equal(t, world.Replayed{Head: now.status.Head, StateRoot: now.state}, *replayed)
	a.requireImages(t)
	for _, to := range now.snapshots {
		rollsBack(t, clone(found), to)
	}
	for _, c := range chapters()[next:] {
		require.NoError(t, c.tell(t.Context(), a), c.name)
	}
	require.Equal(t, u.before[len(u.heads)], a.stands())
	require.NoError(t, a.Checkpoint())
	a.requireImages(t)
	a.requireNoOthers(t)
	require.Empty(t, damageOf(a.testJournal.Store))
	require.NoError(t, a.end())
}

func (a *actors) replays() world.ReplayConfig {
	cfg := doersConfig(a.testJournal)
	return world.ReplayConfig{Keys: cfg.Keys, Registry: cfg.Registry}
}

// requireImages checks that each snapshot of the catalog has its image, and that
// this with the records after it gives the world.
func (a *actors) requireImages(t *testing.T) {
	t.Helper()
	a.testJournal.settleImages()
	cells := []string{"doer/a", "doer/b", "doer/c", "doer/d", "doer/e", "doer/f", "doer/late"} // some only in other histories
	for _, s := range a.Snapshots() {
		img, err := a.testJournal.Part(journal.Seq(s.Record), cells)
		require.NoError(t, err, s.Name)
		require.GreaterOrEqual(t, len(img.Cells), int(s.Cells), "%s has the cells, and those that a rollback has unmade", s.Name)
		cfg := a.replays()
		cfg.From = journal.Seq(s.Record)
		replayed, err := world.Replay(t.Context(), a.testJournal.Store, cfg)
		require.NoError(t, err, s.Name)
		require.Equal(t, a.StateRoot(), replayed.StateRoot, s.Name)
	}
}

// requireNoOthers checks that the store has no other images than those of the
// catalog, of when the manifest in force was applied and of now, and no version that
// these do not need.
func (a *actors) requireNoOthers(t *testing.T) {
	t.Helper()
	v, err := a.testJournal.openView()
	require.NoError(t, err)
	defer v.close()
	heads, err := v.heads()
	require.NoError(t, err)
	var want []journal.Seq
	for _, s := range a.Snapshots() {
		want = append(want, journal.Seq(s.Record))
	}
	if _, f := a.Proposals(); f.Since > 1 {
		want = append(want, journal.Seq(f.Since))
	}
	want = append(want, a.Head().ID)
	slices.Sort(want)
	require.Equal(t, slices.Compact(want), heads)
	requireNothingUnneeded(t, a.testJournal.Store)
}

// rollsBack rolls a copy of a world back. That compares the state roots.
func rollsBack(t *testing.T, files *vfs.MemFS, to snapshot.Snapshot) {
	t.Helper()
	a, err := begin(doersOptions(files), new(told), false)
	require.NoError(t, err)
	_, _, err = a.Rollback(t.Context(), journal.RolledBack{Snapshot: to.Name, Ack: true, Actor: "ada", Reason: "a test"})
	require.NoError(t, err, to.Name)
	require.NoError(t, a.end())
}

func TestCrashInHistoryIsBeforeOrAfter(t *testing.T) {
	u := tellUndisturbed(t)
	for seed, how := range []manner{{every: 1}, {every: 1, late: true}, {every: 8, reopening: true}} {
		t.Run(fmt.Sprintf("%+v,seed=%d", how, seed), func(t *testing.T) {
			scenes := u.scenes(t, how, rand.New(rand.NewPCG(7, uint64(seed))))
			require.Greater(t, len(scenes), 30)
			stride := fault.Stride(13)
			first := fault.From(t, stride)
			for i, s := range scenes {
				if int64(i)%stride != first {
					continue
				}
				if !t.Run(fmt.Sprint(i, " ", chapters()[s.chapter].name), func(t *testing.T) { u.survives(t, s) }) {
					return
				}
			}
		})
	}
}

// tellUnder tells one chapter over a failing disk, up to its end.
func (u *undisturbed) tellUnder(mem *vfs.MemFS, at int, to *told, failing errorfs.InjectorFunc) error {
	var armed atomic.Bool
	a, err := begin(doersOptions(fault.Disk(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !armed.Load() {
			return nil
		}
		return failing(op)
	}))), to, false)
	if err != nil {
		return err
	}
	armed.Store(true)
	return errors.Join(chapters()[at].tell(context.Background(), a), a.end())
}

// A write that fails is an error, and the world that is opened then is before the
// change or after it.
func TestFailingWriteInHistoryIsBeforeOrAfter(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	u := tellUndisturbed(t)
	kinds := map[bool]int{}
	for at, c := range chapters() {
		if c.some {
			continue
		}
		for n, injected := int64(1), true; injected; n += 1 + rng.Int64N(12*fault.Stride(11)) {
			all := rng.IntN(2) == 0
			mem, to := clone(u.files[at]), new(told)
			var count atomic.Int64
			got := u.tellUnder(mem, at, to, func(op errorfs.Op) error {
				if i := count.Add(1); i == n || all && i > n {
					return &vfsError{op, syscall.EIO}
				}
				return nil
			})
			injected = count.Load() >= n
			if got == nil {
				require.Equal(t, u.before[at+1].status.Head.ID, journal.Seq(to.acked.Load()))
			}
			kinds[got == nil]++
			s := scene{files: mem.CrashClone(vfs.CrashCloneCfg{}), chapter: at, acked: journal.Seq(to.acked.Load())}
			name := fmt.Sprintf("%s, operation %d, all after=%v, seed=%d", c.name, n, all, seed)
			if !t.Run(name, func(t *testing.T) { u.survives(t, s) }) {
				t.Fatal("ended with", got)
			}
		}
	}
	require.Positive(t, kinds[true])
	require.Positive(t, kinds[false])
}

// manyCells checkpoints so many cells that leaving them out of a copy fills a log.
func manyCells(t *testing.T, mem *vfs.MemFS, head journal.Head) {
	t.Helper()
	img := &journal.Image{Head: head, Core: []byte("core")}
	for i := range 600 {
		img.Cells = append(img.Cells, journal.CellVersion{Cell: fmt.Sprintf("agent/%04d", i), Bytes: []byte("state")})
	}
	s := reopen(t, mem)
	require.NoError(t, s.Checkpoint(img))
	require.NoError(t, s.Close())
}

// TestFailingDiskEndsEveryVerbAndLosesNothing fails operations while records are
// archived, garbage is collected and copies are made, alone and with all after them. It
// ends as an error: nobody waits for ever, and the process goes on.
func TestFailingDiskEndsEveryVerbAndLosesNothing(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	mem := memFS(t)
	w, all := aPast(t, mem, 300)
	manyCells(t, mem, w.head)
	earlier := func(s *Store, opts Options) error {
		opts.AnchorKey = []byte("another")
		c, _, err := s.CopyTo(copyDir, 18, opts)
		if err != nil {
			return err
		}
		return c.Close()
	}
	for _, verb := range []struct {
		name string
		do   func(*Store, Options) error
	}{
		{"archive", func(s *Store, _ Options) error { _, err := s.Archive(17, "w/a"); return err }},
		{"gc", func(s *Store, _ Options) error { _, err := s.Collect(); return err }},
		{"copy", earlier},
	} {
		failed := 0
		for n, injected := int64(1), true; injected; n += 1 + rng.Int64N(8*fault.Stride(7)) {
			after := rng.IntN(2) == 0
			files := clone(mem)
			var count atomic.Int64
			got := under(files, func(op errorfs.Op) error {
				if i := count.Add(1); i == n || after && i > n {
					return &vfsError{op, syscall.EIO}
				}
				return nil
			}, func(opts Options) error {
				s, err := Open(testDir, opts)
				if err != nil {
					return err
				}
				return errors.Join(verb.do(s, opts), s.Close())
			})
			injected = count.Load() >= n
			if got != nil {
				require.ErrorIs(t, got, syscall.EIO)
				failed++
			}
			name := fmt.Sprintf("%s,operation=%d,all after=%v,seed=%d", verb.name, n, after, seed)
			if !t.Run(name, func(t *testing.T) {
				s := reopen(t, files.CrashClone(vfs.CrashCloneCfg{}))
				requireJournal(t, s, all)
				require.NoError(t, s.Close())
			}) {
				t.Fatal("ended with", got)
			}
		}
		require.Positive(t, failed)
	}
}

// TestWhatComesAfterAFailureDoesNotReachTheDisk: Pebble goes on in memory, over what is as a process leaves
// it that ended in that moment.
func TestWhatComesAfterAFailureDoesNotReachTheDisk(t *testing.T) {
	mem := memFS(t)
	var armed, broken atomic.Bool
	var writes atomic.Int64
	s, err := Create(testDir, testOptions(fault.Disk(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileClose || op.Kind == errorfs.OpFileReadAt || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		if broken.Load() && !strings.HasSuffix(op.Path, anchorName) { // which is written while the log is
			writes.Add(1)
		}
		if armed.Load() && strings.HasSuffix(op.Path, walSuffix) && !broken.Swap(true) {
			return &vfsError{op, syscall.EIO}
		}
		return nil
	}))))
	require.NoError(t, err)
	w := &writer{}
	appendAll(t, s, w.batch("a"))
	armed.Store(true)
	p, err := s.Append(w.batch("b"))
	require.NoError(t, err)
	require.ErrorIs(t, p.Wait(), syscall.EIO)
	require.NoError(t, s.db.Set([]byte("not there"), nil, pebble.Sync))
	require.NoError(t, s.db.Flush())
	_ = s.Close() // it may say so again
	require.Zero(t, writes.Load())
	require.NoError(t, reopen(t, mem).Close())
}
