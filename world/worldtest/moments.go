package worldtest

import (
	"context"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

// RequireMoments requires that every kept snapshot with the records after it gives
// what all records give, and that a few moments of the past, looked at from the
// snapshot before them, are what they were.
func (w *World) RequireMoments(rng *rand.Rand) {
	w.t.Helper()
	for _, s := range w.Snapshots() {
		got, err := world.Replay(context.Background(), w.Journal, world.ReplayConfig{Keys: w.cfg.Keys, Registry: w.cfg.Registry, From: journal.Seq(s.Record)})
		require.NoError(w.t, err, "from snapshot %s", s.Name)
		require.Equal(w.t, w.Status().Head, got.Head)
		require.Equal(w.t, w.StateRoot(), got.StateRoot, "from snapshot %s", s.Name)
	}
	for range 3 {
		at := journal.Seq(1 + rng.Uint64N(uint64(w.Journal.Head().ID)))
		want, err := world.Replay(context.Background(), w.Journal, world.ReplayConfig{Registry: w.cfg.Registry, To: at})
		require.NoError(w.t, err)
		got, err := world.At(context.Background(), w.Journal, at, w.cfg.Registry)
		require.NoError(w.t, err)
		require.Equal(w.t, want.StateRoot, got.StateRoot(), "at #%d", at)
		require.Equal(w.t, want.Head, got.Status().Head)
	}
}
