package local_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// inATempOf has what is made in the directory for temporary files made in one of a test.
func inATempOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

// TestWorldInALogIsLookedAtWhileItsOwnerRuns, in the owner's directory and in one that has the
// keyring alone: by looks, verifications and exports, and the owner loses nothing by it.
func TestWorldInALogIsLookedAtWhileItsOwnerRuns(t *testing.T) {
	if shared == nil {
		shared = &logtest.Server{}
		defer func() { shared = nil }()
	}
	temp := inATempOf(t)
	dir := create(t)
	elsewhere := t.TempDir()
	hidden := filepath.Join(elsewhere, ".world")
	require.NoError(t, os.Mkdir(hidden, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(hidden, "keyring"), ring(t, "test", 1), 0o600))
	w := open(t, dir)
	live(t, w)
	done := make(chan error, 1)
	go func() {
		for range 10 {
			_, err := w.Submit(context.Background(), "go", map[string]any{
				"to": "a", "say": strings.Repeat("x", 5000), "do": []any{map[string]any{"effect": "tool.a", "param": "x"}},
			})
			if err == nil {
				err = w.Run(context.Background())
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	last := journal.Head{}
	for over := false; !over; {
		select {
		case err := <-done:
			require.NoError(t, err)
			over = true
		default:
		}
		for _, dir := range []string{dir, elsewhere} {
			last = requireLooked(t, dir, last)
		}
	}
	require.Equal(t, w.Status().Head, last)
	var own, looked bytes.Buffer
	require.NoError(t, w.Export(&own, local.JSONLines, nil))
	look, err := local.OpenReadOnly(elsewhere, inLog(local.Options{}))
	require.NoError(t, err)
	require.Equal(t, cells(t, w), cells(t, look))
	require.NoError(t, look.Export(&looked, local.JSONLines, nil))
	require.Equal(t, own.Bytes(), looked.Bytes())
	require.NoError(t, look.Close())
	live(t, w)
	require.NoError(t, w.Close())
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
	left, err = os.ReadDir(hidden)
	require.NoError(t, err)
	require.Len(t, left, 1, "who looks leaves nothing")
}

// requireLooked verifies a world as it is, looks at it, and returns its head, which is not before
// the last.
func requireLooked(t *testing.T, dir string, last journal.Head) journal.Head {
	t.Helper()
	r, err := local.Verify(t.Context(), dir, inLog(local.Options{}), local.Verification{Memory: 1})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	look, err := local.OpenReadOnly(dir, inLog(local.Options{}))
	require.NoError(t, err)
	head := look.Status().Head
	require.GreaterOrEqual(t, head.ID, last.ID)
	_, err = look.Submit(t.Context(), "go", map[string]any{"to": "a"})
	require.ErrorIs(t, err, local.ErrNoKeys)
	requireProven(t, look)
	require.NoError(t, look.Close())
	return head
}

// TestWorldInALogIsCopiedIntoADirectory as a backup, which is the same world, and as a fork, also
// where nothing of the world was read here before.
func TestWorldInALogIsCopiedIntoADirectory(t *testing.T) {
	if shared == nil {
		shared, forgotten = &logtest.Server{}, true
		defer func() { shared, forgotten = nil, false }()
	}
	dir := create(t)
	w := open(t, dir)
	live(t, w)
	_, err := w.Checkpoint()
	require.NoError(t, err)
	middle := w.Status().Head.ID
	live(t, w)
	require.NoError(t, w.Close())
	w = open(t, dir)
	to := filepath.Join(t.TempDir(), "backup")
	done, err := w.Backup(to)
	require.NoError(t, err)
	want := requireEqualWorlds(t, w, to)
	require.Equal(t, want, done.Head)
	fork := filepath.Join(t.TempDir(), "fork")
	forked, err := w.Fork(t.Context(), fork, local.ForkOptions{At: middle, Actor: "ada"})
	require.NoError(t, err)
	require.LessOrEqual(t, forked.At, middle)
	live(t, w) // it goes on
	require.NoError(t, w.Close())
	for _, dir := range []string{to, fork} {
		w, err := local.Open(dir, local.Options{})
		require.NoError(t, err)
		_, err = w.Submit(t.Context(), "ping", map[string]any{"to": "a"})
		require.NoError(t, err)
		require.NoError(t, w.Run(t.Context()))
		requireProven(t, w)
		require.NoError(t, w.Close())
	}
}

// TestEarlierRulesAreCopiedOutOfALog has a world in a log copied that was not read here before, and
// that runs other rules than it was born with: nobody needs the first to open it, but to verify it.
func TestEarlierRulesAreCopiedOutOfALog(t *testing.T) {
	shared, forgotten = &logtest.Server{}, true
	defer func() { shared, forgotten = nil, false }()
	dir := t.TempDir()
	for name, text := range map[string]string{"world.yaml": worldtest.Caller("changing", "tool.a: {adapter: stub, config: {answers: answers.json}}"), "caller.star": changingReducer, "answers.json": `{"kind": "tool.a", "payload": 1}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "changing", Keyring: ring(t, "changing", 1)}, inLog(local.Options{})))
	w := open(t, dir)
	later := []byte(changingReducer + "# and so on\n")
	var next manifest.Manifest
	w.View(func(w *world.Moment) { next = *w.Manifest() })
	next.Reducers = maps.Clone(next.Reducers)
	caller := next.Reducers["caller"]
	caller.Source = canon.Sum(later)
	next.Reducers["caller"] = caller
	require.NoError(t, worldtest.ErrorOf(w.Apply(t.Context(), approve(t, w, &next, later), "ann")))
	_, err := w.Checkpoint()
	require.NoError(t, err)
	require.NoError(t, w.Close())
	w = open(t, dir)
	to := filepath.Join(t.TempDir(), "backup")
	_, err = w.Backup(to)
	require.NoError(t, err)
	requireEqualWorlds(t, w, to)
	require.NoError(t, w.Close())
}

// requireEqualWorlds compares a world with the one in a directory, and returns their head.
func requireEqualWorlds(t *testing.T, w *local.World, dir string) journal.Head {
	t.Helper()
	c, err := local.OpenReadOnly(dir, local.Options{})
	require.NoError(t, err)
	require.Equal(t, w.Status().Head, c.Status().Head)
	require.Equal(t, cells(t, w), cells(t, c))
	want, err := w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	var a, b bytes.Buffer
	require.NoError(t, w.Export(&a, local.JSONLines, nil))
	require.NoError(t, c.Export(&b, local.JSONLines, nil))
	require.Equal(t, a.Bytes(), b.Bytes())
	require.NoError(t, c.Close())
	got, err := local.Verify(t.Context(), dir, local.Options{}, local.Verification{})
	require.NoError(t, err)
	require.Empty(t, got.Faults)
	require.Equal(t, want.ExecutionHash, got.ExecutionHash)
	require.Equal(t, want.StateRoot, got.StateRoot)
	require.Equal(t, want.Checkpoints, got.Checkpoints)
	return w.Status().Head
}
