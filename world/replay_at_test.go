package world_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// statesOf returns the states of a moment's cells by name, and that they are those of Cells.
func statesOf(t *testing.T, m *world.Moment) (out map[string]string) {
	t.Helper()
	out = make(map[string]string)
	for name, state := range m.States() {
		out[name] = string(state)
	}
	require.NoError(t, m.Unread())
	return out
}

// TestAlongLooksAtWhatAtGives through rollbacks, snapshots and changes of rules: with images and
// without, with all in memory and with nothing, jumping to images and not.
func TestAlongLooksAtWhatAtGives(t *testing.T) {
	jumps := 0
	for seed := range uint64(3) {
		l := newLife(t, seed, seed%2 == 0, make(map[string]int))
		l.live()
		end := l.Journal.Head().ID
		bare := l.Journal.Truncate(end)
		var at []journal.Seq
		want := make(map[journal.Seq]map[string]string)
		for id := journal.Seq(1); id <= end; id += 1 + journal.Seq(seed)*3 {
			m, err := world.At(t.Context(), bare, id, cellAtRegistry())
			require.NoError(t, err)
			at = append(at, id)
			want[id] = statesOf(t, m)
		}
		for _, far := range []journal.Seq{0, end} {
			for name, h := range map[string]journal.History{"bare": bare, "images": l.Journal} {
				for _, spilling := range []world.Spilling{{}, new(worldtest.Spills).Spilling()} {
					var got []journal.Seq
					cfg := world.ReplayConfig{Registry: cellAtRegistry(), Spilling: spilling}
					err := world.AlongJumping(t.Context(), h, at, far, cfg, func(id journal.Seq, m *world.Moment) error {
						got = append(got, id)
						require.Equal(t, want[id], statesOf(t, m), "%s: at #%d", name, id)
						return nil
					})
					require.NoError(t, err)
					require.Equal(t, at, got)
				}
			}
		}
		jumps += len(at)
	}
	require.Greater(t, jumps, 50)
}

func TestAlongEnds(t *testing.T) {
	w := bots(t)
	for i := range 4 {
		w.Submit("go", order{To: "a", Say: fmt.Sprint(i)})
		w.Run()
		require.NoError(t, w.Checkpoint())
	}
	at := []journal.Seq{2, 5, w.Journal.Head().ID}
	broken := errors.New("broken")
	looks := 0
	cfg := world.ReplayConfig{Registry: botRegistry()}
	err := world.ReplayAt(t.Context(), w.Journal, at, cfg, func(journal.Seq, *world.Moment) error {
		looks++
		return fmt.Errorf("%w: %w", broken, journal.ErrNotFound)
	})
	require.ErrorIs(t, err, broken)
	require.Equal(t, 1, looks)
	ctx, cancel := context.WithCancel(t.Context())
	err = world.ReplayAt(ctx, w.Journal, at, cfg, func(journal.Seq, *world.Moment) error { cancel(); return nil })
	require.ErrorIs(t, err, context.Canceled)
	looks = 0
	require.NoError(t, world.ReplayAt(t.Context(), unreadable{w.Journal}, at, cfg, func(journal.Seq, *world.Moment) error { looks++; return nil }))
	require.Equal(t, 3, looks, "an image that cannot be read costs time, and nothing else")
}
