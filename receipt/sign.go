package receipt

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// SecretBytes is the length of an epoch's secret.
const SecretBytes = 32

// maxEpochs bounds a keyring: one rotation a day for eleven years.
const maxEpochs = 4096

// Why a keyring does not change.
var (
	ErrNoEpoch       = errors.New("receipt: keyring: only an epoch before the one that signs can be revoked")
	ErrTooManyEpochs = fmt.Errorf("receipt: keyring: %d epochs are the most", maxEpochs)
)

const (
	keyInfo  = "worldkernel/receipt-key/v1"
	macLabel = "worldkernel/receipt/v1"
)

// Epoch is one generation of a world's receipt key.
type Epoch struct {
	Number  uint64 `cbor:"number"`  // from 1
	Secret  []byte `cbor:"secret"`  // SecretBytes random bytes
	Revoked bool   `cbor:"revoked"` // its receipts are no longer accepted
}

// Keyring holds a world's receipt keys. The key of an epoch is
//
//	HKDF-SHA256(secret, salt = world id, info = "worldkernel/receipt-key/v1/" + number)
//
// and its id is "NUMBER-" + the first 8 bytes, in hex, of the key's SHA-256.
// A Keyring does not change; it is safe for concurrent use.
type Keyring struct {
	world string
	keys  []signingKey // in the order of epochs
}

type signingKey struct {
	epoch Epoch
	id    string
	key   []byte
}

type keyringFile struct {
	Version uint64  `cbor:"version"`
	World   string  `cbor:"world"`
	Epochs  []Epoch `cbor:"epochs"`
}

const keyringVersion = 1

// NewKeyring returns the keyring of a world. Epochs must be numbered upwards
// and the last one, which signs, must not be revoked. A keyring without epochs
// verifies and signs nothing.
func NewKeyring(world string, epochs []Epoch) (*Keyring, error) {
	if len(epochs) > maxEpochs {
		return nil, ErrTooManyEpochs
	}
	k := &Keyring{world: world}
	for i, e := range epochs {
		if len(e.Secret) != SecretBytes {
			return nil, fmt.Errorf("receipt: keyring: the secret of epoch %d has %d bytes, not %d", e.Number, len(e.Secret), SecretBytes)
		}
		if e.Number == 0 || i > 0 && e.Number <= epochs[i-1].Number {
			return nil, fmt.Errorf("receipt: keyring: epoch %d is out of order", e.Number)
		}
		if e.Revoked && i == len(epochs)-1 {
			return nil, fmt.Errorf("receipt: keyring: the last epoch %d is revoked", e.Number)
		}
		key, err := hkdf.Key(sha256.New, e.Secret, []byte(world), keyInfo+"/"+strconv.FormatUint(e.Number, 10), sha256.Size)
		if err != nil {
			return nil, fmt.Errorf("receipt: keyring: %w", err)
		}
		sum := sha256.Sum256(key)
		id := strconv.FormatUint(e.Number, 10) + "-" + hex.EncodeToString(sum[:8])
		e.Secret = slices.Clone(e.Secret)
		k.keys = append(k.keys, signingKey{epoch: e, id: id, key: key})
	}
	return k, nil
}

// DecodeKeyring parses the bytes of a keyring file.
func DecodeKeyring(data []byte) (*Keyring, error) {
	var f keyringFile
	if err := canon.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("receipt: keyring: %w", err)
	}
	if f.Version != keyringVersion {
		return nil, fmt.Errorf("receipt: keyring: unknown version %d", f.Version)
	}
	return NewKeyring(f.World, f.Epochs)
}

// Encode returns the bytes of the keyring's file: secrets in the clear.
func (k *Keyring) Encode() ([]byte, error) {
	return canon.Marshal(keyringFile{Version: keyringVersion, World: k.world, Epochs: k.epochs()})
}

// epochs returns a copy of k's epochs that shares their secrets.
func (k *Keyring) epochs() []Epoch {
	var out []Epoch
	for _, s := range k.keys {
		out = append(out, s.epoch)
	}
	return out
}

// Rotate returns k with a new epoch that signs from now on. The earlier ones
// still verify. The secret is SecretBytes random bytes that nobody else has.
func (k *Keyring) Rotate(secret []byte) (*Keyring, error) {
	next := Epoch{Number: 1, Secret: secret}
	if n := len(k.keys); n > 0 {
		next.Number = k.keys[n-1].epoch.Number + 1
	}
	return NewKeyring(k.world, append(k.epochs(), next))
}

// Revoke returns k with an epoch whose receipts are no longer accepted; those
// that are journaled stay. [ErrNoEpoch] for the last one, which signs: rotate
// first.
func (k *Keyring) Revoke(epoch uint64) (*Keyring, error) {
	epochs := k.epochs()
	at := slices.IndexFunc(epochs, func(e Epoch) bool { return e.Number == epoch })
	if at < 0 || at == len(epochs)-1 {
		return nil, fmt.Errorf("%w: not epoch %d", ErrNoEpoch, epoch)
	}
	epochs[at].Revoked = true
	return NewKeyring(k.world, epochs)
}

