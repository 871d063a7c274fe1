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
	require.NoError(t, Create(dir, Birth{ID: "test"}, Options{}))
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
		for i := range callers + 2 {
			ctx, name := t.Context(), "said"
			switch i {
			case callers:
				name = "unheard of"
			case callers + 1:
				ctx = gone
			}
			group.Go(func() {
				ids[i], errs[i] = lw.Submit(ctx, name, map[string]any{"to": fmt.Sprint(i)})
			})
		}
		for waiting := 0; waiting < callers+2; runtime.Gosched() {
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
