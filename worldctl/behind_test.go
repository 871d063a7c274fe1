package worldctl

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestWhatIsOlderThanTheJournalSaysSo opens a world that was left without its last image
// with a program that lacks its reducer.
func TestWhatIsOlderThanTheJournalSaysSo(t *testing.T) {
	dir, left := t.TempDir(), filepath.Join(t.TempDir(), "left")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(`
world: desk
reducers: {ticket: {engine: go, name: ticket, version: "1"}}
events: {opened: }
routing: [{event: opened, reducer: ticket, key: event.data.ID}]
`), 0o600))
	own := local.Options{Reducers: reducer.Registry{"ticket@1": reducer.Typed(1, func(*reducer.Context, int, struct{ ID string }) (int, error) {
		return 1, nil
	})}}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "desk"}, own))
	w, err := local.Open(dir, own)
	require.NoError(t, err)
	_, err = w.Submit(t.Context(), "opened", map[string]any{"ID": "a"})
	require.NoError(t, err)
	require.NoError(t, w.Run(t.Context()))
	end := w.Head()
	require.NoError(t, os.CopyFS(left, os.DirFS(dir))) // as a kill leaves it
	require.NoError(t, os.Chmod(filepath.Join(left, ".world", "keyring"), 0o600))
	require.NoError(t, w.Close())

	do := func(args ...string) (out, said string) {
		t.Helper()
		var o, s bytes.Buffer
		require.Equal(t, exitOK, run(t.Context(), Options{}, append([]string{"-w", left}, args...), nil, &o, &s), s.String())
		return o.String(), s.String()
	}
	out, said := do("status", "-o", "json")
	var status struct {
		Head struct{ ID, Root any }
		AsOf uint64 `json:"as_of"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &status))
	require.EqualValues(t, end.ID, status.Head.ID)
	require.Equal(t, end.Root.String(), status.Head.Root)
	require.Less(t, status.AsOf, uint64(end.ID))
	require.Empty(t, said)
	out, _ = do("status", "-q")
	require.Contains(t, out, "time, cells and intents are as of #")
	for _, args := range [][]string{{"cell", "list"}, {"cell", "list", "-o", "jsonl", "-q"}, {"intent", "list"}} {
		_, said = do(args...)
		require.Contains(t, said, "cells and intents are shown as of #", args)
	}
	var o, s bytes.Buffer
	require.Equal(t, exitUsage, run(t.Context(), Options{}, []string{"-w", left, "diff", "3", "head"}, nil, &o, &s))
	require.Contains(t, s.String(), "no Go reducer ticket@1")
	require.Contains(t, s.String(), "hint: a program that has it")
	for _, args := range [][]string{{"tail"}, {"why", "2"}, {"graph", "2"}, {"export", left + ".jsonl"}, {"backup", left + ".backup"}, {"cell", "list", "--limit", "1"}} {
		_, said = do(args...)
		require.Equal(t, args[0] == "cell", bytes.Contains([]byte(said), []byte("shown as of")), args)
	}
}
