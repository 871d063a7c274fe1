package local_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestWhatIsPerformedTakesAsLongAsItsKindDid in ticks, the median, however fast the outside is
// by now: a deadline that was met is met again, whether the past is followed, over, or left out.
func TestWhatIsPerformedTakesAsLongAsItsKindDid(t *testing.T) {
	d := newDiary(t, "mode: real, tick: 1s, epoch: 1970-01-01T00:00:00Z")
	w := openPaying(t, d.dir, d.options())
	for _, took := range []time.Duration{5, 40, 3} {
		_, err := w.Submit(t.Context(), "go", map[string]any{"to": "a", "do": []any{"ask"}})
		require.NoError(t, err)
		d.drive(t, w)
		d.clock.Move(took * time.Second)
		d.answered(t, w)
	}
	for name, at := range map[string]journal.Seq{"while the past is followed": 1, "when it is over": w.Status().Head.ID, "without it": 2} {
		t.Run(name, func(t *testing.T) {
			scratch := t.TempDir()
			x, err := w.Suppose(t.Context(), local.WhatIf{
				At: func(*local.World) (journal.Seq, error) { return at, nil }, Live: []string{"outside.ask"}, Actor: "ada", Alone: name == "without it",
				Dir: filepath.Join(scratch, "fork"), Copy: filepath.Join(scratch, "copy"),
				Send: func(ctx context.Context, fork *local.World) (uint64, error) {
					data, err := canon.Marshal(map[string]any{"to": "b", "do": []any{"ask", 8}})
					require.NoError(t, err)
					_, err = fork.SubmitEvent(ctx, world.Submission{Name: "go", Data: data})
					return 1, err
				},
			})
			require.NoError(t, err)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				d.far.answers <- "yes"
			}()
			require.NoError(t, x.Run(t.Context(), d.options()))
			<-ended
			require.Equal(t, uint64(1), x.Performed)
			require.Equal(t, []int64{0, 5, 8}, cameAt(t, x.Fork, "b"), "the question, its answer, the deadline")
			require.NoError(t, x.Close())
		})
	}
	require.NoError(t, w.Close())
}

// cameAt returns in which ticks something came to a diarist, after the first.
func cameAt(t *testing.T, w *local.World, key string) (ticks []int64) {
	t.Helper()
	w.View(func(m *world.Moment) {
		for _, c := range m.Cells() {
			var notes [][]any
			if c.Cell.Key != key {
				continue
			}
			require.NoError(t, canon.Unmarshal(c.State, &notes))
			for _, note := range notes {
				ticks = append(ticks, note[0].(int64)-notes[0][0].(int64))
			}
		}
	})
	return ticks
}
