package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// lookAt opens what is in the log to be read, on another machine.
func lookAt(t testing.TB, log journal.Log) *Store {
	t.Helper()
	s, err := OpenReadOnly(testDir, "look", sharedOptions(memFSOf(t), log))
	require.NoError(t, err)
	return s
}

// movedLog goes on as soon as somebody knows where it ends.
type movedLog struct {
	journal.Log

	goOn func()
}

func (l *movedLog) End(ctx context.Context) (journal.Head, error) {
	end, err := l.Log.End(ctx)
	l.goOn()
	return end, err
}

func TestWhoLooksSeesTheWorldAsItWas(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	first := w.batch("agent/a", longPayload, "agent/b")
	appendAll(t, s, first)
	img := &journal.Image{Head: w.head, Core: []byte("core"), Cells: []journal.CellVersion{{Cell: "agent/a", Bytes: []byte("a")}}}
	require.NoError(t, s.Checkpoint(img))
	awaitKept(t, img.Head)
	require.NoError(t, s.PutCheckpoint(noteOf(t, uint64(w.head.ID))))
	appendAll(t, s, w.batch("agent/a"))
	then := w.head
	want := scanAll(t, s, 0)
	tree, err := s.TreeAt(then.ID)
	require.NoError(t, err)

	look := lookAt(t, &movedLog{shared.Log(), func() { // the owner is not disturbed
		appendAll(t, s, w.batch("agent/a", "agent/c"))
		require.NoError(t, s.PutCheckpoint(noteOf(t, uint64(w.head.ID))))
	}})
	require.Equal(t, then, look.Head())
	require.Equal(t, want, scanAll(t, look, 0))
	require.Equal(t, []journal.Seq{1, 4}, cellRecords(t, look, "agent/a", 0))
	_, err = look.Blob(first.Blobs[0].Hash)
	require.NoError(t, err)
	got, err := look.Image(journal.Last)
	require.NoError(t, err)
	require.Equal(t, img.Head, got.Head)
	require.Equal(t, "a", string(got.Cells[0].Bytes))
	other, err := look.TreeAt(then.ID)
	require.NoError(t, err)
	require.Equal(t, tree, other)
	last, err := look.LastCheckpoint()
	require.NoError(t, err)
	require.EqualValues(t, 3, last.Size)
	require.Empty(t, damageOf(look))
	require.False(t, look.Overtaken())

	own := lookAt(t, shared.Log())
	require.NoError(t, own.Checkpoint(&journal.Image{Head: own.Head()}))
	require.NoError(t, own.Close())
	require.NoError(t, own.failed(), "its image is its own")
	require.ErrorIs(t, look.PutCheckpoint(noteOf(t, 1)), ErrLooks)
	require.ErrorIs(t, look.Redact(first.Blobs[0].Hash, func() error { return nil }), ErrLooks)
	p, err := look.Append(resume(look).batch("agent/x"))
	require.NoError(t, err)
	require.ErrorIs(t, p.Wait(), ErrLooks)
	require.NoError(t, look.Close())
	awaitKept(t, img.Head)
	appendAll(t, s, w.batch("agent/a"))
	require.NoError(t, s.Close())
}

// awaitKept waits until the log has the image at a head: it is put beside the appends.
func awaitKept(t *testing.T, head journal.Head) {
	t.Helper()
	require.Eventually(t, func() bool {
		kept, err := shared.Log().Kept(t.Context())
		return err == nil && kept != nil && kept.Head == head
	}, time.Minute, time.Millisecond, "the log has no image at #%d", head.ID)
}

// TestManyLookWhileOneWrites and each sees a beginning of what that writes.
func TestManyLookWhileOneWrites(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	s := create(t, mem)
	heads := make(chan journal.Head, 1000)
	done := make(chan error, 1)
	log := shared
	go func() {
		w := &writer{}
		for i := range 150 {
			b := w.batch("agent/a", longPayload+fmt.Sprint(i))
			heads <- b.Head
			p, err := s.Append(b)
			if err == nil {
				err = p.Wait()
			}
			if err == nil && i%5 == 0 {
				err = s.Checkpoint(&journal.Image{Head: w.head, Core: fmt.Append(nil, w.head.ID)})
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	roots := map[journal.Seq]journal.Hash{0: {}}
	for over := false; !over; {
		select {
		case err := <-done:
			require.NoError(t, err)
			over = true
		default:
		}
		opts := testOptions(vfs.NewMem())
		opts.Log = log.Log()
		look, err := OpenReadOnly(testDir, "look", opts)
		require.NoError(t, err)
		head := look.Head()
		for len(heads) > 0 {
			h := <-heads
			roots[h.ID] = h.Root
		}
		require.Equal(t, roots[head.ID], head.Root, "#%d", head.ID)
		last := journal.Head{}
		for r, err := range look.ScanChain(last) {
			require.NoError(t, err)
			last = journal.Head{ID: r.ID, Root: r.Root}
		}
		require.Equal(t, head, last)
		img, err := look.Image(journal.Last)
		require.NoError(t, err)
		if img != nil {
			require.Equal(t, roots[img.Head.ID], img.Head.Root)
		}
		require.NoError(t, look.Close())
	}
	require.NoError(t, s.Close())
}

// replacedLog has another image in the place of the one whose parts are read.
type replacedLog struct {
	journal.Log

	times   int
	replace func()
}

func (l *replacedLog) Kept(ctx context.Context) (*journal.KeptImage, error) {
	img, err := l.Log.Kept(ctx)
	if img == nil || l.times == 0 {
		return img, err
	}
	l.times--
	img.Parts = func(yield func([]byte, error) bool) {
		l.replace()
		yield(nil, errors.New("replaced"))
	}
	return img, err
}

func TestWhoLooksBeginsAnewWhereTheImageIsReplaced(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	more := func() {
		appendAll(t, s, w.batch("agent/a", longPayload+fmt.Sprint(w.head.ID)))
		require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Core: []byte("core")}))
		awaitKept(t, w.head)
	}
	more()
	look := lookAt(t, &replacedLog{shared.Log(), 3, more})
	require.Equal(t, w.head, look.Head())
	require.EqualValues(t, 8, w.head.ID)
	require.Len(t, scanAll(t, look, 0), 8)
	require.NoError(t, look.Close())
	_, err := OpenReadOnly(testDir, "look", sharedOptions(memFSOf(t), &replacedLog{shared.Log(), lookTries, func() {}}))
	require.ErrorIs(t, err, errParts)
	require.NoError(t, s.Close())
}

