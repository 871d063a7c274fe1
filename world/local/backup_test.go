package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

func TestBackupIsTheWorldAsItWas(t *testing.T) {
	dir, head := lived(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".world", "secrets"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".world", "secrets", "token"), []byte("x"), 0o600))
	w := open(t, dir)
	to := filepath.Join(t.TempDir(), "backup")
	done, err := w.Backup(to)
	require.NoError(t, err)
	require.Equal(t, &local.BackedUp{ID: "test", Head: head, Dir: to, Linked: done.Linked}, done)
	live(t, w) // the world goes on
	_, err = w.Backup(to)
	require.ErrorIs(t, err, local.ErrExists)
	require.NoError(t, w.Close())

	keyring := filepath.Join(".world", "keyring")
	want, err := os.ReadFile(filepath.Join(dir, keyring))
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(to, keyring))
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NoDirExists(t, filepath.Join(to, ".world", "secrets"))

	b := open(t, to)
	require.Equal(t, head, b.Status().Head)
	require.Positive(t, sound(t, b).Receipts.Checked)
	live(t, b)
	require.NoError(t, b.Close())
}

func TestBackupIsTakenWhileTheWorldRuns(t *testing.T) {
	dir := create(t)
	w := open(t, dir)
	done := make(chan error)
	go func() {
		for range 20 {
			if _, err := w.Submit(t.Context(), "go", map[string]any{"to": "a", "do": []any{map[string]any{"effect": "tool.a", "param": "x"}}}); err != nil {
				done <- err
				return
			}
			if err := w.Run(t.Context()); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	to := filepath.Join(t.TempDir(), "backup")
	made, err := w.Backup(to)
	require.NoError(t, err)
	require.NoError(t, <-done)
	sound(t, w)
	require.NoError(t, w.Close())
	b := open(t, to)
	require.GreaterOrEqual(t, b.Status().Head.ID, made.Head.ID)
	require.NoError(t, b.Run(t.Context()))
	require.Zero(t, b.Status().Intents[receipt.StateInDoubt])
	sound(t, b)
	require.NoError(t, b.Close())
}

func TestRestoreMakesTheWorldOfABackup(t *testing.T) {
	dir, head := lived(t)
	w := open(t, dir)
	backup := filepath.Join(t.TempDir(), "backup")
	_, err := w.Backup(backup)
	require.NoError(t, err)
	live(t, w)
	require.NoError(t, w.Close())

	_, err = local.Restore(backup, dir, local.Options{})
	require.ErrorIs(t, err, local.ErrExists, "not over a world")
	require.NoError(t, os.Rename(dir, dir+"-away"))
	done, err := local.Restore(backup, dir, local.Options{})
	require.NoError(t, err)
	require.Equal(t, &local.BackedUp{ID: "test", Head: head, Dir: dir, Linked: done.Linked}, done)
	w = open(t, dir)
	require.Equal(t, head, w.Status().Head)
	sound(t, w)
	live(t, w)
	require.NoError(t, w.Close())
	b := open(t, backup)
	require.Equal(t, head, b.Status().Head, "the backup is as it was")
	require.NoError(t, b.Close())
}

func TestRestoreRefusesWhatIsNoBackup(t *testing.T) {
	none := t.TempDir()
	to := filepath.Join(t.TempDir(), "restored")
	_, err := local.Restore(none, to, local.Options{})
	require.ErrorIs(t, err, local.ErrNoWorld)
	for name, c := range map[string]struct {
		damage func(hidden string) error
		want   error
	}{
		"no store":  {func(hidden string) error { return os.RemoveAll(filepath.Join(hidden, "store")) }, store.ErrNotWorld},
		"no anchor": {func(hidden string) error { return os.Remove(filepath.Join(hidden, "anchor")) }, store.ErrNoAnchor},
		"other keyring": {func(hidden string) error {
			return os.WriteFile(filepath.Join(hidden, "keyring"), ring(t, "test", 9), 0o600)
		}, store.ErrBadAnchor},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := lived(t)
			w := open(t, dir)
			backup := filepath.Join(t.TempDir(), "backup")
			_, err := w.Backup(backup)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.NoError(t, c.damage(filepath.Join(backup, ".world")))
			_, err = local.Restore(backup, to, local.Options{})
			require.ErrorIs(t, err, c.want)
			require.NoDirExists(t, to)
		})
	}
	dir, _ := lived(t)
	w := open(t, dir)
	_, err = local.Restore(dir, to, local.Options{})
	var locked *store.LockedError
	require.ErrorAs(t, err, &locked)
	require.NoError(t, w.Close())
}
