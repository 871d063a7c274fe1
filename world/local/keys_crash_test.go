package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/receipt"
)

func made(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../worldtest/testdata/bots")))
	require.NoError(t, Create(dir, CreateOptions{}, Options{}))
	return dir, filepath.Join(dir, hiddenDir, keyringFile)
}

// A process that is killed between writing the new keyring and renaming it
// leaves the old one, and the next owner removes the new one, which may be the
// unsealed form of a sealed keyring.
func TestKilledReplacementLeavesTheOldKeyring(t *testing.T) {
	dir, path := made(t)
	was, err := readKeyring(path, Options{})
	require.NoError(t, err)
	rotated, err := was.keys.Rotate(randomBytes(receipt.SecretBytes))
	require.NoError(t, err)
	for _, next := range []func() error{
		func() error { _, err := Verify(t.Context(), dir, Options{}, Verification{}); return err },
		func() error { return Unseal(dir, Options{}) }, // refused, as it is not sealed
	} {
		require.NoError(t, writeKeyring(path+replacing, ring{keys: rotated})) // and here it is killed
		if err := next(); err != nil {
			require.ErrorIs(t, err, ErrNotSealed)
		}
		require.NoFileExists(t, path+replacing)
		now, err := readKeyring(path, Options{})
		require.NoError(t, err)
		require.Equal(t, was.file, now.file)
	}
	require.NoError(t, os.WriteFile(path+replacing, []byte("half"), 0o600))
	keys, err := Rotate(t.Context(), dir, Options{}, "ada")
	require.NoError(t, err)
	require.Len(t, keys.Keys(), 2)
	require.NoFileExists(t, path+replacing)
}

// Where the new keyring cannot take the old one's place, the old one stays and
// the new one, which nobody has used, does not.
func TestReplacementThatFailsLeavesNothing(t *testing.T) {
	dir, path := made(t)
	lw, err := own(dir, Options{})
	require.NoError(t, err)
	aside := path + ".aside"
	require.NoError(t, os.Rename(path, aside))
	require.NoError(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700))
	_, err = lw.rotate(nil)
	require.Error(t, err)
	require.NoFileExists(t, path+replacing)
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.Rename(aside, path))
	require.NoError(t, lw.abandon())
	_, err = Rotate(t.Context(), dir, Options{}, "ada")
	require.NoError(t, err)
}

// Whoever has read the keyring before another process rotated it, and becomes
// the owner after that, signs with the new key.
func TestOwnerHasTheKeyringOfNow(t *testing.T) {
	dir, path := made(t)
	stale, err := readKeyring(path, Options{})
	require.NoError(t, err)
	same, err := latestKeyring(path, stale, Options{})
	require.NoError(t, err)
	require.Same(t, stale.keys, same.keys)
	rotated, err := Rotate(t.Context(), dir, Options{}, "ada")
	require.NoError(t, err)
	now, err := latestKeyring(path, stale, Options{})
	require.NoError(t, err)
	require.Equal(t, rotated.Keys(), now.keys.Keys())
}

func TestKeyringThatIsTooLargeIsNotRead(t *testing.T) {
	dir, path := made(t)
	require.NoError(t, os.Truncate(path, maxKeyringBytes+1))
	_, err := Open(dir, Options{})
	var keyring *KeyringError
	require.ErrorAs(t, err, &keyring)
	require.ErrorIs(t, err, file.ErrSize)
}
