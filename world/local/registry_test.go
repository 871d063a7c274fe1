package local_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/local"
)

type tally struct {
	Count uint64 `cbor:"count"`
}

type tick struct {
	Of string `cbor:"of"`
}

// tallyDir returns the directory of a world of cells that count, before the world is
// created, and the options with the reducer that it needs.
func tallyDir(t testing.TB) (string, local.Options) {
	t.Helper()
	registry := reducer.Registry{"tally@1": reducer.Typed(1, func(_ *reducer.Context, s tally, _ tick) (tally, error) {
		return tally{Count: s.Count + 1}, nil
	})}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, local.ManifestFile), []byte(`world: tallies
version: 1
reducers:
  tally: {engine: go, name: tally, version: "1"}
events:
  tick: {}
routing:
  - {event: tick, reducer: tally, key: event.data.of}
`), 0o600))
	return dir, local.Options{Reducers: registry}
}

// A world with Go reducers needs them wherever it is opened, imports included.
func TestGoReducersComeFromTheProgram(t *testing.T) {
	dir, with := tallyDir(t)
	require.Error(t, local.Create(dir, local.CreateOptions{}, local.Options{}), "the program lacks the reducer")
	require.NoDirExists(t, filepath.Join(dir, ".world"))
	require.NoError(t, local.Create(dir, local.CreateOptions{}, with))

	w, err := local.Open(dir, with)
	require.NoError(t, err)
	_, err = w.Submit(context.Background(), "tick", tick{Of: "a"})
	require.NoError(t, err)
	require.NoError(t, w.Run(context.Background()))
	var journal bytes.Buffer
	require.NoError(t, w.ExportBundle(t.Context(), &journal, local.BundleOptions{}))
	head := w.Status().Head
	left := filepath.Join(t.TempDir(), "left") // as a crash leaves it: the last image is of record 1
	require.NoError(t, os.CopyFS(left, os.DirFS(dir)))
	require.NoError(t, os.Chmod(filepath.Join(left, ".world", "keyring"), 0o600))
	require.NoError(t, w.Close())

	w, err = local.Open(left, local.Options{})
	require.NoError(t, err)
	require.ErrorAs(t, w.Lacks(), new(*reducer.MissingError))
	require.Equal(t, head, w.Head(), "the records are there")
	require.Equal(t, 1, w.Status().EventsPending, "of cells all is shown that needs no reducer")
	require.EqualValues(t, 3, w.Status().Head.ID)
	_, _, err = w.CellAt(reducer.Cell{Reducer: "tally", Key: "a"}, head.ID)
	require.ErrorAs(t, err, new(*reducer.MissingError))
	require.NoError(t, w.Close())
	w, err = local.Open(left, with)
	require.NoError(t, err)
	require.Equal(t, head, w.Status().Head, "who looked has changed nothing")
	require.NoError(t, w.Close())

	w, err = local.Open(dir, local.Options{})
	require.NoError(t, err)
	require.ErrorAs(t, w.Lacks(), new(*reducer.MissingError))
	require.Equal(t, head, w.Status().Head, "an image has all")
	_, err = w.Submit(context.Background(), "tick", tick{Of: "a"})
	require.ErrorAs(t, err, new(*reducer.MissingError))
	require.ErrorAs(t, w.Run(context.Background()), new(*reducer.MissingError))
	unproven, err := w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	require.False(t, unproven.OK)
	require.Empty(t, unproven.Faults)
	require.Equal(t, []string{"tally@1"}, unproven.Replay.Needs)
	require.NoError(t, w.Close())
	copied := filepath.Join(t.TempDir(), "copy")
	require.Error(t, local.Import(t.Context(), copied, bytes.NewReader(journal.Bytes()), nil, local.Options{}, nil))
	require.NoDirExists(t, copied)
	require.NoError(t, local.Import(t.Context(), copied, bytes.NewReader(journal.Bytes()), nil, with, nil))
	w, err = local.Open(copied, with)
	require.NoError(t, err)
	require.Equal(t, head, w.Status().Head)
	report, err := w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	require.True(t, report.OK)
	require.NoError(t, w.Close())
}
