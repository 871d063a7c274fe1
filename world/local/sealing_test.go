package local

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

// TestKeyringsOfOneSealingTakeOneKey, whatever they are of, and no other passphrase opens them.
func TestKeyringsOfOneSealingTakeOneKey(t *testing.T) {
	sealing := NewSealing("a store")
	opts := func(s *Sealing, passphrase string) Options {
		return Options{Sealing: s, Passphrase: func() ([]byte, error) { return []byte(passphrase), nil }}
	}
	var files [][]byte
	for _, id := range []string{"a", "b"} {
		r, err := CreateOptions{ID: id, Sealed: true}.keyring(opts(sealing, "open"))
		require.NoError(t, err)
		data, err := r.encode()
		require.NoError(t, err)
		files = append(files, data)
		for range 2 {
			back, err := decodeKeyring(data, opts(sealing, "open"))
			require.NoError(t, err)
			require.Equal(t, id, back.keys.World())
		}
	}
	require.Len(t, sealing.keys, 1)
	require.True(t, bytes.Contains(files[0], sealing.salt))
	require.NotEqual(t, files[0], files[1])
	_, err := decodeKeyring(files[0], opts(sealing, "other"))
	require.ErrorIs(t, err, receipt.ErrPassphrase)
	back, err := decodeKeyring(files[0], opts(nil, "open"))
	require.NoError(t, err, "without it, too")
	require.Equal(t, "a", back.keys.World())
	data, err := ring{keys: back.keys, passphrase: []byte("open")}.encode()
	require.NoError(t, err)
	require.False(t, bytes.Contains(data, sealing.salt), "a directory has a salt of its own")
	require.NotEqual(t, NewSealing("another store").salt, sealing.salt)
}
