package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/journal"
)

// First bytes of keys; see the package comment.
const (
	blobPrefix    = 'b'
	versionPrefix = 'c'
	countPrefix   = 'd'
	momentPrefix  = 'e'
	notePrefix    = 'h'
	imagePrefix   = 'i'
	recordPrefix  = 'j'
	ledgerPrefix  = 'l'
	metaPrefix    = 'm'
	postingPrefix = 'x'
	signedPrefix  = 'p'
	tilePrefix    = 't'

	chunkPrefix = 'k'
	findPrefix  = 'f'
	listPrefix  = 'o'

	logPrefix       = 'g'
	archivePrefix   = 'a'
	redactionPrefix = 'r'
)

// Lengths in bytes.
const (
	idLen        = 8
	frameLen     = 4
	linkLen      = journal.LinkBytes
	crcLen       = 4
	countLen     = len(journal.CountKey{}.What)
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
	What string      // "record #5", "cell version agent/x at #123", "blob 9f86…"
	ID   journal.Seq // of the record, or of the checkpoint; 0 where it has none
	Err  error       // what is wrong with it
}

// Error leaves out what follows the first line: Pebble's notes to itself.
func (e *DamageError) Error() string {
	cause, _, _ := strings.Cut(e.Err.Error(), "\n")
	if file.NoDescriptor(e.Err) {
		return fmt.Sprintf("%s cannot be read: %s", e.What, cause)
	}
	return fmt.Sprintf("%s is damaged: %s", e.What, cause)
}

// Whole reports whether the store cannot be opened, so that no piece of it can be looked at.
func (e *DamageError) Whole() bool { return e.What == storeName }

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.Err }

func damagedRecord(id journal.Seq, err error) error {
	return &DamageError{What: fmt.Sprintf("record #%d", id), ID: id, Err: err}
}

// damaged names the key that err is about.
func damaged(key []byte, err error) error {
	var at journal.Seq
	if _, version, ok := splitVersion(key); ok {
		at = version
	} else if hasNumber(key) && key[0] != chunkPrefix {
		at = recordID(key)
	}
	return &DamageError{What: nameOf(key), ID: at, Err: err}
}

// hasNumber reports whether a number follows the first byte of a key.
func hasNumber(key []byte) bool {
	switch key[0] {
	case recordPrefix, imagePrefix, archivePrefix, signedPrefix, chunkPrefix, momentPrefix:
		return len(key) == recordKeyLen
	case postingPrefix, notePrefix:
		return len(key) > recordKeyLen
	}
	return false
}

func nameOf(key []byte) string {
	name, at, ok := splitVersion(key)
	switch {
	case ok && name[0] == versionPrefix:
		return fmt.Sprintf("cell version %s at #%d", name[1:len(name)-1], at)
	case ok && name[0] == countPrefix:
		return fmt.Sprintf("count of %s at #%d", name[1:len(name)-1-countLen], at)
	case ok:
		return fmt.Sprintf("ledger entry %x at #%d", name[1:], at)
	case key[0] == blobPrefix, key[0] == listPrefix:
		return fmt.Sprintf("blob %x", key[1:])
	case key[0] == redactionPrefix:
		return fmt.Sprintf("redaction of blob %x", key[1:])
	case string(key) == string(metaPrefix):
		return "format version"
	case key[0] == logPrefix:
		return "what the copy says of its log"
	case key[0] == findPrefix:
		return fmt.Sprintf("number of chunk %x", key[1:])
	case key[0] == tilePrefix && len(key) == tileKeyLen:
		level, n := splitTile(key)
		return fmt.Sprintf("tile %d of level %d", n, level)
	case !hasNumber(key):
		return fmt.Sprintf("key %x", key)
	case key[0] == recordPrefix:
		return fmt.Sprintf("record #%d", recordID(key))
	case key[0] == chunkPrefix:
		return fmt.Sprintf("chunk %d", recordID(key))
	case key[0] == archivePrefix:
		return fmt.Sprintf("archive up to #%d", recordID(key))
	case key[0] == imagePrefix:
		return fmt.Sprintf("image at #%d", recordID(key))
	case key[0] == momentPrefix:
		return fmt.Sprintf("mark of image #%d", recordID(key))
	case key[0] == signedPrefix:
		return fmt.Sprintf("signed checkpoint of #%d", recordID(key))
	case key[0] == postingPrefix:
		return fmt.Sprintf("index of cells from %s at #%d", key[recordKeyLen:], recordID(key))
	default:
		return fmt.Sprintf("note of image #%d about %s", recordID(key), nameOf(key[recordKeyLen:]))
	}
}

