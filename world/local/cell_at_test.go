package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

func TestCellAtIsTheCellOfAt(t *testing.T) {
	ctx := context.Background()
	dir := create(t)
	w := open(t, dir)
	send := func(to string, do ...map[string]any) {
		t.Helper()
		_, err := w.Submit(ctx, "go", map[string]any{"to": to, "do": do})
		require.NoError(t, err)
	}
	snapshot := func(name string) {
		t.Helper()
		err := w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Snapshot(ctx, name, "", "ada")) })
		require.NoError(t, err)
	}
	for range 3 {
		send("a", map[string]any{"effect": "tool.a", "param": "x"}, map[string]any{"emit": "ping", "to": "b"}, map[string]any{"timer": 2})
		send("b", map[string]any{"effect": "tool.bad"}, map[string]any{"emit": "both", "to": "a"})
		require.NoError(t, w.Step(ctx))
	}
	snapshot("first")
	require.NoError(t, w.Run(ctx))
	send("a", map[string]any{"fail": "told to"})
	require.NoError(t, w.Run(ctx))
	snapshot("second")
	err := w.Update(func(w *world.World) error {
		return worldtest.ErrorOf(w.Rollback(ctx, journal.RolledBack{Snapshot: "first", Reason: "so", Actor: "ada", Ack: true}))
	})
	require.NoError(t, err)
	require.NoError(t, w.Run(ctx))
	send("c")
	requireCellsOfAt(t, w)
	require.NoError(t, w.Close())
	w = open(t, dir)
	requireCellsOfAt(t, w)
	for _, at := range []journal.Seq{0, w.Status().Head.ID + 1} {
		_, _, err = w.CellAt(reducer.Cell{Reducer: "bot", Key: "a"}, at)
		require.ErrorIs(t, err, journal.ErrNotFound)
		_, err = w.UnitEnd(at)
		require.ErrorIs(t, err, journal.ErrNotFound)
	}
	require.NoError(t, w.Close())
}

func requireCellsOfAt(t *testing.T, w *local.World) {
	t.Helper()
	for at := journal.Seq(1); at <= w.Status().Head.ID; at++ {
		m, err := w.At(at)
		require.NoError(t, err)
		end, err := w.UnitEnd(at)
		require.NoError(t, err)
		require.Equal(t, m.Status().Head.ID, end)
		for _, name := range []string{"bot/a", "bot/b", "bot/c", "skip/all"} {
			cell, err := reducer.ParseCell(name)
			require.NoError(t, err)
			want, there := m.Cell(cell)
			got, found, err := w.CellAt(cell, at)
			require.NoError(t, err)
			require.Equal(t, there, found, "%s at #%d", name, at)
			require.Equal(t, want, got, "%s at #%d", name, at)
		}
	}
}

// BenchmarkCellAt looks at random cells of a world of 10,000 at random moments
// among a million records.
func BenchmarkCellAt(b *testing.B) {
	const cells, events, ticks = 10_000, 500_000, 10
	w := tallies(b)
	ctx := context.Background()
	for sent := 0; sent < events; {
		_, _, err := w.SubmitAll(ctx, func(yield func(world.Submission, error) bool) {
			for range events / ticks {
				data, err := canon.Marshal(tick{Of: fmt.Sprint("c", sent%cells)})
				sent++
				if !yield(world.Submission{Name: "tick", Data: data}, err) {
					return
				}
			}
		})
		require.NoError(b, err)
		require.NoError(b, w.Step(ctx))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	head := w.Status().Head.ID
	for _, part := range []struct {
		name        string
		first, last journal.Seq
	}{{"anywhere", 1, head}, {"near the end", head - 1000, head}} {
		b.Run(part.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				cell := reducer.Cell{Reducer: "tally", Key: fmt.Sprint("c", rng.IntN(cells))}
				at := part.first + journal.Seq(rng.Uint64N(uint64(part.last-part.first)))
				began := time.Now()
				_, _, err := w.CellAt(cell, at)
				took = append(took, time.Since(began))
				require.NoError(b, err)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "us-median")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "us-p99")
		})
	}
}

// tallies returns a world of cells that count.
func tallies(t testing.TB) *local.World {
	t.Helper()
	dir, opts := tallyDir(t)
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "tallies"}, opts))
	w, err := local.Open(dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}
