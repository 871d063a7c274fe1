package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/worldkernel/worldkernel/internal/fault"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// marker is long and random enough that compression leaves pieces of it as they
// are.
const marker = "fQ7zKp2LxV9mRt4WbN8sYc3HdJ6gUa1E"

// holding returns the files below a directory that hold a text.
func holding(t testing.TB, files vfs.FS, dir, text string) (found []string) {
	t.Helper()
	names, err := files.List(dir)
	require.NoError(t, err)
	for _, name := range names {
		path := files.PathJoin(dir, name)
		info, err := files.Stat(path)
		if errors.Is(err, os.ErrNotExist) { // Pebble has removed it meanwhile
			continue
		}
		require.NoError(t, err)
		if info.IsDir() {
			found = append(found, holding(t, files, path, text)...)
			continue
		}
		f, err := files.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		data, err := io.ReadAll(f)
		require.NoError(t, errors.Join(err, f.Close()))
		if bytes.Contains(data, []byte(text)) {
			found = append(found, path)
		}
	}
	return found
}

// redaction adds the record of a redaction.
func (w *writer) redaction(t testing.TB, blob journal.Hash) journal.Batch {
	t.Helper()
	payload, err := canon.Marshal(&journal.Redacted{Version: journal.V(1), Blob: blob, Actor: "ada", Reason: "asked for"})
	require.NoError(t, err)
	b := journal.Batch{After: w.head, Head: w.head}
	w.addOf(&b, journal.KindRedacted, payload)
	return b
}

func (w *writer) addOf(b *journal.Batch, kind journal.Kind, payload []byte) {
	e := canon.Envelope{ID: uint64(w.head.ID) + 1, Time: 7, Kind: string(kind), Payload: payload}
	record := canon.AppendEnvelope(nil, e)
	w.head = journal.Head{ID: journal.Seq(e.ID), Root: w.chain.Add(e.ID, e.Kind, record)}
	b.Records = append(b.Records, journal.Stored{ID: w.head.ID, Bytes: record, Root: w.head.Root})
	b.Head = w.head
}

func secretPayload(n int) string {
	return strings.Repeat(fmt.Sprint("agent/a @", marker, " "), 200) + fmt.Sprint(n)
}

// aSecret returns a world with a large payload among others, in several tables
// and logs, and that payload's hash.
func aSecret(t testing.TB, mem *vfs.MemFS, checkpoint bool) (*writer, journal.Hash) {
	t.Helper()
	s := create(t, mem)
	w := &writer{}
	for range 3 {
		appendAll(t, s, w.batch("agent/a", longPayload+fmt.Sprint(w.head.ID), strings.Repeat("agent/b ", 2000)+fmt.Sprint(w.head.ID)))
	}
	secret := w.batch(secretPayload(1))
	appendAll(t, s, secret, w.batch("agent/b"))
	if checkpoint {
		mail := []byte("mail " + marker)
		require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Core: mail, Cells: []journal.CellVersion{{Cell: "agent/a", Bytes: mail}}}))
		appendAll(t, s, w.batch("agent/c"))
		require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Core: []byte("core"), Cells: []journal.CellVersion{{Cell: "agent/a", Bytes: []byte("a")}}}))
	}
	require.NoError(t, s.Close())
	return w, secret.Blobs[0].Hash
}

// redactedIn redacts a payload in a session of its own, and returns the next one.
func redactedIn(t testing.TB, files vfs.FS, w *writer, blob journal.Hash) *Store {
	t.Helper()
	s := reopen(t, files)
	redactIn(t, s, w, blob)
	require.NoError(t, s.Close())
	return reopen(t, files)
}

func redactIn(t testing.TB, s *Store, w *writer, blob journal.Hash) {
	t.Helper()
	require.NoError(t, s.Redact(blob, func() error {
		appendAll(t, s, w.redaction(t, blob))
		return nil
	}))
}

