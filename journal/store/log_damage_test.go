package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/fault"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
)

// seen is all that a world tells of itself.
type seen struct {
	head      journal.Head
	records   []journal.Scanned
	image     string // the last; whatever it is, the records after it lead to the head
	part      string
	timelines [3][]journal.Seq
	roots     []string
	blobs     []string
	signed    []uint64
}

func look(s *Store, blobs []journal.Hash) (v seen, err error) {
	v.head = s.Head()
	for r, err := range s.Scan(0) {
		if err != nil {
			return v, err
		}
		v.records = append(v.records, r)
	}
	img, err := s.Image(journal.Last)
	if err != nil {
		return v, err
	}
	v.image = textOf(img)
	if img, err = s.Part(300, []string{"agent/0", "agent/long"}); err != nil {
		return v, err
	}
	v.part = textOf(img)
	for i := range v.timelines {
		for id, err := range s.CellRecords(fmt.Sprint("agent/", i), 0) {
			if err != nil {
				return v, err
			}
			v.timelines[i] = append(v.timelines[i], id)
		}
	}
	for _, at := range []journal.Seq{1, 255, 256, 300, 513, v.head.ID} {
		tree, err := s.TreeAt(at)
		if err != nil {
			return v, err
		}
		v.roots = append(v.roots, tree.Root().String())
	}
	for _, h := range blobs {
		content, err := s.Blob(h)
		if err != nil {
			return v, err
		}
		v.blobs = append(v.blobs, string(content))
	}
	for c, err := range s.Checkpoints(0, journal.Last) {
		if err != nil {
			return v, err
		}
		v.signed = append(v.signed, c.Size)
	}
	return v, nil
}

func textOf(img *journal.Image) string { return fmt.Sprintf("%+v", inOrder(img)) }

// aSharedWorld returns a copy as a killed process leaves it, with tables and a log, all that its
// world has to tell, and its images.
func aSharedWorld(t *testing.T) (mem *vfs.MemFS, boot string, blobs []journal.Hash, want seen, images []string) {
	t.Helper()
	mem = memFS(t)
	boot = fmt.Sprintf("%p", mem)
	s := create(t, mem)
	w := &writer{}
	for i := range 6 {
		b := journal.Batch{After: w.head, Head: w.head}
		for j := range 149 {
			w.add(&b, fmt.Sprint("agent/", (i+j)%4))
		}
		w.add(&b, prose(uint64(i), 200+i*2500))
		blobs = append(blobs, b.Blobs[0].Hash)
		appendAll(t, s, b)
		img := &journal.Image{
			Head: w.head, Core: []byte(fmt.Sprint("core", i)), Intents: []journal.IntentVersion{{Key: journal.Hash{byte(i)}, Bytes: []byte("entry")}},
			Cells: []journal.CellVersion{{Cell: "agent/" + fmt.Sprint(i%2), Bytes: []byte(fmt.Sprint("state", i))}, {Cell: "agent/long", Bytes: []byte(prose(99, 9000+i))}},
		}
		for kept := range i {
			img.Keep = append(img.Keep, journal.Seq(150*(kept+1)))
		}
		require.NoError(t, s.Checkpoint(img))
		whole, err := s.Image(w.head.ID)
		require.NoError(t, err)
		images = append(images, textOf(whole))
		if i == 3 {
			require.NoError(t, s.PutCheckpoint(noteOf(t, 300)))
			require.NoError(t, s.Close())
			s = reopen(t, mem)
		}
	}
	appendAll(t, s, w.batch("agent/1", "agent/2"))
	want, err := look(s, blobs)
	require.NoError(t, err)
	killed := clone(mem)
	require.NoError(t, s.Close())
	return killed, boot, blobs, want, images
}

