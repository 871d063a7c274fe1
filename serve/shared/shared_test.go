package shared_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/serve/shared"
	"github.com/worldkernel/worldkernel/world/local"
)

func open(t *testing.T, url string, o shared.Options) *shared.Store {
	t.Helper()
	o.Copies = t.TempDir()
	s, err := shared.Open(t.Context(), url, o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// TestAWorldThatWasBegunIsMadeAgain, when who had begun it is gone, and lives on without its copy.
func TestAWorldThatWasBegunIsMadeAgain(t *testing.T) {
	url := pgtest.URL(t)
	require.NoError(t, pglog.Init(t.Context(), url))
	killed, err := pglog.Open(t.Context(), url, pglog.Options{})
	require.NoError(t, err)
	key := []byte("a key of thirty-two bytes for it")
	require.NoError(t, killed.Make(t.Context(), "w", key, journal.Making{}))
	_, err = killed.World("w", pglog.Claim{Key: key, Made: true}).Own(t.Context())
	require.NoError(t, err)

	s := open(t, url, shared.Options{})
	opts := local.Options{Passphrase: func() ([]byte, error) { return []byte("open"), nil }}
	loaded, err := local.Load(filepath.Join("..", "..", "examples", "counter", local.ManifestFile), opts)
	require.NoError(t, err)
	birth := local.CreateOptions{}
	var refused *pglog.RefusedError
	require.ErrorAs(t, s.Create(t.Context(), "w", loaded, birth, opts), &refused)
	require.Equal(t, pglog.WorldMade, refused.State)
	killed.Close()
	require.NoError(t, s.Create(t.Context(), "w", loaded, birth, opts))
	require.ErrorAs(t, s.Create(t.Context(), "w", loaded, birth, opts), &refused)
	require.Equal(t, pglog.WorldExists, refused.State)

	w, err := s.World("w")
	require.NoError(t, err)
	opts = w.In(opts)
	var last journal.Head
	for range 2 {
		lw, err := local.Open(w.Dir, opts)
		require.NoError(t, err)
		require.GreaterOrEqual(t, lw.Status().Head.ID, last.ID)
		_, err = lw.Submit(context.Background(), "counter.added", map[string]any{"name": "tea", "by": 1})
		require.NoError(t, err)
		require.NoError(t, lw.Run(t.Context()))
		last = lw.Status().Head
		require.NoError(t, lw.Close())
		require.NoError(t, os.RemoveAll(w.Dir))
	}
	for _, id := range []string{"", "..", "a/b", "-w"} {
		_, err := s.World(id)
		require.ErrorIs(t, err, local.ErrBadID, id)
	}
}

// TestARestoreBesideAMoveOut of the same world makes no second one, whatever of it the move comes before.
func TestARestoreBesideAMoveOut(t *testing.T) {
	url := pgtest.URL(t)
	require.NoError(t, pglog.Init(t.Context(), url))
	s, backup := open(t, url, shared.Options{}), filepath.Join(t.TempDir(), "backup")
	require.NoError(t, s.Create(t.Context(), "w", noted(t), local.CreateOptions{}, sealedOptions()))
	lw, err := local.Open(making{}.in(t, s, "w"))
	require.NoError(t, err)
	_, err = lw.Backup(backup)
	require.NoError(t, errors.Join(err, lw.Close()))
	came := true
	for n := int64(3); came; n++ { // the first look at the server
		came = false
		dir := filepath.Join(t.TempDir(), "out")
		var asked atomic.Int64
		var over atomic.Bool
		proxy := pgtest.Shared(t).Proxy(t, func([]byte) pgtest.Fault {
			if asked.Add(1) == n && !over.Load() {
				came = true
				if _, err := s.MoveOut(t.Context(), "w", dir, sealedOptions()); err != nil {
					t.Error(err)
				}
			}
			return pgtest.None
		})
		other := open(t, proxy.URL(url), shared.Options{})
		_, err := other.Restore(t.Context(), backup, "w", sealedOptions())
		require.Error(t, err, n)
		over.Store(true)
		other.Close()
		is, err := s.Store.World("w", pglog.Claim{Made: true}).Stands(t.Context())
		require.NoError(t, err)
		if !came {
			require.Equal(t, journal.Live, is.State)
			require.Greater(t, n, int64(4))
			return
		}
		require.Equal(t, journal.Moved, is.State, n)
		_, err = s.MoveIn(t.Context(), dir, sealedOptions(), "")
		require.NoError(t, err)
	}
}
