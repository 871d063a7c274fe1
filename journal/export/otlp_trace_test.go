package export

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func bots(t *testing.T) *worldtest.World {
	return worldtest.Load(t, "../../world/worldtest/testdata/bots", worldtest.Options{})
}

func placesOf(w *worldtest.World) *places { return &places{past: past{w.Journal, w}} }

// TestPlaceDoesNotDependOnWhatIsKept finds the place of every record twice: kept
// from the record before, and read again from the journal.
func TestPlaceDoesNotDependOnWhatIsKept(t *testing.T) {
	w := bots(t)
	require.NoError(t, worldtest.ErrorOf(w.Snapshot(t.Context(), "before", "", "ada")))
	again := func() {
		ask := map[string]any{"effect": "tool.a", "param": "x"}
		w.Submit("go", map[string]any{"to": "a", "do": []any{
			ask,
			map[string]any{"effect": "tool.bad"},
			map[string]any{"timer": 1, "do": []any{ask}},
			map[string]any{"emit": "ping", "to": "b", "do": []any{ask}},
		}})
		w.Run()
	}
	again()
	_, _, err := w.Rollback(t.Context(), journal.RolledBack{Snapshot: "before", Reason: "so", Actor: "ada", Ack: true})
	require.NoError(t, err)
	again()
	kept := placesOf(w)
	for s, err := range w.Journal.Scan(0) {
		require.NoError(t, err)
		want, err := kept.keepPlace(&s.Record)
		require.NoError(t, err)
		fresh := placesOf(w)
		got, err := fresh.placeOf(s.ID)
		require.NoError(t, err)
		require.Equal(t, want, got, "%d %s", s.ID, s.Record.Kind)
		require.LessOrEqual(t, got.trace, s.ID)
	}
}

func TestTraceBeginsInTheMiddleWhereTooManyCausesWereLeftBehind(t *testing.T) {
	w := bots(t)
	var do []any
	for range 3 {
		do = []any{map[string]any{"emit": "ping", "to": "a", "do": do}}
	}
	w.Submit("go", map[string]any{"to": "a", "do": do})
	w.Run()
	last := w.Status().Head.ID
	whole, err := placesOf(w).find(last, maxCauses)
	require.NoError(t, err)
	require.Equal(t, journal.Seq(2), whole.trace)
	cut, err := placesOf(w).find(last, 3)
	require.NoError(t, err)
	require.Equal(t, last-3, cut.trace)
	require.Equal(t, last, cut.under)
}
