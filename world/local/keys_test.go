package local_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// opensWith returns options with a passphrase.
func opensWith(passphrase string) local.Options {
	return local.Options{Paranoid: true, Passphrase: func() ([]byte, error) { return []byte(passphrase), nil }}
}

// keyringOf returns the content of a world's keyring file.
func keyringOf(t testing.TB, dir string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, ".world", "keyring"))
	require.NoError(t, err)
	return data
}

// proven requires that a world opens and that all in it is true.
func proven(t testing.TB, dir string, opts local.Options) {
	t.Helper()
	w, err := local.Open(dir, opts)
	require.NoError(t, err)
	r, err := w.Verify(t.Context(), local.Verification{})
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.NoError(t, w.Close())
}

// received returns the stored bytes of a receipt of a world that has lived.
func received(t testing.TB, w *local.World) []byte {
	t.Helper()
	for s, err := range w.Scan(0) {
		require.NoError(t, err)
		rec := s.Record
		require.NoError(t, rec.Load(w))
		body, err := rec.Body()
		require.NoError(t, err)
		if finished, ok := body.(*journal.Finished); ok {
			return finished.Receipt
		}
	}
	require.Fail(t, "no receipt")
	return nil
}

func TestRotatedWorldSignsWithItsNewKey(t *testing.T) {
	dir, head := lived(t)
	was := keyringOf(t, dir)
	keys, err := local.Rotate(t.Context(), dir, local.Options{}, "ada")
	require.NoError(t, err)
	require.Len(t, keys.Keys(), 2)
	info, err := os.Stat(filepath.Join(dir, ".world", "keyring"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	require.NoFileExists(t, filepath.Join(dir, ".world", "keyring.new"))

	w := open(t, dir)
	require.Equal(t, head.ID+1, w.Status().Head.ID, "the journal tells of the rotation")
	head = w.Status().Head
	require.Equal(t, keys.Keys(), w.Keys().Keys())
	old, err := receipt.Decode(received(t, w))
	require.NoError(t, err)
	require.Equal(t, keys.Keys()[0].ID, old.KeyID)
	require.NoError(t, w.Keys().Verify(old))
	live(t, w)
	signed := map[string]bool{}
	for s, err := range w.Scan(head.ID) {
		require.NoError(t, err)
		for _, k := range keys.Keys() {
			rec := s.Record
			require.NoError(t, rec.Load(w))
			signed[k.ID] = signed[k.ID] || bytes.Contains(rec.Payload, []byte(k.ID))
		}
	}
	require.Equal(t, map[string]bool{keys.Keys()[0].ID: false, keys.Keys()[1].ID: true}, signed)
	require.NoError(t, w.Close())
	proven(t, dir, local.Options{})

	// The keyring of before opens the world, but does not know what came later.
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".world", "keyring"), was, 0o600))
	r, err := local.Verify(t.Context(), dir, local.Options{}, local.Verification{})
	require.NoError(t, err)
	require.NotEmpty(t, r.Faults)
}

func TestReceiptOfARevokedKeyIsRefusedAndChangesNothing(t *testing.T) {
	dir, _ := lived(t)
	w := open(t, dir)
	old := received(t, w)
	err := w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Receive(old)) })
	require.ErrorIs(t, err, receipt.ErrDuplicate)
	require.NoError(t, w.Close())

	_, err = local.Rotate(t.Context(), dir, local.Options{}, "ada")
	require.NoError(t, err)
	w = open(t, dir)
	err = w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Receive(old)) })
	require.ErrorIs(t, err, receipt.ErrDuplicate, "rotated is not revoked")
	require.NoError(t, w.Close())

	keys, err := local.Rotate(t.Context(), dir, local.Options{}, "ada", 1, 2)
	require.NoError(t, err)
	require.Len(t, keys.Keys(), 3)
	w = open(t, dir) // and the anchor is that of the revoked key
	head := w.Status().Head
	err = w.Update(func(w *world.World) error { return worldtest.ErrorOf(w.Receive(old)) })
	require.ErrorIs(t, err, receipt.ErrRevokedKey)
	require.Equal(t, head, w.Status().Head)
	live(t, w)
	require.NoError(t, w.Close())
	proven(t, dir, local.Options{})
}

func TestRotationThatFailsChangesNothing(t *testing.T) {
	dir, _ := lived(t)
	was := keyringOf(t, dir)
	for _, epoch := range []uint64{0, 2, 3} {
		_, err := local.Rotate(t.Context(), dir, local.Options{}, "ada", epoch)
		require.ErrorIs(t, err, receipt.ErrNoEpoch, epoch)
	}
	w := open(t, dir)
	_, err := local.Rotate(t.Context(), dir, local.Options{}, "ada")
	locked := (*store.LockedError)(nil)
	require.ErrorAs(t, err, &locked)
	require.ErrorAs(t, local.Seal(dir, opensWith("x")), &locked)
	require.NoError(t, w.Close())
	require.Equal(t, was, keyringOf(t, dir))

	_, err = local.Rotate(t.Context(), t.TempDir(), local.Options{}, "ada")
	require.ErrorIs(t, err, local.ErrNoWorld)
}

