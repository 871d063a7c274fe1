package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/journal"
)

// The anchor's layout; see the package comment. The slots lie in blocks of
// their own, so that writing one cannot tear the other.
const (
	anchorMagic   = "wkanchor"
	anchorVersion = 1
	slotStride    = 4096
	anchorSize    = 2 * slotStride
	slotMacAt     = len(anchorMagic) + 4 + 8 + 8 + sha256.Size + 8
	slotSumAt     = slotMacAt + sha256.Size
	slotSize      = slotSumAt + sumLen
)

// slot is what an anchor holds.
type slot struct {
	Sequence uint64
	Head     journal.Head
	Epoch    uint64
	bytes    []byte
}

// anchor is an open anchor file. Only acknowledge writes it, once the store is
// open.
type anchor struct {
	file vfs.File
	key  []byte
	slot slot // the last one written or read
}

// createAnchor makes an anchor whose first slot is given, synced but for its name.
func createAnchor(files vfs.FS, path string, key []byte, first slot) error {
	f, err := files.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	block := make([]byte, anchorSize)
	copy(block, encodeSlot(first, key))
	_, err = f.Write(block)
	return errors.Join(err, f.Sync(), f.Close())
}

// openAnchor reads the anchor and checks its MAC.
func openAnchor(files vfs.FS, path string, key []byte) (*anchor, error) {
	newest, err := readAnchor(files, path)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(newest.bytes[slotMacAt:slotSumAt], slotMAC(newest.bytes, key)) {
		return nil, fmt.Errorf("%w: it was written with another key", ErrBadAnchor)
	}
	f, err := files.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &anchor{file: f, key: key, slot: newest}, nil
}

// write makes head durable in the slot that is not the newest.
func (a *anchor) write(head journal.Head, epoch uint64) error {
	next := slot{Sequence: a.slot.Sequence + 1, Head: head, Epoch: epoch}
	if _, err := a.file.WriteAt(encodeSlot(next, a.key), int64(next.Sequence%2*slotStride)); err != nil {
		return fmt.Errorf("anchor: %w", err)
	}
	if err := a.file.SyncData(); err != nil {
		return fmt.Errorf("anchor: %w", err)
	}
	a.slot = next
	return nil
}

// readAnchor returns the newest slot that is whole. Its MAC is still to check.
func readAnchor(files vfs.FS, path string) (slot, error) {
	f, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return slot{}, ErrNoAnchor
	}
	if err != nil {
		return slot{}, err
	}
	data := make([]byte, anchorSize)
	n, err := f.ReadAt(data, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return slot{}, fmt.Errorf("anchor: %w", err)
	}
	if n < anchorSize {
		return slot{}, fmt.Errorf("%w: it has %d bytes instead of %d", ErrBadAnchor, n, anchorSize)
	}
	a, errA := decodeSlot(data[:slotSize])
	b, errB := decodeSlot(data[slotStride:][:slotSize])
	switch {
	case errA != nil && errB != nil:
		return slot{}, fmt.Errorf("%w: both slots: %w; %w", ErrBadAnchor, errA, errB)
	case errA != nil || errB == nil && b.Sequence > a.Sequence:
		return b, nil
	default:
		return a, nil
	}
}

func encodeSlot(s slot, key []byte) []byte {
	b := make([]byte, 0, slotSize)
	b = append(b, anchorMagic...)
	b = binary.BigEndian.AppendUint32(b, anchorVersion)
	b = binary.BigEndian.AppendUint64(b, s.Sequence)
	b = binary.BigEndian.AppendUint64(b, uint64(s.Head.ID))
	b = append(b, s.Head.Root[:]...)
	b = binary.BigEndian.AppendUint64(b, s.Epoch)
	b = append(b, slotMAC(b, key)...)
	sum := sha256.Sum256(b)
	return append(b, sum[:sumLen]...)
}

func slotMAC(b, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(b[:slotMacAt])
	return mac.Sum(nil)
}

func decodeSlot(b []byte) (slot, error) {
	sum := sha256.Sum256(b[:slotSumAt])
	if string(b[:len(anchorMagic)]) != anchorMagic || string(b[slotSumAt:]) != string(sum[:sumLen]) {
		return slot{}, errSum
	}
	rest := b[len(anchorMagic):]
	if version := binary.BigEndian.Uint32(rest); version != anchorVersion {
		return slot{}, fmt.Errorf("unknown version %d", version)
	}
	s := slot{bytes: b, Sequence: binary.BigEndian.Uint64(rest[4:])}
	s.Head.ID = journal.Seq(binary.BigEndian.Uint64(rest[12:]))
	copy(s.Head.Root[:], rest[20:])
	s.Epoch = binary.BigEndian.Uint64(rest[20+sha256.Size:])
	return s, nil
}
