package world_test

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// Revoking a key refuses new receipts under it. It does not undo history.
func TestReceiptsOfARevokedKeyStayInHistory(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a"}}})
	w.Run()
	secret := sha256.Sum256([]byte("worldtest test")) // as worldtest.Keyring makes it
	rotated, err := receipt.NewKeyring("test", []receipt.Epoch{
		{Number: 1, Secret: secret[:], Revoked: true},
		{Number: 2, Secret: bytes.Repeat([]byte{2}, receipt.SecretBytes)},
	})
	require.NoError(t, err)
	done, err := world.Replay(t.Context(), w.Journal, world.ReplayConfig{Keys: rotated, Registry: botRegistry()})
	require.NoError(t, err)
	require.Equal(t, w.StateRoot(), done.StateRoot)

	foreign, err := receipt.NewKeyring("test", []receipt.Epoch{{Number: 1, Secret: bytes.Repeat([]byte{3}, receipt.SecretBytes)}})
	require.NoError(t, err)
	_, err = world.Replay(t.Context(), w.Journal, world.ReplayConfig{Keys: foreign, Registry: botRegistry()})
	require.Error(t, err, "a key that was never the world's")
}
