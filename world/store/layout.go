package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/world"
)

// First bytes of keys; see the package comment.
const (
	blobPrefix    = 'b'
	versionPrefix = 'c'
	imagePrefix   = 'i'
	recordPrefix  = 'j'
	ledgerPrefix  = 'l'
	metaPrefix    = 'm'
	postingPrefix = 'x'
)

// Lengths in bytes.
const (
	idLen        = 8
	frameLen     = 4
	linkLen      = world.LinkBytes
	crcLen       = 4
	sumLen       = 8
	recordKeyLen = 1 + idLen
)

// What is wrong with a value.
var (
	errShape    = errors.New("it has not the shape it was written in")
	errSum      = errors.New("the checksum does not match")
	errLink     = errors.New("the link to the record before it does not match")
	errWrongID  = errors.New("it is the record of another id")
	errBlobHash = errors.New("the content has another hash")
)

// DamageError names a piece of the store that is not what was written.
type DamageError struct {
	What string    // "record #5", "cell version agent/x at #123", "blob 9f86…"
	ID   world.Seq // of the record, or of the checkpoint; 0 where it has none
	Err  error     // what is wrong with it
}

// Error leaves out what follows the first line: Pebble's notes to itself.
func (e *DamageError) Error() string {
	cause, _, _ := strings.Cut(e.Err.Error(), "\n")
	return fmt.Sprintf("%s is damaged: %s", e.What, cause)
}

// Unwrap returns what is wrong.
func (e *DamageError) Unwrap() error { return e.Err }

func damagedRecord(id world.Seq, err error) error {
	return &DamageError{What: fmt.Sprintf("record #%d", id), ID: id, Err: err}
}

// damaged names the key that err is about.
func damaged(key []byte, err error) error {
	_, at, _ := splitCellKey(key)
	if key[0] == recordPrefix && len(key) == recordKeyLen || key[0] == postingPrefix && len(key) > recordKeyLen {
		at = recordID(key)
	}
	return &DamageError{What: nameOf(key), ID: at, Err: err}
}

func nameOf(key []byte) string {
	cell, at, ok := splitCellKey(key)
	switch {
	case ok:
		return fmt.Sprintf("cell version %s at #%d", cell, at)
	case key[0] == postingPrefix && len(key) > 1+idLen:
		return fmt.Sprintf("index of cells from %s at #%d", key[1+idLen:], recordID(key))
	case key[0] == recordPrefix && len(key) == recordKeyLen:
		return fmt.Sprintf("record #%d", recordID(key))
	case key[0] == blobPrefix:
		return fmt.Sprintf("blob %x", key[1:])
	case key[0] == ledgerPrefix:
		return fmt.Sprintf("ledger entry %x", key[1:])
	case string(key) == string(imagePrefix):
		return "image"
	case string(key) == string(metaPrefix):
		return "format version"
	}
	return fmt.Sprintf("key %x", key)
}

func recordKey(id world.Seq) []byte {
	return binary.BigEndian.AppendUint64([]byte{recordPrefix}, uint64(id))
}

// recordID returns the number that follows the first byte of a key.
func recordID(key []byte) world.Seq { return world.Seq(binary.BigEndian.Uint64(key[1:])) }

func hashKey(prefix byte, h world.Hash) []byte { return append([]byte{prefix}, h[:]...) }

// cellKey appends the key of a cell at a checkpoint to b. No cell's name holds
// a zero byte.
func cellKey(b []byte, cell string, at world.Seq) []byte {
	b = append(b, versionPrefix)
	b = append(b, cell...)
	return binary.BigEndian.AppendUint64(append(b, 0), uint64(at))
}

func splitCellKey(key []byte) (cell []byte, at world.Seq, ok bool) {
	end := len(key) - idLen - 1
	if end < 1 || key[0] != versionPrefix || bytes.IndexByte(key, 0) != end {
		return nil, 0, false
	}
	return key[1:end], world.Seq(binary.BigEndian.Uint64(key[end+1:])), true
}

// sealer writes and checks values that carry a sum. It is for one goroutine.
type sealer struct {
	hash    hash.Hash
	scratch [sha256.Size]byte
}

func newSealer() *sealer { return &sealer{hash: sha256.New()} }

func (s *sealer) sum(key, body []byte) []byte {
	s.hash.Reset()
	s.hash.Write(key)
	s.hash.Write(body)
	return s.hash.Sum(s.scratch[:0])[:sumLen]
}

// set puts body under key. A batch that is not indexed cannot refuse it.
func (s *sealer) set(b *pebble.Batch, key, body []byte) {
	op := b.SetDeferred(len(key), len(body)+sumLen)
	copy(op.Key, key)
	copy(op.Value, body)
	copy(op.Value[len(body):], s.sum(key, body))
}

// open returns the body of value, a part of it.
func (s *sealer) open(key, value []byte) ([]byte, error) {
	n := len(value) - sumLen
	if n < 0 {
		return nil, damaged(key, errShape)
	}
	if !bytes.Equal(value[n:], s.sum(key, value[:n])) {
		return nil, damaged(key, errSum)
	}
	return value[:n], nil
}