// World returns the id of the world that the keys are for.
func (k *Keyring) World() string { return k.world }

// CanSign reports whether the keyring holds a key to sign with.
func (k *Keyring) CanSign() bool { return len(k.keys) > 0 }

// AnchorKey returns the key that signs the world's anchor file: HKDF-SHA256 of
// the first epoch's secret (empty where the keyring has none), which outlives
// rotations, and its own revocation: that is of signatures on receipts.
func (k *Keyring) AnchorKey() ([]byte, error) {
	var secret []byte
	if len(k.keys) > 0 {
		secret = k.keys[0].epoch.Secret
	}
	key, err := hkdf.Key(sha256.New, secret, []byte(k.world), "worldkernel/anchor-key/v1", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("receipt: keyring: %w", err)
	}
	return key, nil
}

// TicketKey returns the key of the links by which people decide about one intent: HKDF-SHA256 of the last epoch's
// secret, info "worldkernel/ticket-key/v1". A rotation ends all links. It is nil where the keyring has no epoch.
func (k *Keyring) TicketKey() ([]byte, error) {
	if !k.CanSign() {
		return nil, nil
	}
	return hkdf.Key(sha256.New, k.keys[len(k.keys)-1].epoch.Secret, []byte(k.world), "worldkernel/ticket-key/v1", sha256.Size)
}

// CheckpointKeys returns the keys that sign the world's checkpoints, in the order
// of epochs; the last one signs from now on. The seed of an epoch's key is
//
//	HKDF-SHA256(secret, salt = world id, info = "worldkernel/checkpoint-key/v1/" + number)
func (k *Keyring) CheckpointKeys() ([]ed25519.PrivateKey, error) {
	keys := make([]ed25519.PrivateKey, len(k.keys))
	for i, s := range k.keys {
		info := "worldkernel/checkpoint-key/v1/" + strconv.FormatUint(s.epoch.Number, 10)
		seed, err := hkdf.Key(sha256.New, s.epoch.Secret, []byte(k.world), info, ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("receipt: keyring: %w", err)
		}
		keys[i] = ed25519.NewKeyFromSeed(seed)
	}
	return keys, nil
}

// KeyStatus describes a key, without its secret.
type KeyStatus struct {
	ID      string `json:"id"`
	Epoch   uint64 `json:"epoch"`
	Current bool   `json:"current"` // signs new receipts
	Revoked bool   `json:"revoked"`
}

// Keys lists the keys in the order of their epochs.
func (k *Keyring) Keys() []KeyStatus {
	out := make([]KeyStatus, len(k.keys))
	for i, s := range k.keys {
		out[i] = KeyStatus{ID: s.id, Epoch: s.epoch.Number, Current: i == len(k.keys)-1, Revoked: s.epoch.Revoked}
	}
	return out
}

// Sign fills in r's key id, hash and mac with the current key and returns its
// canonical bytes.
func (k *Keyring) Sign(r *Receipt) ([]byte, error) {
	if err := k.seal(r); err != nil {
		return nil, err
	}
	return r.Encode()
}

func (k *Keyring) seal(r *Receipt) error {
	if !k.CanSign() {
		return ErrUnknownKey
	}
	current := &k.keys[len(k.keys)-1]
	r.KeyID = current.id
	r.Hash = r.contentHash()
	r.MAC = current.mac(r.Hash)
	return nil
}

// Verify checks the world, the hash and the signature of r against the keyring. It answers in time
// independent of where a wrong signature differs.
func (k *Keyring) Verify(r *Receipt) error {
	if r.World != k.world {
		return ErrWrongWorld
	}
	if r.contentHash() != r.Hash {
		return ErrBadHash
	}
	for i := range k.keys {
		s := &k.keys[i]
		if s.id != r.KeyID {
			continue
		}
		want := s.mac(r.Hash)
		if !hmac.Equal(want[:], r.MAC[:]) {
			return ErrBadMAC
		}
		if s.epoch.Revoked {
			return ErrRevokedKey // it is the key's signature, which some still believe
		}
		return nil
	}
	return ErrUnknownKey
}

// mac is HMAC-SHA256 (RFC 2104) of macLabel ‖ hash. It is written out because
// crypto/hmac makes three objects a call, and every effect takes two; a test
// holds it equal to that.
func (s *signingKey) mac(hash Hash) Hash {
	var inner [sha256.BlockSize + len(macLabel) + sha256.Size]byte
	var outer [sha256.BlockSize + sha256.Size]byte
	for i := range sha256.BlockSize {
		var k byte
		if i < len(s.key) { // which is sha256.Size bytes long
			k = s.key[i]
		}
		inner[i], outer[i] = k^0x36, k^0x5c
	}
	copy(inner[sha256.BlockSize:], macLabel)
	copy(inner[sha256.BlockSize+len(macLabel):], hash[:])
	sum := sha256.Sum256(inner[:])
	copy(outer[sha256.BlockSize:], sum[:])
	return sha256.Sum256(outer[:])
}
