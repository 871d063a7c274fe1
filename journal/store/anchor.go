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

// The anchor's layout; see the package comment. Slots and leads lie in blocks of
// their own, so that writing one cannot tear the other.
const (
	anchorMagic   = "wkanchor"
	anchorVersion = 1
	slotStride    = 4096
	anchorSize    = 2 * slotStride // without leads
	leadBytes     = 64 << 10       // of one, at most
	slotHeadBytes = len(anchorMagic) + 4 + 8 + 8 + sha256.Size + 8
	slotMacAt     = slotHeadBytes + 8 + sha256.Size + 4 + 4
	slotSumAt     = slotMacAt + sha256.Size
	slotSumLen    = 8
	slotSize      = slotSumAt + slotSumLen
)

// slot is what an anchor holds.
type slot struct {
	Sequence uint64
	Head     journal.Head
	Epoch    uint64

	// Where the store may not have come to Head yet, what leads it there, and from where.
	After journal.Head
	Lead  []byte // batches of Pebble, each with its length before it; empty: the store has them

	bytes []byte // with the MAC, without the sum
}

// offset is where a slot lies.
func (s *slot) offset() int64 { return int64(s.Sequence % 2 * slotStride) }

// leadAt is where the lead of a slot lies.
func (s *slot) leadAt() int64 { return anchorSize + int64(s.Sequence%2)*leadBytes }

// anchor is an open anchor file. Only acknowledge writes it, once the store is
// open. Who puts both back as they were before is not noticed by it.
type anchor struct {
	file vfs.File
	key  []byte
	slot slot // the last one written or read
}

// createAnchor makes an anchor of one slot or two, synced but for its name.
func createAnchor(files vfs.FS, path string, key []byte, slots ...slot) error {
	f, err := files.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	block := make([]byte, anchorSize)
	for _, s := range slots {
		copy(block[s.offset():], encodeSlot(s, key))
	}
	_, err = f.Write(block)
	return errors.Join(err, f.Sync(), f.Close())
}

// trustedSlot is readAnchor that checks the MAC.
func trustedSlot(files vfs.FS, path string, key []byte) (slot, error) {
	newest, err := readAnchor(files, path)
	if err != nil {
		return slot{}, err
	}
	mac := len(newest.bytes) - sha256.Size
	if !hmac.Equal(newest.bytes[mac:], slotMAC(newest.bytes[:mac], key)) {
		return slot{}, fmt.Errorf("%w: it was written with another key", ErrBadAnchor)
	}
	return newest, nil
}

// openAnchor reads the anchor and checks its MAC.
func openAnchor(files vfs.FS, path string, key []byte) (*anchor, error) {
	newest, err := trustedSlot(files, path, key)
	if err != nil {
		return nil, err
	}
	f, err := files.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &anchor{file: f, key: key, slot: newest}, nil
}

// write makes head durable in the slot that is not the newest.
func (a *anchor) write(head journal.Head, epoch uint64) error {
	return a.writeSlot(slot{Head: head, Epoch: epoch})
}

// lead is write for a head that the store may not have come to yet.
func (a *anchor) lead(head journal.Head, epoch uint64, lead []byte) error {
	return a.writeSlot(slot{Head: head, Epoch: epoch, After: a.slot.Head, Lead: lead})
}

func (a *anchor) writeSlot(next slot) error {
	next.Sequence = a.slot.Sequence + 1
	if len(next.Lead) > 0 {
		if _, err := a.file.WriteAt(next.Lead, next.leadAt()); err != nil {
			return fmt.Errorf("anchor: %w", err)
		}
	}
	if _, err := a.file.WriteAt(encodeSlot(next, a.key), next.offset()); err != nil {
		return fmt.Errorf("anchor: %w", err)
	}
	if err := a.file.SyncData(); err != nil {
		return fmt.Errorf("anchor: %w", err)
	}
	a.slot = next
	return nil
}

// pack writes an anchor that leads nowhere anew, in a file without room for leads. It says the
// same, so whichever of the files a crash leaves will do.
func (a *anchor) pack(files vfs.FS, path string) error {
	info, err := a.file.Stat()
	if err != nil || info.Size() <= anchorSize || len(a.slot.Lead) > 0 {
		return err
	}
	other := a.slot
	other.Sequence++
	packed := path + ".packed"
	if err := createAnchor(files, packed, a.key, a.slot, other); err != nil {
		return errors.Join(err, files.Remove(packed))
	}
	return files.Rename(packed, path)
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
	data := make([]byte, anchorSize+2*leadBytes)
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
	a, errA := decodeSlot(data[:n], 0)
	b, errB := decodeSlot(data[:n], slotStride)
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
	b = binary.BigEndian.AppendUint64(b, uint64(s.After.ID))
	b = append(b, s.After.Root[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.Lead)))
	b = binary.BigEndian.AppendUint32(b, checkCRC(s.Lead))
	b = append(b, slotMAC(b, key)...)
	sum := sha256.Sum256(b)
	return append(b, sum[:slotSumLen]...)
}

func slotMAC(b, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(b)
	return mac.Sum(nil)
}

// decodeSlot reads the slot at a place of the file. One whose lead is torn was never
// acknowledged.
func decodeSlot(file []byte, at int) (slot, error) {
	b := file[at:]
	if string(b[:len(anchorMagic)]) != anchorMagic {
		return slot{}, errSum
	}
	rest := b[len(anchorMagic):]
	sum := sha256.Sum256(b[:slotSumAt])
	if string(b[slotSumAt:slotSize]) != string(sum[:slotSumLen]) {
		return slot{}, errSum
	}
	if version := binary.BigEndian.Uint32(rest); version != anchorVersion {
		return slot{}, fmt.Errorf("unknown version %d", version)
	}
	s := slot{bytes: b[:slotSumAt], Sequence: binary.BigEndian.Uint64(rest[4:])}
	s.Head.ID = journal.Seq(binary.BigEndian.Uint64(rest[12:]))
	copy(s.Head.Root[:], rest[20:])
	s.Epoch = binary.BigEndian.Uint64(rest[20+sha256.Size:])
	rest = b[slotHeadBytes:]
	s.After.ID = journal.Seq(binary.BigEndian.Uint64(rest))
	copy(s.After.Root[:], rest[8:])
	rest = rest[8+sha256.Size:]
	length := int64(binary.BigEndian.Uint32(rest))
	if length > leadBytes || length > 0 && s.leadAt()+length > int64(len(file)) {
		return slot{}, errSum
	}
	if length > 0 {
		s.Lead = file[s.leadAt():][:length]
	}
	if checkCRC(s.Lead) != binary.BigEndian.Uint32(rest[4:]) {
		return slot{}, errSum
	}
	return s, nil
}