func TestRedactedBytesAreInNoFile(t *testing.T) {
	mem := memFS(t)
	w, blob := aSecret(t, mem, true)
	require.NotEmpty(t, holding(t, mem, "w", marker), "the payload cannot be found even before")
	s := redactedIn(t, mem, w, blob)
	require.Empty(t, damageOf(s))
	_, err := s.Blob(blob)
	require.ErrorIs(t, err, journal.ErrRedacted)
	require.ErrorIs(t, err, journal.ErrNotFound)
	appendAll(t, s, w.batch("agent/c", strings.Repeat("agent/d ", 9000)))
	require.NoError(t, s.Close())
	require.Empty(t, holding(t, mem, "w", marker))
	s = reopen(t, mem)
	require.Equal(t, w.head, s.Head())
	var ids []journal.Seq
	for id, err := range s.CellRecords("agent/a", 0) {
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.Contains(t, ids, journal.Seq(10), "it was indexed before")
	require.NoError(t, s.Close())
}

// TestRedactedBytesAreInNoLead ends the session in which a short payload was appended and redacted by a crash: the anchor has it.
func TestRedactedBytesAreInNoLead(t *testing.T) {
	mem := memFS(t)
	s, w := create(t, mem), &writer{}
	b := w.batch("agent/a @" + marker + prose(1, 2_000))
	appendAll(t, s, b, w.batch("agent/b"))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head}))
	redactIn(t, s, w, b.Blobs[0].Hash)
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, s.Close())
	require.Contains(t, holding(t, crashed, "w", marker), anchorPath)
	s = reopen(t, crashed)
	require.Empty(t, holding(t, crashed, "w", marker))
	appendAll(t, s, w.batch("agent/c"))
	require.NoError(t, s.Close())
	require.NoError(t, reopen(t, crashed).Close())
}

// TestCopyInATableOfTheLastLevelGoes leaves there what a checkpoint, which reads at
// one moment, keeps Pebble from dropping.
func TestCopyInATableOfTheLastLevelGoes(t *testing.T) {
	mem := memFS(t)
	w, blob := aSecret(t, mem, true)
	db := raw(t, mem)
	old := cellVersionKey("agent/old", 3)
	require.NoError(t, db.Set(old, []byte(marker), nil))
	moment := db.NewSnapshot()
	require.NoError(t, db.Delete(old, nil))
	require.NoError(t, db.Flush())
	require.NoError(t, db.Compact(t.Context(), []byte{versionPrefix}, []byte{versionPrefix + 1}, false))
	require.NoError(t, moment.Close())
	require.NoError(t, db.Close())
	s := reopen(t, mem)
	redactIn(t, s, w, blob)
	require.NoError(t, s.Close())
	require.NoError(t, reopen(t, mem).Close())
	require.Empty(t, holding(t, mem, "w", marker))
}

func TestPayloadThatOpeningNeedsWaitsForItsImage(t *testing.T) {
	mem := memFS(t)
	w, blob := aSecret(t, mem, false)
	s := redactedIn(t, mem, w, blob)
	_, err := s.Blob(blob)
	require.NoError(t, err, "no image covers its record")
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Core: []byte("core")}))
	require.NoError(t, s.Close())
	s = reopen(t, mem)
	_, err = s.Blob(blob)
	require.ErrorIs(t, err, journal.ErrRedacted)
	require.NoError(t, s.Close())
	require.Empty(t, holding(t, mem, "w", marker))
}

func TestRedactionWithoutItsRecordIsDropped(t *testing.T) {
	mem := memFS(t)
	_, blob := aSecret(t, mem, true)
	refused := errors.New("refused")
	s := reopen(t, mem)
	require.ErrorIs(t, s.Redact(blob, func() error { return refused }), refused)
	require.NoError(t, s.Close())
	s = reopen(t, mem)
	_, err := s.Blob(blob)
	require.NoError(t, err)
	require.NoError(t, s.redacted(blob))
	require.NoError(t, s.Close())
}

func TestPayloadThatComesAgainStays(t *testing.T) {
	mem := memFS(t)
	w, blob := aSecret(t, mem, true)
	s := redactedIn(t, mem, w, blob)
	appendAll(t, s, w.batch(secretPayload(1)))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Core: []byte("core")}))
	require.NoError(t, s.Close())
	for range 2 {
		s = reopen(t, mem)
		_, err := s.Blob(blob)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
}

// crashes runs f on a file system and calls at with the disk as it would be after
// a crash before each of its writes.
func crashes(t *testing.T, mem *vfs.MemFS, f func(opts Options), at func(t *testing.T, files *vfs.MemFS)) {
	t.Helper()
	for seed, keep := range []int{0, 100, 50, 50} {
		files := clone(mem)
		var mu sync.Mutex
		var moments []*vfs.MemFS
		rng := rand.New(rand.NewPCG(7, uint64(seed)))
		f(testOptions(beforeWrites(files, &mu, func() {
			moments = append(moments, files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: rng}))
		})))
		moments = append(moments, files.CrashClone(vfs.CrashCloneCfg{}))
		require.Greater(t, len(moments), 20)
		stride := fault.Stride(11)
		first := fault.From(t, stride)
		for i, m := range moments {
			if int64(i)%stride != first && i != len(moments)-1 {
				continue
			}
			if !t.Run(fmt.Sprintf("unsynced=%d%%,seed=%d,write %d", keep, seed, i), func(t *testing.T) { at(t, m) }) {
				return
			}
		}
	}
}

