package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

const quietManifest = `world: quiet
version: 1
reducers:
  cell: {engine: starlark, source: cell.star}
events:
  said: {}
routing:
  - {event: said, reducer: cell, key: event.data.to}
`

func quiet(t *testing.T) *World {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, ManifestFile), []byte(quietManifest), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cell.star"), []byte("def reduce(ctx, state, event):\n    return event.data\n"), 0o600))
	require.NoError(t, Create(dir, CreateOptions{ID: "test"}, Options{}))
	lw, err := Open(dir, Options{})
	require.NoError(t, err)
	return lw
}

// What many submit while the world is busy is durable with one sync. One that is
// refused, or whose caller has gone, is refused alone.
func TestThoseWhoSubmitAtTheSameTimeShareASync(t *testing.T) {
	lw := quiet(t)
	const callers = 32
	var group sync.WaitGroup
	ids, errs := make([]journal.Seq, callers+2), make([]error, callers+2)
	gone, leave := context.WithCancel(t.Context())
	leave()
	before, head := lw.store.Stats().JournalSyncs, lw.store.Head().ID
	lw.View(func(*world.Moment) { // nobody gets hold of it meanwhile
		ids[callers+1], errs[callers+1] = lw.Submit(gone, "said", map[string]any{"to": "gone"}) // and is told at once
		for i := range callers + 1 {
			name := "said"
			if i == callers {
				name = "unheard of"
			}
			group.Go(func() {
				ids[i], errs[i] = lw.Submit(t.Context(), name, map[string]any{"to": fmt.Sprint(i)})
			})
		}
		for waiting := 0; waiting < callers+1; runtime.Gosched() {
			lw.submitted.mu.Lock()
			waiting = len(lw.submitted.waiting)
			lw.submitted.mu.Unlock()
		}
	})
	group.Wait()
	require.Equal(t, uint64(1), lw.store.Stats().JournalSyncs-before)
	require.ErrorIs(t, errs[callers], world.ErrUnknownEvent)
	require.ErrorIs(t, errs[callers+1], context.Canceled)
	found := map[journal.Seq]bool{}
	for i := range callers {
		require.NoError(t, errs[i])
		require.Greater(t, ids[i], head)
		found[ids[i]] = true
		raw, err := lw.store.Record(ids[i])
		require.NoError(t, err)
		rec, err := journal.DecodeRecord(raw)
		require.NoError(t, err)
		body, err := rec.Body()
		require.NoError(t, err)
		require.Equal(t, []string{fmt.Sprint("cell/", i)}, body.(*journal.Submitted).To)
	}
	require.Len(t, found, callers)
	require.Equal(t, head+callers, lw.store.Head().ID)
	require.NoError(t, lw.Close())
}

// Where the journal fails, all who share the sync are told.
func TestNobodyWhoSharesASyncIsToldTooMuch(t *testing.T) {
	lw := quiet(t)
	require.NoError(t, lw.store.Close()) // the disk goes away
	var group sync.WaitGroup
	errs := make([]error, 8)
	lw.View(func(*world.Moment) {
		for i := range errs {
			group.Go(func() {
				_, errs[i] = lw.Submit(t.Context(), "said", map[string]any{"to": "x"})
			})
		}
		for waiting := 0; waiting < len(errs); runtime.Gosched() {
			lw.submitted.mu.Lock()
			waiting = len(lw.submitted.waiting)
			lw.submitted.mu.Unlock()
		}
	})
	group.Wait()
	for _, err := range errs {
		require.Error(t, err)
	}
}

// A bulk does not keep others from the world: one event is taken between two pieces.
func TestNobodyWaitsForAWholeBulk(t *testing.T) {
	lw := quiet(t)
	between := journal.Seq(0)
	const events = 2*pieceEvents + 1
	said, err := canon.Marshal(map[string]any{"to": "many"})
	require.NoError(t, err)
	taken, _, err := lw.submitBulk(t.Context(), func(yield func(lined, error) bool) {
		for i := range uint64(events) {
			if i == pieceEvents+1 {
				id, err := lw.Submit(t.Context(), "said", map[string]any{"to": "one"})
				require.NoError(t, err)
				between = id
			}
			if !yield(lined{world.Submission{Name: "said", Data: said}, i + 1}, nil) {
				return
			}
		}
	})
	require.NoError(t, err)
	require.Equal(t, uint64(events), taken.Count)
	require.Equal(t, taken.First+pieceEvents, between)
	require.Equal(t, taken.Last, taken.First+events, "the one event is among them")
	require.NoError(t, lw.Close())
}