func TestWhoLooksIsToldOfARedaction(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	w, blob := aSecret(t, mem, true)
	s := reopen(t, mem)
	before := lookAt(t, shared.Log())
	require.NoError(t, s.Redact(blob, func() error {
		appendAll(t, s, w.redaction(t, blob))
		return nil
	}))
	_, err := before.Blob(blob)
	require.ErrorIs(t, err, ErrOvertaken)
	require.NotErrorIs(t, err, journal.ErrRedacted)
	require.True(t, before.Overtaken())
	require.NoError(t, before.Close())
	after := lookAt(t, shared.Log())
	appendAll(t, s, w.batch("agent/a"))
	_, err = after.Blob(blob)
	require.ErrorIs(t, err, journal.ErrRedacted)
	require.False(t, after.Overtaken())
	require.NoError(t, after.Close())
	require.NoError(t, s.Close())
}

// TestWhoLooksBringsNoRedactionToAnEnd that an owner has begun: that is for the next owner.
func TestWhoLooksBringsNoRedactionToAnEnd(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	w, blob := aSecret(t, mem, true)
	s, err := Open(testDir, sharedOptions(mem, &cutLog{shared.Log()}))
	require.NoError(t, err)
	require.ErrorIs(t, s.Redact(blob, func() error {
		appendAll(t, s, w.redaction(t, blob))
		return nil
	}), errCut)
	look := lookAt(t, shared.Log())
	require.Empty(t, damageOf(look))
	require.NoError(t, look.Close())
	_, err = shared.Log().Blob(blob)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func TestWhoLooksFindsALogThatWasPutBack(t *testing.T) {
	onLog(t)
	mem := memFS(t)
	s := create(t, mem)
	w := &writer{}
	appendAll(t, s, w.batch("agent/a"))
	backup := shared.Backup()
	appendAll(t, s, w.batch("agent/b"))
	shared.Restore(backup)
	_, err := OpenReadOnly(testDir, "look", testOptions(mem))
	require.ErrorIs(t, err, journal.ErrRewound)
	require.NoError(t, s.Close())
}

// ownedLog is another's as soon as it is owned.
type ownedLog struct {
	journal.Log

	then func()
}

func (l *ownedLog) Own(ctx context.Context) (journal.Owned, error) {
	owned, err := l.Log.Own(ctx)
	l.then()
	return owned, err
}

// TestWhoIsTakenOverFromWhileItOpensIsFenced, with a copy of its own and without one, whether the
// other has put an image or not. What it leaves is no copy of more than it knew.
func TestWhoIsTakenOverFromWhileItOpensIsFenced(t *testing.T) {
	for _, copied := range []bool{true, false} {
		for _, image := range []bool{true, false} {
			onLog(t)
			mem := memFS(t)
			s := create(t, mem)
			w := &writer{}
			appendAll(t, s, w.batch("agent/a"))
			require.NoError(t, s.Close())
			here := mem
			if !copied {
				here = memFSOf(t)
			}
			_, err := Open(testDir, sharedOptions(here, &ownedLog{shared.Log(), func() {
				other := reopen(t, memFSOf(t))
				appendAll(t, other, w.batch("agent/a", "agent/a"))
				if image {
					require.NoError(t, other.Checkpoint(&journal.Image{Head: w.head, Core: []byte("core")}))
				}
				require.NoError(t, other.Close())
			}}))
			require.ErrorIs(t, err, journal.ErrFenced, "copied %v, image %v", copied, image)
			s = reopen(t, here)
			require.Equal(t, w.head, s.Head())
			require.Len(t, scanAll(t, s, 0), int(w.head.ID))
			require.Equal(t, []journal.Seq{1, 2, 3}, cellRecords(t, s, "agent/a", 0))
			require.NoError(t, s.Close())
		}
	}
}
