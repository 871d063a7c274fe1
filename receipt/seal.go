package receipt

import (
	"bytes"
	"crypto/cipher"
	"errors"
	"fmt"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Why a sealed keyring stays closed.
var (
	ErrPassphrase = errors.New("receipt: keyring: wrong passphrase, or the file is damaged")
	ErrSeal       = errors.New("receipt: keyring: not a sealed keyring that this program can open")
)

const (
	// SealSaltBytes is how many of the random bytes of Seal, the first, are the salt. Keyrings that
	// share it and the passphrase are sealed with the same key.
	SealSaltBytes = 16

	// SealRandomBytes is how many random bytes Seal needs.
	SealRandomBytes = SealSaltBytes + chacha20poly1305.NonceSizeX
)

// KDF makes a key of a passphrase, as argon2.IDKey does.
type KDF func(passphrase, salt []byte, passes, memoryKiB uint32, lanes uint8, keyBytes uint32) []byte

// sealedFile is a keyring that opens with a passphrase: a canonical map of
//
//	box   XChaCha20-Poly1305 of the keyring's file
//	seal  how it was made: the key is Argon2id of the passphrase
//
// The canonical bytes of seal are the additional data of the box.
type sealedFile struct {
	Box  []byte     `cbor:"box"`
	Seal sealHeader `cbor:"seal"`
}

type sealHeader struct {
	Version   uint64 `cbor:"version"`
	KDF       string `cbor:"kdf"`
	Cipher    string `cbor:"cipher"`
	Passes    uint64 `cbor:"passes"`
	MemoryKiB uint64 `cbor:"memory_kib"`
	Lanes     uint64 `cbor:"lanes"`
	Salt      []byte `cbor:"salt"`
	Nonce     []byte `cbor:"nonce"`
}

const (
	sealVersion = 1
	sealKDF     = "argon2id"
	sealCipher  = "xchacha20poly1305"

	// RFC 9106, section 4: the second recommended option.
	sealPasses    = 3
	sealMemoryKiB = 64 << 10
	sealLanes     = 4

	// What a file may ask for: nobody should lose the machine over one.
	maxPasses    = 16
	maxMemoryKiB = 256 << 10
	maxLanes     = 16

	// sealedPrefix begins every sealed keyring and no other: a map of two whose
	// first key is box.
	sealedPrefix = "\xa2\x63box"
)

// Seal returns the bytes of a file that holds k and opens with a passphrase.
// The caller brings SealRandomBytes random bytes, new ones each time. It takes
// 64 MiB and a part of a second.
func Seal(k *Keyring, passphrase, random []byte) ([]byte, error) {
	return SealBy(argon2.IDKey, k, passphrase, random)
}

// SealBy is Seal by a KDF that returns what argon2.IDKey returns, and may remember it.
func SealBy(kdf KDF, k *Keyring, passphrase, random []byte) ([]byte, error) {
	if len(random) != SealRandomBytes {
		return nil, fmt.Errorf("receipt: keyring: sealing takes %d random bytes, not %d", SealRandomBytes, len(random))
	}
	f := sealedFile{Seal: sealHeader{
		Version: sealVersion, KDF: sealKDF, Cipher: sealCipher,
		Passes: sealPasses, MemoryKiB: sealMemoryKiB, Lanes: sealLanes,
		Salt: random[:SealSaltBytes], Nonce: random[SealSaltBytes:],
	}}
	return f.seal(k, passphrase, kdf)
}

func (f *sealedFile) seal(k *Keyring, passphrase []byte, kdf KDF) ([]byte, error) {
	if len(passphrase) == 0 {
		return nil, errors.New("receipt: keyring: an empty passphrase seals nothing")
	}
	secrets, err := k.Encode()
	if err != nil {
		return nil, err
	}
	box, header, err := f.Seal.open(passphrase, kdf)
	if err != nil {
		return nil, err
	}
	f.Box = box.Seal(nil, f.Seal.Nonce, secrets, header)
	return canon.Marshal(f)
}

// Sealed reports whether the content of a keyring's file is sealed, or what is
// left of one that was.
func Sealed(data []byte) bool { return bytes.HasPrefix(data, []byte(sealedPrefix)) }

// Unseal opens a sealed keyring. [ErrPassphrase] where the passphrase is another or the file was
// changed; [ErrSeal] where the file is none that Seal makes, or asks for more memory or time than
// it should.
func Unseal(data, passphrase []byte) (*Keyring, error) {
	return UnsealBy(argon2.IDKey, data, passphrase)
}

// UnsealBy is Unseal by a KDF that returns what argon2.IDKey returns, and may remember it.
func UnsealBy(kdf KDF, data, passphrase []byte) (*Keyring, error) {
	f, err := decodeSealed(data)
	if err != nil {
		return nil, err
	}
	box, header, err := f.Seal.open(passphrase, kdf)
	if err != nil {
		return nil, err
	}
	secrets, err := box.Open(nil, f.Seal.Nonce, f.Box, header)
	if err != nil {
		return nil, ErrPassphrase
	}
	return DecodeKeyring(secrets)
}

func decodeSealed(data []byte) (*sealedFile, error) {
	f := new(sealedFile)
	if err := canon.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSeal, err)
	}
	h := &f.Seal
	within := func(n, most uint64) bool { return 1 <= n && n <= most }
	switch {
	case h.Version != sealVersion || h.KDF != sealKDF || h.Cipher != sealCipher:
		return nil, fmt.Errorf("%w: version %d, %q, %q", ErrSeal, h.Version, h.KDF, h.Cipher)
	case len(h.Salt) != SealSaltBytes || len(h.Nonce) != chacha20poly1305.NonceSizeX:
		return nil, fmt.Errorf("%w: salt of %d bytes, nonce of %d", ErrSeal, len(h.Salt), len(h.Nonce))
	case !within(h.Passes, maxPasses) || !within(h.MemoryKiB, maxMemoryKiB) || !within(h.Lanes, maxLanes):
		return nil, fmt.Errorf("%w: it asks for %d passes over %d KiB in %d lanes", ErrSeal, h.Passes, h.MemoryKiB, h.Lanes)
	}
	return f, nil
}

// open returns the cipher under the passphrase's key, and the additional data.
func (h *sealHeader) open(passphrase []byte, kdf KDF) (cipher.AEAD, []byte, error) {
	header, err := canon.Marshal(h)
	if err != nil {
		return nil, nil, err
	}
	key := kdf(passphrase, h.Salt, uint32(h.Passes), uint32(h.MemoryKiB), uint8(h.Lanes), chacha20poly1305.KeySize)
	box, err := chacha20poly1305.NewX(key)
	return box, header, err
}

// SealKey returns the key that Seal makes of a passphrase and a salt of SealSaltBytes.
func SealKey(kdf KDF, passphrase, salt []byte) []byte {
	return kdf(passphrase, salt, sealPasses, sealMemoryKiB, sealLanes, chacha20poly1305.KeySize)
}
