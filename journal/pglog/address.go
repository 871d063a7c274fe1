package pglog

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// clocksDiffer is by how much the clocks of two nodes may differ, and for how long at most an address is
// believed that was a node's and is put back.
const clocksDiffer = time.Minute

var errNoKey = errors.New("pglog: the key of the store's nodes is not known here")

// address is where a node answers, as the store has it. Who can write to the store, and has not the key, can
// put back what a node has sealed, until clocksDiffer after the lease that it had then, and nothing else.
type address struct {
	run   pgtype.UUID
	url   string
	until int64  // by the node's clock, in microseconds since 1970
	seal  []byte // see doc.go
}

// nodesKey asks for the key of the store's nodes.
func (s *Store) nodesKey() ([]byte, error) {
	if s.opts.Key == nil {
		return nil, errNoKey
	}
	return s.opts.Key(s.id)
}

// ownAddress returns where this process answers. A store that is used without the key has no seal.
func (s *Store) ownAddress(now time.Time) *address {
	at := &address{run: s.run, url: s.opts.URL, until: now.Add(s.opts.Lease).UnixMicro(), seal: []byte{}}
	if at.url == "" {
		return at
	}
	if key, err := s.key(); err == nil {
		at.seal = s.sealAddress(key, s.opts.Node, at)
	}
	return at
}

// unproven says why an address of a node is not to be believed; empty: it is, or there is none.
func (s *Store) unproven(node string, at *address) string {
	if at.url == "" {
		return ""
	}
	key, err := s.key()
	switch {
	case err != nil:
		return "this process has no passphrase to check it with"
	case !hmac.Equal(at.seal, s.sealAddress(key, node, at)):
		return "no node with the same passphrase has sealed it"
	case time.Now().Add(-clocksDiffer).UnixMicro() > at.until:
		return "its seal has run out: somebody put an old one back, or the clocks of the nodes differ"
	}
	return ""
}

func (s *Store) sealAddress(key []byte, node string, at *address) []byte {
	mac := hmac.New(sha256.New, key)
	text := append([]byte("worldkernel node 1\x00"+s.id+"\x00"+node+"\x00"), at.run.Bytes[:]...)
	text = binary.BigEndian.AppendUint64(text, uint64(at.until)) //nolint:gosec // its bits
	mac.Write(append(text, at.url...))                           // it never errs
	return mac.Sum(nil)
}