// spoil damages some file of a copy, or removes it, and says what it did.
func spoil(t *testing.T, files *vfs.MemFS, rng *rand.Rand) string {
	t.Helper()
	paths := append(filesOf(t, files, testDir+"/"+storeName), anchorPath, testDir+"/"+markName, testDir+"/"+walsName)
	path := paths[rng.IntN(len(paths))]
	data := readFile(t, files, path)
	at := 0
	if len(data) > 0 {
		at = rng.IntN(len(data))
	}
	what := rng.IntN(12)
	switch {
	case what == 0 && path != testDir+"/"+markName: // without a mark it is a world of its own
		require.NoError(t, files.Remove(path))
	case what == 1:
		data = data[:at]
	case what == 2:
		clear(data[at:min(len(data), at+200)])
	case len(data) > 0:
		data[at] ^= byte(1 << rng.IntN(8))
	}
	if what > 0 {
		f, err := files.Create(path, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.Write(data)
		require.NoError(t, errors.Join(err, f.Close()))
	}
	return fmt.Sprintf("%s: %d at %d", path, what, at)
}

// TestDamagedCopyIsTheSameWorld damages the copy at PLACES places. What is read is right or refused,
// and whoever opens the world again after that has all of it.
func TestDamagedCopyIsTheSameWorld(t *testing.T) {
	onLog(t)
	killed, boot, blobs, want, images := aSharedWorld(t)
	backup := shared.Backup()
	places, seed := 200/int(fault.Stride(5)), uint64(1)
	if n, err := strconv.Atoi(os.Getenv("PLACES")); err == nil {
		places = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	healed, anew := 0, 0
	for place := range places {
		rng := rand.New(rand.NewPCG(seed, uint64(place)))
		files := clone(killed)
		what := spoil(t, files, rng)
		shared = &logtest.Server{}
		shared.Restore(backup)
		for try := 0; ; try++ {
			require.Less(t, try, 3, "place %d, %s: it is not made anew", place, what)
			got, ended := openAndLook(files, boot, blobs)
			if ended == nil {
				require.True(t, slices.Contains(images, got.image), "place %d, %s: the last image", place, what)
				requireSeen(t, want, got, fmt.Sprintf("place %d, %s", place, what))
				if try == 0 {
					healed++
				} else {
					anew++
				}
				break
			}
			require.True(t, damages(ended), "place %d, %s: %v", place, what, ended)
		}
	}
	t.Logf("%d places: the world as it was at once %d times, and opened again %d times", places, healed, anew)
}

// damages reports whether an error is of a damaged copy.
func damages(err error) bool {
	damage := (*DamageError)(nil)
	return errors.As(err, &damage) || pebble.IsCorruptionError(err)
}

func openAndLook(files *vfs.MemFS, boot string, blobs []journal.Hash) (got seen, ended error) {
	ended = under(files, func(errorfs.Op) error { return nil }, func(opts Options) error {
		opts.boot = boot
		s, err := Open(testDir, opts)
		if err != nil {
			return err
		}
		got, err = look(s, blobs)
		return errors.Join(err, s.Close())
	})
	return got, ended
}

func requireSeen(t *testing.T, want, got seen, what string) {
	t.Helper()
	require.Equal(t, want.head, got.head, what)
	require.Len(t, got.records, len(want.records), what)
	for i := range want.records {
		require.True(t, bytes.Equal(want.records[i].Bytes, got.records[i].Bytes) && want.records[i].Link == got.records[i].Link, "%s: record %d", what, i+1)
	}
	require.Equal(t, want.part, got.part, what)
	require.Equal(t, want.timelines, got.timelines, what)
	require.True(t, slices.Equal(want.roots, got.roots), what)
	require.True(t, slices.Equal(want.blobs, got.blobs), what)
	require.Equal(t, want.signed, got.signed, what)
}

// TestALogOfTheCopyThatIsGoneIsMissed, whichever it is: what follows it would be opened with a gap.
func TestALogOfTheCopyThatIsGoneIsMissed(t *testing.T) {
	onLog(t)
	missed := 0
	for range 8 {
		killed, boot, blobs, want, images := aSharedWorld(t)
		backup := shared.Backup()
		for _, path := range filesOf(t, killed, testDir+"/"+storeName) {
			if !strings.HasSuffix(path, ".log") {
				continue
			}
			files := clone(killed)
			require.NoError(t, files.Remove(path))
			shared = &logtest.Server{}
			shared.Restore(backup)
			got, ended := openAndLook(files, boot, blobs)
			require.NoError(t, ended, path)
			require.True(t, slices.Contains(images, got.image), "%s: the last image", path)
			requireSeen(t, want, got, path)
			missed++
		}
	}
	require.Greater(t, missed, 8, "there was never more than one")
}

// TestAFullDiskOfACopyEndsItsWorldAlone: it is given up, and others of the process go on. What the
// log had acknowledged is there when there is room again.
func TestAFullDiskOfACopyEndsItsWorldAlone(t *testing.T) {
	for n := int64(1); n < 40; n += 3 {
		mem, server := memFS(t), &logtest.Server{}
		var full atomic.Bool
		var left atomic.Int64
		left.Store(n)
		files := fault.Disk(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			needsRoom := op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileWriteAt
			if full.Load() && needsRoom && left.Add(-1) < 0 {
				return &vfsError{op, syscall.ENOSPC}
			}
			return nil
		}))
		opts := func() Options {
			o := sharedOptions(files, server.Log())
			o.boot = "this"
			return o
		}
		s, err := Create(testDir, opts())
		require.NoError(t, err)
		other, err := Create("w/other", sharedOptions(mem, (&logtest.Server{}).Log()))
		require.NoError(t, err)
		w, beside := &writer{}, &writer{}
		full.Store(true)
		acked := w.head
		for err == nil {
			acked = w.head
			var p journal.Pending
			if p, err = s.Append(w.batch(strings.Repeat("b", 1<<10))); err == nil {
				err = p.Wait()
			}
			if w.head.ID%20 == 0 {
				_ = s.Checkpoint(&journal.Image{Head: w.head})
			}
			appendAll(t, other, beside.batch("c"))
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, "free space on "+testDir)
		_ = s.Close() // which may say so again
		_, free := server.Wake()
		require.True(t, free, "it is given up")
		if _, err := Open(testDir, opts()); err != nil { // nothing was freed
			require.ErrorIs(t, err, syscall.ENOSPC)
		}
		appendAll(t, other, beside.batch("c"))
		require.NoError(t, other.Close())
		full.Store(false)
		s, err = Open(testDir, opts())
		require.NoError(t, err)
		require.GreaterOrEqual(t, s.Head().ID, acked.ID)
		require.Len(t, scanAll(t, s, 0), int(s.Head().ID))
		require.Empty(t, damageOf(s))
		require.NoError(t, s.Close())
	}
}
