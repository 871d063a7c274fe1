package local_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

func TestAnEditedSourceIsSeenAndChangesNothing(t *testing.T) {
	dir, head := lived(t)
	path := filepath.Join(dir, local.ManifestFile)
	was, err := os.ReadFile(path)
	require.NoError(t, err)
	w := open(t, dir)
	require.NoError(t, w.CheckSource())
	require.NoError(t, os.WriteFile(path, bytes.Replace(was, []byte("version: "), []byte("version: 9"), 1), 0o600))
	require.ErrorIs(t, w.CheckSource(), local.ErrEdited)
	require.NoError(t, os.WriteFile(path, []byte("wrold: x\n"), 0o600))
	faults := (*source.Error)(nil)
	require.ErrorAs(t, w.CheckSource(), &faults)
	require.NoError(t, os.WriteFile(path, was, 0o600))
	require.NoError(t, w.CheckSource())
	code, err := filepath.Glob(filepath.Join(dir, "*.star"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(code[0], []byte("def reduce("), 0o600))
	require.ErrorAs(t, w.CheckSource(), &faults, "what was edited is compiled")
	require.NoError(t, os.Remove(path))
	require.NoError(t, w.CheckSource(), "a world needs none")
	require.Equal(t, head, w.Status().Head)
	require.NoError(t, w.Close())
}

func TestAKeyringThatCannotBeUsedIsNamed(t *testing.T) {
	dir, _ := lived(t)
	path := filepath.Join(dir, ".world", "keyring")
	require.NoError(t, os.Chmod(path, 0o644))
	_, err := local.Open(dir, local.Options{})
	keyring := (*local.KeyringError)(nil)
	require.ErrorAs(t, err, &keyring)
	require.ErrorIs(t, err, local.ErrExposedKeys)
	require.Equal(t, path, keyring.Path)
	require.NoError(t, os.Remove(path))
	_, err = local.Verify(t.Context(), dir, local.Options{}, local.Verification{})
	require.ErrorAs(t, err, &keyring)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestABadIDIsRefused(t *testing.T) {
	for _, id := range []string{"no spaces", "a/b", "\n", string(make([]byte, 65))} {
		require.ErrorIs(t, local.Create(files(t), local.Birth{ID: id}, local.Options{}), local.ErrBadID, id)
	}
}

// A world that cannot be opened any more is verified all the same.
func TestAWorldTooDamagedToOpenIsReported(t *testing.T) {
	dir, head := lived(t)
	w := open(t, dir)
	require.NoError(t, w.Close())
	tables, err := filepath.Glob(filepath.Join(dir, ".world", "store", "*.sst"))
	require.NoError(t, err)
	reported := false
	for _, table := range tables {
		was, err := os.ReadFile(table)
		require.NoError(t, err)
		bad := append([]byte(nil), was...)
		bad[1] ^= 1
		copied := filepath.Join(t.TempDir(), "copy")
		require.NoError(t, os.WriteFile(table, bad, 0o600))
		require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
		require.NoError(t, os.Chmod(filepath.Join(copied, ".world", "keyring"), 0o600))
		require.NoError(t, os.WriteFile(table, was, 0o600))
		_, err = local.Open(copied, local.Options{})
		damage := (*store.DamageError)(nil)
		if err == nil {
			continue
		}
		require.ErrorAs(t, err, &damage)
		if r, err := local.Verify(t.Context(), copied, local.Options{}, local.Verification{}); err == nil {
			require.NotEmpty(t, r.Faults)
			reported = true
		}
	}
	require.True(t, reported)
	all := uint64(0)
	r, err := local.Verify(t.Context(), dir, local.Options{}, local.Verification{Progress: func(_, of uint64) { all = of }})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.Equal(t, uint64(head.ID), all)
}

func TestLeftoversOfKilledCreatesAreSweptUnlessAtWork(t *testing.T) {
	dir := files(t)
	dead, alive := filepath.Join(dir, ".world.new-1"), filepath.Join(dir, ".world.new-2")
	require.NoError(t, os.Mkdir(dead, 0o700))
	s, err := store.Create(alive, store.Options{})
	require.NoError(t, err)
	require.NoError(t, local.Create(dir, local.Birth{}, local.Options{}))
	require.NoDirExists(t, dead)
	require.DirExists(t, alive)
	require.NoError(t, s.Close())
}
