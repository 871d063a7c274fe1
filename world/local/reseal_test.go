package local_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

func passphraseOf(text string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(text), nil }
}

// TestResealedKeyringOpensWithTheNewPassphraseOnly, in a directory and in a store.
func TestResealedKeyringOpensWithTheNewPassphraseOnly(t *testing.T) {
	for name, made := range map[string]func(*testing.T) (string, local.Options){
		"in a directory": func(t *testing.T) (string, local.Options) {
			t.Helper()
			dir, opts := create(t), local.Options{Passphrase: passphraseOf("open")}
			require.ErrorIs(t, local.Reseal(dir, opts, passphraseOf("other")), local.ErrNotSealed)
			require.NoError(t, local.Seal(dir, opts))
			return dir, opts
		},
		"in a store": func(t *testing.T) (string, local.Options) {
			t.Helper()
			dir, opts := files(t), inStore(t)
			require.NoError(t, local.Create(dir, local.CreateOptions{ID: "w", Sealed: true}, opts))
			return dir, opts
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, opts := made(t)
			require.Error(t, local.Reseal(dir, opts, passphraseOf("")))
			require.NoError(t, local.Reseal(dir, opts, passphraseOf("other")))
			_, err := local.Open(dir, opts)
			require.ErrorIs(t, err, receipt.ErrPassphrase)
			require.ErrorIs(t, local.Reseal(dir, opts, passphraseOf("open")), receipt.ErrPassphrase)
			opts.Passphrase = passphraseOf("other")
			w, err := local.Open(dir, opts)
			require.NoError(t, err)
			live(t, w)
			require.NoError(t, w.Close())
		})
	}
}
