package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

// inStore opens the world w of a new store, in a process of its own each time.
func inStore(t *testing.T) local.Options {
	t.Helper()
	url := pgtest.URL(t)
	require.NoError(t, pglog.Init(t.Context(), url))
	s, err := pglog.Open(t.Context(), url, pglog.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	made := false
	return local.Options{
		Passphrase: func() ([]byte, error) { return []byte("open"), nil },
		Log: func(key []byte) (journal.Log, error) {
			if key != nil && !made {
				made = true
				if err := s.Make(context.Background(), "w", key, journal.Making{}); err != nil {
					return nil, err
				}
			}
			return s.World("w", pglog.Claim{Key: key, Made: true}), nil
		},
	}
}

// TestWorldInALogHasItsKeyringThere, sealed, so that nothing of its directory is needed.
func TestWorldInALogHasItsKeyringThere(t *testing.T) {
	dir, opts := files(t), inStore(t)
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "w", Sealed: true}, opts))
	lost := func() string {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, ".world")))
		return dir
	}
	w, err := local.Open(lost(), opts)
	require.NoError(t, err)
	live(t, w)
	head := w.Status().Head
	require.NoError(t, w.Close())
	before, err := os.ReadFile(filepath.Join(dir, ".world", "keyring"))
	require.NoError(t, err)
	require.True(t, receipt.Sealed(before))

	keys, err := local.Rotate(t.Context(), dir, opts, "ada")
	require.NoError(t, err)
	require.Len(t, keys.Keys(), 2)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".world", "keyring"), before, 0o600)) // as another machine has it
	for _, at := range []string{dir, lost()} {
		look, err := local.OpenReadOnly(at, opts)
		require.NoError(t, err)
		require.Greater(t, look.Status().Head.ID, head.ID)
		require.NoError(t, look.Close())
		w, err := local.Open(at, opts)
		require.NoError(t, err)
		require.Len(t, w.Keys().Keys(), 2)
		live(t, w)
		require.NoError(t, w.Close())
	}
	r, err := local.Verify(t.Context(), lost(), opts, local.Verification{})
	require.NoError(t, err)
	require.Empty(t, r.Faults)

	var refused *pglog.RefusedError
	require.ErrorAs(t, local.Unseal(dir, opts), &refused)
	require.Equal(t, pglog.Unsealed, refused.State)
	opts.Passphrase = func() ([]byte, error) { return []byte("wrong"), nil }
	_, err = local.Open(lost(), opts)
	require.ErrorIs(t, err, receipt.ErrPassphrase)
}

// TestWorldIsNotMadeInALogWithoutAPassphrase, and nothing is left of it.
func TestWorldIsNotMadeInALogWithoutAPassphrase(t *testing.T) {
	dir, opts := files(t), inStore(t)
	opts.Passphrase = nil
	require.ErrorIs(t, local.Create(dir, local.CreateOptions{ID: "w", Sealed: true}, opts), local.ErrNotSealed)
	none := errors.New("nobody is there")
	opts.Passphrase = func() ([]byte, error) { return nil, none }
	require.ErrorIs(t, local.Create(dir, local.CreateOptions{ID: "w", Sealed: true}, opts), none)
	_, err := local.OpenReadOnly(dir, opts)
	var refused *pglog.RefusedError
	require.ErrorAs(t, err, &refused)
}

// keyless is a log whose keyring somebody has deleted.
type keyless struct{ local.KeyringLog }

func (keyless) Keyring(context.Context) ([]byte, error) { return nil, journal.ErrNotFound }

// TestAKeyringThatIsLostInALogIsMissed, and the world is not said to be missing.
func TestAKeyringThatIsLostInALogIsMissed(t *testing.T) {
	dir, opts := files(t), inStore(t)
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "w", Sealed: true}, opts))
	log := opts.Log
	opts.Log = func(key []byte) (journal.Log, error) {
		l, err := log(key)
		return keyless{l.(local.KeyringLog)}, err
	}
	w, err := local.Open(dir, opts) // the directory has it
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".world")))
	for _, err := range []error{errorOf(local.Open(dir, opts)), errorOf(local.OpenReadOnly(dir, opts)), errorOf(local.Verify(t.Context(), dir, opts, local.Verification{}))} {
		require.ErrorIs(t, err, journal.ErrNotFound, "as the log says it")
		require.NotErrorIs(t, err, local.ErrNoWorld)
	}
}

func errorOf[T any](_ T, err error) error { return err }
