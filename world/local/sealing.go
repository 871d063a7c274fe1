package local

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"golang.org/x/crypto/argon2"

	"github.com/worldkernel/worldkernel/receipt"
)

// maxSealingKeys is how many keys a Sealing remembers, of passphrases and salts; it makes any more anew.
const maxSealingKeys = 64

// Sealing is what keyrings share that are sealed with one salt: the key that is made of it and of a
// passphrase, which takes 64 MiB and a tenth of a second of CPU, is made once for all worlds that a
// process opens. It is safe for concurrent use.
type Sealing struct {
	salt []byte

	mu   sync.Mutex
	keys map[[sha256.Size]byte]func() []byte
}

// NewSealing has keyrings be sealed with a salt that is of something which no other has, such as the
// id of a store.
func NewSealing(of string) *Sealing {
	sum := sha256.Sum256([]byte("worldkernel salt 1\x00" + of))
	return &Sealing{salt: sum[:receipt.SealSaltBytes], keys: make(map[[sha256.Size]byte]func() []byte)}
}

// KeyFor returns a key for a purpose, which only those who know the passphrase can make. It is
// made of the key that seals keyrings, and does not tell that one.
func (s *Sealing) KeyFor(purpose string, passphrase []byte) []byte {
	mac := hmac.New(sha256.New, receipt.SealKey(s.key, passphrase, s.salt))
	mac.Write([]byte(purpose)) // it never errs
	return mac.Sum(nil)
}

// seal is receipt.Seal; of no Sealing with a salt that is random.
func (s *Sealing) seal(k *receipt.Keyring, passphrase []byte) ([]byte, error) {
	random := randomBytes(receipt.SealRandomBytes)
	if s == nil {
		return receipt.Seal(k, passphrase, random)
	}
	copy(random, s.salt)
	return receipt.SealBy(s.key, k, passphrase, random)
}

// unseal is receipt.Unseal.
func (s *Sealing) unseal(data, passphrase []byte) (*receipt.Keyring, error) {
	if s == nil {
		return receipt.Unseal(data, passphrase)
	}
	return receipt.UnsealBy(s.key, data, passphrase)
}

// key implements receipt.KDF.
func (s *Sealing) key(passphrase, salt []byte, passes, memoryKiB uint32, lanes uint8, keyBytes uint32) []byte {
	var of []byte
	for _, n := range []uint32{passes, memoryKiB, uint32(lanes), keyBytes, uint32(len(salt))} {
		of = binary.BigEndian.AppendUint32(of, n)
	}
	id := sha256.Sum256(append(append(of, salt...), passphrase...))
	s.mu.Lock()
	derive := s.keys[id]
	if derive == nil {
		derive = sync.OnceValue(func() []byte { return argon2.IDKey(passphrase, salt, passes, memoryKiB, lanes, keyBytes) })
		if len(s.keys) < maxSealingKeys {
			s.keys[id] = derive
		}
	}
	s.mu.Unlock()
	return derive()
}