// A first key would change the anchor's.
func TestWorldWithoutKeysDoesNotRotate(t *testing.T) {
	dir, _ := lived(t)
	bare := t.TempDir()
	require.NoError(t, local.Import(t.Context(), bare, bytes.NewReader(wholeOf(t, dir)), nil, local.Options{}, nil))
	_, err := local.Rotate(t.Context(), bare, local.Options{}, "ada")
	require.ErrorIs(t, err, local.ErrNoKeys)
	require.ErrorIs(t, local.Seal(bare, opensWith("x")), local.ErrNoKeys)
	require.NoError(t, open(t, bare).Close())
}

func TestSealedWorldOpensWithItsPassphraseOnly(t *testing.T) {
	dir, _ := lived(t)
	plain := keyringOf(t, dir)
	require.NoError(t, local.Seal(dir, opensWith("open sesame")))
	sealed := keyringOf(t, dir)
	require.True(t, receipt.Sealed(sealed))

	keyring := (*local.KeyringError)(nil)
	for _, touch := range []func(local.Options) error{
		func(o local.Options) error { _, err := local.Open(dir, o); return err },
		func(o local.Options) error {
			_, err := local.Verify(t.Context(), dir, o, local.Verification{})
			return err
		},
		func(o local.Options) error { _, err := local.Rotate(t.Context(), dir, o, "ada"); return err },
		func(o local.Options) error { return local.Unseal(dir, o) },
	} {
		err := touch(local.Options{})
		require.ErrorIs(t, err, local.ErrSealed)
		require.ErrorAs(t, err, &keyring)
		require.ErrorIs(t, touch(opensWith("open")), receipt.ErrPassphrase)
		nobody := local.Options{Passphrase: func() ([]byte, error) { return nil, fs.ErrClosed }}
		require.ErrorIs(t, touch(nobody), fs.ErrClosed)
	}
	require.Equal(t, sealed, keyringOf(t, dir))

	_, err := local.Rotate(t.Context(), dir, opensWith("open sesame"), "ada")
	require.NoError(t, err)
	require.True(t, receipt.Sealed(keyringOf(t, dir)), "rotation keeps the seal")
	salt := bytes.Index(sealed, []byte("salt")) + len("salt") + 1
	require.NotContains(t, string(keyringOf(t, dir)), string(sealed[salt:salt+16]), "a new salt each time")
	require.ErrorIs(t, local.Seal(dir, opensWith("open sesame")), local.ErrSealed)
	proven(t, dir, opensWith("open sesame"))

	err = local.Unseal(dir, opensWith("open sesame"))
	if testlog.On() { // whoever may read the database would have the keys
		require.ErrorAs(t, err, new(*pglog.RefusedError))
		require.True(t, receipt.Sealed(keyringOf(t, dir)))
		return
	}
	require.NoError(t, err)
	require.ErrorIs(t, local.Unseal(dir, local.Options{}), local.ErrNotSealed)
	keys, err := receipt.DecodeKeyring(keyringOf(t, dir))
	require.NoError(t, err)
	before, err := receipt.DecodeKeyring(plain)
	require.NoError(t, err)
	require.Equal(t, before.Keys()[0].ID, keys.Keys()[0].ID)
	require.Len(t, keys.Keys(), 2)
	proven(t, dir, local.Options{})
}

func TestSealingTakesAPassphrase(t *testing.T) {
	dir := create(t)
	was := keyringOf(t, dir)
	require.Error(t, local.Seal(dir, local.Options{}))
	require.Error(t, local.Seal(dir, opensWith("")))
	none := local.Options{Passphrase: func() ([]byte, error) { return nil, nil }}
	require.Error(t, local.Seal(dir, none))
	require.Equal(t, was, keyringOf(t, dir))
}

func TestImportWithASealedKeyringIsSealed(t *testing.T) {
	dir, head := lived(t)
	journal := wholeOf(t, dir)
	require.NoError(t, local.Seal(dir, opensWith("open sesame")))
	importRefused(t, journal, keyringOf(t, dir))
	again := t.TempDir()
	require.NoError(t, local.Import(t.Context(), again, bytes.NewReader(journal), keyringOf(t, dir), opensWith("open sesame"), nil))
	_, err := local.Open(again, local.Options{})
	require.ErrorIs(t, err, local.ErrSealed)
	w, err := local.Open(again, opensWith("open sesame"))
	require.NoError(t, err)
	require.Equal(t, head, w.Status().Head)
	live(t, w)
	require.NoError(t, w.Close())
	proven(t, again, opensWith("open sesame"))

	twin := files(t)
	birth := local.CreateOptions{ID: "test", Keyring: keyringOf(t, dir)}
	require.ErrorIs(t, local.Create(twin, birth, local.Options{}), local.ErrSealed)
	require.NoError(t, local.Create(twin, birth, opensWith("open sesame")))
	require.True(t, receipt.Sealed(keyringOf(t, twin)))
	proven(t, twin, opensWith("open sesame"))
}