func TestCrashLeavesAPayloadOrEndsItsRedaction(t *testing.T) {
	mem := memFS(t)
	before, blob := aSecret(t, mem, true)
	redact := func(opts Options) {
		s, err := Open(testDir, opts)
		require.NoError(t, err)
		w := resume(s)
		redactIn(t, s, w, blob)
		require.NoError(t, s.Close())
		s, err = Open(testDir, opts)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	gone, whole := 0, 0
	crashes(t, mem, redact, func(t *testing.T, files *vfs.MemFS) {
		s := reopen(t, files)
		require.Empty(t, damageOf(s))
		_, err := s.Blob(blob)
		recorded := s.Head().ID > before.head.ID
		require.NoError(t, s.Close())
		if !recorded {
			whole++
			require.NoError(t, err)
			return
		}
		gone++
		require.ErrorIs(t, err, journal.ErrRedacted)
		require.Empty(t, holding(t, files, "w", marker))
	})
	require.Positive(t, gone)
	require.Positive(t, whole)
}

// redactsUnder redacts a payload over a failing disk and opens the world again, which
// destroys the bytes. It reports whether the record was acknowledged.
func redactsUnder(t *testing.T, files vfs.FS, blob journal.Hash, fault errorfs.InjectorFunc) (acked bool, got error) {
	t.Helper()
	var durable atomic.Bool
	got = under(files, fault, func(opts Options) error {
		s, err := Open(testDir, opts)
		if err != nil {
			return err
		}
		err = s.Redact(blob, func() error {
			p, err := s.Append(resume(s).redaction(t, blob))
			if err == nil {
				err = p.Wait()
			}
			durable.Store(err == nil)
			return err
		})
		if err := errors.Join(err, s.Close()); err != nil {
			return err
		}
		if s, err = Open(testDir, opts); err != nil {
			return err
		}
		return s.Close()
	})
	return durable.Load(), got
}

// requireRedactedOrNot opens what a failing disk has left. Where it finds the record
// the payload is in no file any more; else all is as it was. It reports which.
func requireRedactedOrNot(t *testing.T, files *vfs.MemFS, blob journal.Hash, before journal.Head, acked bool) (redacted bool) {
	t.Helper()
	s := reopen(t, files)
	require.Empty(t, damageOf(s))
	require.Len(t, scanAll(t, s, 0), int(s.Head().ID))
	redacted = s.Head().ID > before.ID
	_, err := s.Blob(blob)
	require.NoError(t, s.Close())
	if !redacted {
		require.False(t, acked)
		require.NoError(t, err)
		return false
	}
	require.ErrorIs(t, err, journal.ErrRedacted)
	require.Empty(t, holding(t, files, "w", marker))
	return true
}

// TestFailingDiskLeavesAPayloadOrEndsItsRedaction fails every operation of a redaction,
// alone and with all after it. It is an error, never Pebble's panic, and with a whole disk the next Open ends what is on the record.
func TestFailingDiskLeavesAPayloadOrEndsItsRedaction(t *testing.T) {
	mem := memFS(t)
	before, blob := aSecret(t, mem, true)
	found := map[bool]int{}
	for _, disk := range []struct {
		err   error
		after bool // and all after that fail
		full  bool // only what needs room fails
	}{{syscall.EIO, false, false}, {syscall.EIO, true, false}, {syscall.ENOSPC, true, true}} {
		stride := fault.Stride(17)
		for n, injected := 1+fault.From(t, stride), true; injected; n += stride {
			files := clone(mem)
			var count atomic.Int64
			acked, got := redactsUnder(t, files, blob, func(op errorfs.Op) error {
				if disk.full && op.Kind != errorfs.OpCreate && op.Kind != errorfs.OpFileWrite && op.Kind != errorfs.OpFileWriteAt {
					return nil
				}
				if i := count.Add(1); i == n || disk.after && i > n {
					return &vfsError{op, disk.err}
				}
				return nil
			})
			injected = count.Load() >= n
			if got == nil { // Pebble could do without, as in removing a file
				require.True(t, acked)
			} else {
				require.ErrorIs(t, got, disk.err)
			}
			if !t.Run(fmt.Sprintf("%+v,operation=%d", disk, n), func(t *testing.T) {
				found[requireRedactedOrNot(t, files.CrashClone(vfs.CrashCloneCfg{}), blob, before.head, acked)]++
			}) {
				t.Fatal("ended with", got)
			}
		}
	}
	for _, some := range []bool{false, true} {
		require.Positive(t, found[some])
	}
}
