package receipt

import (
	"bytes"
	"crypto/cipher"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/worldkernel/worldkernel/internal/canon"
)

func sealKeys(t testing.TB) *Keyring {
	t.Helper()
	k, err := NewKeyring("w", []Epoch{
		{Number: 1, Secret: bytes.Repeat([]byte("first---"), 4), Revoked: true}, {Number: 2, Secret: bytes.Repeat([]byte("second--"), 4)},
	})
	require.NoError(t, err)
	return k
}

func sealRandom() []byte {
	b := make([]byte, SealRandomBytes)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// cheap returns a sealed keyring that opens fast.
func cheap(t testing.TB, change func(*sealedFile)) []byte {
	t.Helper()
	f := sealedFile{Seal: sealHeader{
		Version: sealVersion, KDF: sealKDF, Cipher: sealCipher, Passes: 1, MemoryKiB: 8, Lanes: 1,
		Salt: sealRandom()[:SealSaltBytes], Nonce: sealRandom()[SealSaltBytes:],
	}}
	_, err := f.seal(sealKeys(t), []byte("open sesame"), argon2.IDKey)
	require.NoError(t, err)
	if change != nil {
		change(&f)
	}
	data, err := canon.Marshal(f)
	require.NoError(t, err)
	return data
}

func TestSealedKeyringOpensWithItsPassphraseOnly(t *testing.T) {
	k := sealKeys(t)
	plain, err := k.Encode()
	require.NoError(t, err)
	data, err := Seal(k, []byte("open sesame"), sealRandom())
	require.NoError(t, err)
	require.True(t, Sealed(data))
	require.False(t, Sealed(plain))
	for _, s := range k.keys {
		require.NotContains(t, string(data), string(s.epoch.Secret))
		require.NotContains(t, string(data), string(s.key))
	}

	back, err := Unseal(data, []byte("open sesame"))
	require.NoError(t, err)
	again, err := back.Encode()
	require.NoError(t, err)
	require.Equal(t, plain, again)

	_, err = Unseal(data, []byte("open sesame "))
	require.ErrorIs(t, err, ErrPassphrase)
	_, err = Unseal(plain, []byte("open sesame"))
	require.ErrorIs(t, err, ErrSeal)
	_, err = DecodeKeyring(data)
	require.Error(t, err)
}

// The key and the box are those of RFC 9106's second recommended option and of
// XChaCha20-Poly1305 over the keyring's file, with the canonical header as
// additional data.
func TestSealIsWhatItSays(t *testing.T) {
	data, err := Seal(sealKeys(t), []byte("open sesame"), sealRandom())
	require.NoError(t, err)
	header, err := canon.FromJSON([]byte(`{"version": 1, "kdf": "argon2id", "cipher": "xchacha20poly1305",
		"passes": 3, "memory_kib": 65536, "lanes": 4, "salt": "S", "nonce": "N"}`))
	require.NoError(t, err)
	header = bytes.Replace(header, []byte("\x61S"), append([]byte{0x50}, sealRandom()[:16]...), 1)
	header = bytes.Replace(header, []byte("\x61N"), append([]byte{0x58, 24}, sealRandom()[16:]...), 1)
	require.True(t, bytes.HasSuffix(data, header), hex.EncodeToString(data))

	key := argon2.IDKey([]byte("open sesame"), sealRandom()[:16], 3, 64*1024, 4, 32)
	box, err := chacha20poly1305.NewX(key)
	require.NoError(t, err)
	plain, err := sealKeys(t).Encode()
	require.NoError(t, err)
	require.Contains(t, string(data), string(box.Seal(nil, sealRandom()[16:], plain, header)))
}

func TestNoChangedSealOpens(t *testing.T) {
	data := cheap(t, nil)
	_, err := Unseal(data, []byte("open sesame"))
	require.NoError(t, err)
	for i := range data {
		changed := bytes.Clone(data)
		changed[i] ^= 1
		_, err := Unseal(changed, []byte("open sesame"))
		require.Error(t, err, "byte %d", i)
		_, err = Unseal(data[:i], []byte("open sesame"))
		require.ErrorIs(t, err, ErrSeal, "%d bytes", i)
	}
	_, err = Unseal(append(data, 0), []byte("open sesame"))
	require.ErrorIs(t, err, ErrSeal)
}

// Whoever changes what the key is derived with must not get the same key, and
// whoever changes the rest must not be believed.
func TestHeaderIsAuthenticated(t *testing.T) {
	data := cheap(t, nil)
	f, err := decodeSealed(data)
	require.NoError(t, err)
	key := argon2.IDKey([]byte("open sesame"), f.Seal.Salt, 1, 8, 1, chacha20poly1305.KeySize)
	var box cipher.AEAD
	box, err = chacha20poly1305.NewX(key)
	require.NoError(t, err)
	_, err = box.Open(nil, f.Seal.Nonce, f.Box, nil)
	require.Error(t, err, "the box opens without its header")
	header, err := canon.Marshal(f.Seal)
	require.NoError(t, err)
	_, err = box.Open(nil, f.Seal.Nonce, f.Box, header)
	require.NoError(t, err)
}

func TestHostileSealIsRefusedBeforeItCostsAnything(t *testing.T) {
	for name, change := range map[string]func(*sealHeader){
		"no passes":     func(h *sealHeader) { h.Passes = 0 },
		"many passes":   func(h *sealHeader) { h.Passes = maxPasses + 1 },
		"wraps around":  func(h *sealHeader) { h.Passes = 1<<32 + 1 },
		"no memory":     func(h *sealHeader) { h.MemoryKiB = 0 },
		"gigabytes":     func(h *sealHeader) { h.MemoryKiB = 4 << 20 },
		"no lanes":      func(h *sealHeader) { h.Lanes = 0 },
		"many lanes":    func(h *sealHeader) { h.Lanes = 257 },
		"a new version": func(h *sealHeader) { h.Version = 2 },
		"another kdf":   func(h *sealHeader) { h.KDF = "md5" },
		"no cipher":     func(h *sealHeader) { h.Cipher = "" },
		"short salt":    func(h *sealHeader) { h.Salt = h.Salt[1:] },
		"short nonce":   func(h *sealHeader) { h.Nonce = h.Nonce[1:] },
	} {
		_, err := Unseal(cheap(t, func(f *sealedFile) { change(&f.Seal) }), []byte("open sesame"))
		require.ErrorIs(t, err, ErrSeal, name)
	}
}

func TestSealRefuses(t *testing.T) {
	_, err := Seal(sealKeys(t), nil, sealRandom())
	require.Error(t, err, "no passphrase")
	_, err = Seal(sealKeys(t), []byte("x"), sealRandom()[1:])
	require.Error(t, err, "too little randomness")
}

func FuzzDecodeSealed(f *testing.F) {
	f.Add(cheap(f, nil))
	f.Add([]byte(sealedPrefix))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeSealed(data)
		if err != nil {
			require.ErrorIs(t, err, ErrSeal)
			return
		}
		require.True(t, Sealed(data))
		require.LessOrEqual(t, s.Seal.MemoryKiB, uint64(maxMemoryKiB))
		back, err := canon.Marshal(s)
		require.NoError(t, err)
		require.Equal(t, data, back)
	})
}
