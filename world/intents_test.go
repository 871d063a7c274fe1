package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// TestIntentsThatHaveEndedLeaveMemory: as many stay as there is room for, however many there
// are, and whoever asks for one of the others is told what became of it.
func TestIntentsThatHaveEndedLeaveMemory(t *testing.T) {
	const orders, room = 400, 40 << 10
	w := botsWith(t, worldtest.Options{Memory: room, CheckpointRecords: 64})
	most := 0
	for range orders {
		w.Submit("go", map[string]any{"to": "a", "do": []any{map[string]any{"effect": "tool.a"}}})
		w.Run()
		most = max(most, w.IntentsInMemory())
	}
	require.Less(t, most, 120)
	require.Equal(t, orders, w.Status().Intents[receipt.StateCommitted])
	all := w.Intents()
	require.Len(t, all, orders)
	require.Less(t, w.IntentsInMemory(), 120, "who lists them leaves them where they are")
	for _, e := range all {
		one, ok := w.Intent(e.Intent.Key)
		require.True(t, ok)
		require.Equal(t, e.Append(nil), one.Append(nil))
	}
	w.RequireReplay()

	require.NoError(t, w.Checkpoint())
	before := w.Status()
	w.Crash()
	require.Less(t, w.IntentsInMemory(), 20, "opening reads those alone that have not ended for good")
	require.Equal(t, before, w.Status())
	for i, e := range w.Intents() {
		require.Equal(t, all[i].Append(nil), e.Append(nil))
	}
}

// TestARollbackFindsWhatHasLeftMemory also where nobody can tell by the records any more which
// intents were asked for since.
func TestARollbackFindsWhatHasLeftMemory(t *testing.T) {
	for name, redacts := range map[string]bool{"by the records": false, "one of which is redacted": true} {
		t.Run(name, func(t *testing.T) {
			const orders = 20
			w := botsWith(t, worldtest.Options{Memory: 1, CheckpointRecords: 8})
			_, err := w.Snapshot(t.Context(), "before", "", "ada")
			require.NoError(t, err)
			for range orders {
				w.Submit("go", map[string]any{"to": "a", "do": []any{map[string]any{"effect": "tool.a", "param": string(make([]byte, 8<<10))}}})
				w.Run()
			}
			require.Less(t, w.IntentsInMemory(), orders/2)
			if redacts {
				w.Journal.Destroy(journal.KindIntent)
			}
			b := journal.RolledBack{Snapshot: "before", Actor: "ada", Reason: "so", Ack: true}
			left, err := w.Leaves(b)
			require.NoError(t, err)
			require.Len(t, left, orders)
			_, done, err := w.Rollback(t.Context(), b)
			require.NoError(t, err)
			require.Equal(t, left, done.Abandoned)
		})
	}
}