func recordKey(id journal.Seq) []byte { return numberKey(recordPrefix, id) }

func imageKey(at journal.Seq) []byte { return numberKey(imagePrefix, at) }

func numberKey(prefix byte, n journal.Seq) []byte {
	return binary.BigEndian.AppendUint64([]byte{prefix}, uint64(n))
}

// recordID returns the number that follows the first byte of a key.
func recordID(key []byte) journal.Seq { return journal.Seq(binary.BigEndian.Uint64(key[1:])) }

func hashKey(prefix byte, h journal.Hash) []byte { return append([]byte{prefix}, h[:]...) }

// cellName appends to b what the keys of all versions of a cell begin with. No
// cell's name holds a zero byte.
func cellName(b []byte, cell string) []byte {
	return append(append(append(b, versionPrefix), cell...), 0)
}

// intentName is cellName for an intent's ledger entries.
func intentName(b []byte, key journal.Hash) []byte { return append(append(b, ledgerPrefix), key[:]...) }

// countName is cellName for a count of what a cell has asked for.
func countName(b []byte, key *journal.CountKey) []byte {
	return append(append(append(append(b, countPrefix), key.Cell...), 0), key.What[:]...)
}

// countKeyOf is the inverse of countName.
func countKeyOf(name []byte) journal.CountKey {
	end := len(name) - countLen
	return journal.CountKey{Cell: string(name[1 : end-1]), What: [countLen]byte(name[end:])}
}

// versionKey appends the key of a version that was written with the image at a
// head to b.
func versionKey(b, name []byte, at journal.Seq) []byte {
	return binary.BigEndian.AppendUint64(append(b, name...), uint64(at))
}

// splitVersion takes the key of a cell version, a ledger entry or a count apart.
func splitVersion(key []byte) (name []byte, at journal.Seq, ok bool) {
	end := len(key) - idLen
	if end < 2 {
		return nil, 0, false
	}
	switch key[0] {
	case versionPrefix:
		ok = end > 2 && bytes.IndexByte(key, 0) == end-1
	case countPrefix:
		ok = end > 2+countLen && bytes.IndexByte(key, 0) == end-countLen-1
	case ledgerPrefix:
		ok = end == 1+len(journal.Hash{})
	}
	if !ok {
		return nil, 0, false
	}
	return key[:end], journal.Seq(binary.BigEndian.Uint64(key[end:])), true
}

// noteKey appends the note that a version lives because of the image at head to b.
func noteKey(b []byte, head journal.Seq, version []byte) []byte {
	return append(binary.BigEndian.AppendUint64(append(b, notePrefix), uint64(head)), version...)
}

// splitNote returns the key of the version that a note is about.
func splitNote(key []byte) (version, name []byte, at journal.Seq, ok bool) {
	if key[0] != notePrefix || len(key) <= recordKeyLen {
		return nil, nil, 0, false
	}
	version = key[recordKeyLen:]
	name, at, ok = splitVersion(version)
	return version, name, at, ok && at <= recordID(key)
}

// seal puts body under key, with the CRC-32C of both. A batch that is not indexed cannot refuse it.
func seal(b *pebble.Batch, key, body []byte) {
	op := b.SetDeferred(len(key), len(body)+crcLen)
	copy(op.Key, key)
	copy(op.Value, body)
	binary.BigEndian.PutUint32(op.Value[len(body):], sumOf(key, body))
}

// unseal returns the body of value, a part of it.
func unseal(key, value []byte) ([]byte, error) {
	n := len(value) - crcLen
	if n < 0 {
		return nil, damaged(key, errShape)
	}
	if binary.BigEndian.Uint32(value[n:]) != sumOf(key, value[:n]) {
		return nil, damaged(key, errSum)
	}
	return value[:n], nil
}

func sumOf(key, body []byte) uint32 { return crc32.Update(checkCRC(key), castagnoli, body) }
