package local

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// TestPlaceDoesNotDependOnWhatIsKept finds the place of every record twice: kept
// from the record before, and read again from the journal.
func TestPlaceDoesNotDependOnWhatIsKept(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../worldtest/testdata/bots")))
	require.NoError(t, Create(dir, Birth{ID: "test"}, Options{}))
	lw, err := Open(dir, Options{})
	require.NoError(t, err)
	err = lw.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Snapshot(t.Context(), "before", "", "ada")) })
	require.NoError(t, err)
	ctx := context.Background()
	again := func() {
		ask := map[string]any{"effect": "tool.a", "param": "x"}
		_, err := lw.Submit(ctx, "go", map[string]any{"to": "a", "do": []any{
			ask,
			map[string]any{"effect": "tool.bad"},
			map[string]any{"timer": 1, "do": []any{ask}},
			map[string]any{"emit": "ping", "to": "b", "do": []any{ask}},
		}})
		require.NoError(t, err)
		require.NoError(t, lw.Run(ctx))
	}
	again()
	err = lw.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Rollback(ctx, journal.RolledBack{Snapshot: "before", Reason: "so", Actor: "ada", Ack: true}))
	})
	require.NoError(t, err)
	again()
	kept := places{lw: lw}
	for s, err := range lw.store.Scan(0) {
		require.NoError(t, err)
		want, err := kept.note(&s.Record)
		require.NoError(t, err)
		fresh := places{lw: lw}
		got, err := fresh.of(s.ID)
		require.NoError(t, err)
		require.Equal(t, want, got, "%d %s", s.ID, s.Record.Kind)
		require.LessOrEqual(t, got.trace, s.ID)
	}
	require.NoError(t, lw.Close())
}

func TestTraceBeginsInTheMiddleWhereTooManyCausesWereLeftBehind(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../worldtest/testdata/bots")))
	require.NoError(t, Create(dir, Birth{ID: "test"}, Options{}))
	lw, err := Open(dir, Options{})
	require.NoError(t, err)
	var do []any
	for range 3 {
		do = []any{map[string]any{"emit": "ping", "to": "a", "do": do}}
	}
	_, err = lw.Submit(t.Context(), "go", map[string]any{"to": "a", "do": do})
	require.NoError(t, err)
	require.NoError(t, lw.Run(t.Context()))
	last := lw.Status().Head.ID
	whole, err := (&places{lw: lw}).find(last, maxCauses)
	require.NoError(t, err)
	require.Equal(t, journal.Seq(2), whole.trace)
	cut, err := (&places{lw: lw}).find(last, 3)
	require.NoError(t, err)
	require.Equal(t, last-3, cut.trace)
	require.Equal(t, last, cut.under)
	require.NoError(t, lw.Close())
}
