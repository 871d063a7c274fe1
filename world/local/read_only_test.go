package local_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestLookedAtWorldStaysAsItIs while everything can be read.
func TestLookedAtWorldStaysAsItIs(t *testing.T) {
	dir, head := lived(t)
	w, err := local.OpenReadOnly(dir, local.Options{})
	require.NoError(t, err)
	_, err = w.Submit(context.Background(), "go", map[string]any{"to": "a"})
	require.ErrorIs(t, err, local.ErrNoKeys)
	require.ErrorIs(t, w.Step(context.Background()), local.ErrNoKeys)
	m, err := w.At(head.ID)
	require.NoError(t, err)
	require.Len(t, m.Cells(), len(cells(t, w)))
	require.NoError(t, w.Close())

	w = open(t, dir)
	require.Equal(t, head, w.Status().Head)
	_, err = w.Submit(context.Background(), "go", map[string]any{"to": "a"})
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

func cells(t *testing.T, lw *local.World) (all []world.CellView) {
	t.Helper()
	lw.View(func(w *world.Moment) { all = w.Cells() })
	return all
}

// TestLookNeedsNoRecording of a fork's parent, which may be open or gone.
func TestLookNeedsNoRecording(t *testing.T) {
	dir, _ := lived(t)
	to := filepath.Join(t.TempDir(), "fork")
	parent := open(t, dir)
	_, err := parent.Fork(t.Context(), to, local.ForkOptions{Effects: journal.ForkRecorded, Actor: "ada"})
	require.NoError(t, err)
	for range 2 {
		w, err := local.OpenReadOnly(to, local.Options{})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		if parent != nil {
			require.NoError(t, parent.Close())
			require.NoError(t, os.RemoveAll(dir))
			parent = nil
		}
	}
	f, err := local.Open(to, local.Options{})
	if testlog.On() { // it has its parent with it
		require.NoError(t, err)
		require.NoError(t, f.Close())
		return
	}
	require.ErrorIs(t, err, local.ErrNoRecording)
}