// An event that waits is taken by whoever gets the world next, before all that this one does.
func TestOneEventDoesNotWaitBehindUpdates(t *testing.T) {
	lw := quiet(t)
	x := &submission{Submission: world.Submission{Name: "unheard of"}, ctx: t.Context(), done: make(chan struct{})}
	lw.submitted.add(x)
	require.NoError(t, lw.Update(func(*world.World) error {
		select {
		case <-x.done:
		default:
			t.Error("it waits still")
		}
		return nil
	}))
	require.ErrorIs(t, x.err, world.ErrUnknownEvent)
	require.NoError(t, lw.Close())
}

// brokenContext panics when it is asked whether it has ended.
type brokenContext struct{ context.Context }

func (brokenContext) Err() error { panic("as told") }

// Where somebody panics while events are taken, nobody is told that theirs is there.
func TestPanicAcknowledgesNothing(t *testing.T) {
	lw := quiet(t)
	all := make([]*submission, 3)
	for i := range all {
		data, err := canon.Marshal(map[string]any{"to": "x"})
		require.NoError(t, err)
		all[i] = &submission{Submission: world.Submission{Name: "said", Data: data}, ctx: t.Context(), done: make(chan struct{})}
		if i == 1 {
			all[i].ctx = brokenContext{t.Context()}
		}
		lw.submitted.add(all[i])
	}
	require.Panics(t, func() { _ = lw.Update(func(*world.World) error { return nil }) })
	for _, x := range all {
		<-x.done
		require.ErrorIs(t, x.err, errInterrupted)
	}
	require.NoError(t, lw.Close())
}

// A bulk that is durable to its last event was taken, though its caller has gone since.
func TestBulkThatIsDurableWasTaken(t *testing.T) {
	lw := quiet(t)
	said, err := canon.Marshal(map[string]any{"to": "many"})
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	a, refused, err := lw.submitBulk(ctx, func(yield func(lined, error) bool) {
		for i := range uint64(pieceEvents) {
			if !yield(lined{world.Submission{Name: "said", Data: said}, i + 1}, nil) {
				return
			}
		}
		leave()
	})
	require.NoError(t, err)
	require.Zero(t, refused.line)
	require.EqualValues(t, pieceEvents, a.Count)
	require.NoError(t, lw.Close())
}

// An event that is only to be accepted waits for no driver, who makes it durable before anything that comes of it. Where
// nobody drives the world it is durable.
func TestAnEventIsAcceptedBeforeTheDriverSyncs(t *testing.T) {
	lw := quiet(t)
	over, end := context.WithCancel(t.Context())
	end()
	data, err := canon.Marshal(map[string]any{"to": "a"})
	require.NoError(t, err)
	said := world.Submission{Name: "said", Data: data}
	sent, err := lw.AcceptEvent(t.Context(), said)
	require.NoError(t, err)
	require.NoError(t, lw.Await(over, sent.ID-1))
	stop := lw.startDriver() // who does nothing yet
	sent, err = lw.AcceptEvent(t.Context(), said)
	require.NoError(t, err)
	require.ErrorIs(t, lw.Await(over, sent.ID-1), context.Canceled)
	fork, err := lw.Fork(t.Context(), filepath.Join(t.TempDir(), "fork"), ForkOptions{ID: "fork", At: sent.ID - 1})
	require.NoError(t, err)
	require.Equal(t, sent.ID-1, fork.At, "it has what is asked for, and no event that the store has got meanwhile")
	require.NoError(t, stop())
	require.NoError(t, lw.Await(over, sent.ID-1))
	require.NoError(t, lw.Close())
}
