package shared_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/serve/shared"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestAWorldMovesBetweenStores, also where that was interrupted between its parts, and lives in one.
func TestAWorldMovesBetweenStores(t *testing.T) {
	opts := local.Options{Passphrase: func() ([]byte, error) { return []byte("open"), nil }}
	copies := t.TempDir()
	var stores []*shared.Store
	for range 2 {
		url := pgtest.URL(t)
		require.NoError(t, pglog.Init(t.Context(), url))
		s, err := shared.Open(t.Context(), url, shared.Options{Copies: copies})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		stores = append(stores, s)
	}
	from, to := stores[0], stores[1]
	loaded, err := local.Load(filepath.Join("..", "..", "examples", "counter", local.ManifestFile), opts)
	require.NoError(t, err)
	live := func() (n int) {
		for _, s := range stores {
			for w, err := range s.List(t.Context()) {
				require.NoError(t, err)
				if w.State == "live" {
					n++
				}
			}
		}
		return n
	}
	for _, interrupted := range []string{"never", "when it was out", "when it was in"} {
		id := "w-" + interrupted[len(interrupted)-2:]
		require.NoError(t, from.Create(t.Context(), id, loaded, local.CreateOptions{}, opts))
		was := live()
		told := func() string {
			for w, err := range from.List(t.Context()) {
				require.NoError(t, err)
				if w.ID == id {
					return w.To
				}
			}
			return ""
		}
		dir := filepath.Join(copies, "moving", from.ID(), id)
		if interrupted != "never" {
			require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o700))
			_, err := from.MoveOut(t.Context(), id, dir, opts)
			require.NoError(t, err)
			require.Equal(t, was-1, live())
		}
		if interrupted == "when it was in" {
			_, err := to.MoveIn(t.Context(), dir, opts, "")
			require.NoError(t, err)
		}
		done, err := from.MoveTo(t.Context(), id, to, opts)
		require.NoError(t, err, interrupted)
		require.Equal(t, "store "+to.ID(), done.To)
		require.Equal(t, was, live(), interrupted)
		require.Contains(t, told(), "store "+to.ID(), "and not the directory on its way")
		w, err := to.World(id)
		require.NoError(t, err)
		lw, err := local.Open(w.Dir, w.In(opts))
		require.NoError(t, err)
		require.NoError(t, lw.Close())
		var moved *local.MovedError
		_, err = from.MoveTo(t.Context(), id, to, opts)
		require.ErrorAs(t, err, &moved, "again")
		require.Contains(t, moved.Where, to.ID())
	}
	_, err = to.MoveTo(t.Context(), "w-er", to, opts)
	require.Error(t, err, "it is there")
	for n := range 5 { // the last time with what an interrupted move of before has left
		from, to = to, from
		dir := filepath.Join(copies, "moving", from.ID(), "w-er")
		if n == 2 {
			_, err := from.MoveOut(t.Context(), "w-er", dir, opts)
			require.NoError(t, err)
			require.NoError(t, os.CopyFS(dir+"-left", os.DirFS(dir)))
			require.NoError(t, os.Chmod(filepath.Join(dir+"-left", ".world", "keyring"), 0o600))
		}
		if n == 4 {
			require.NoError(t, os.Rename(dir+"-left", dir))
			mark := filepath.Join(dir, ".world", "moved")
			text, err := os.ReadFile(mark)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(mark, bytes.Replace(text, []byte("here"), []byte("to"), 1), 0o600))
		}
		_, err := from.MoveTo(t.Context(), "w-er", to, opts)
		require.NoError(t, err, n)
		require.NoDirExists(t, dir)
		for w, err := range from.List(t.Context()) {
			require.NoError(t, err)
			require.Contains(t, w.To, "world "+w.ID+" of store "+to.ID()+", copy ")
			require.Equal(t, "moved", w.State)
			break
		}
	}
}
