package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/worldkernel/worldkernel/receipt"
)

// The layout of the effect store; see the package comment.
const (
	storeMagic     = "worldkernel/effects/v1\x00"
	durableBytes   = 8                               // where what was durable ends, at the beginning of a body
	frameHeader    = 4 + 4 + 8                       // checksum, length of the body, place
	entryHeader    = len(receipt.Key{}.Hash) + 8 + 4 // key, attempt, length of the receipt
	frameBodyLimit = 16 << 20                        // at which a group is full; one entry may exceed it
)

// entry is a result of an attempt, or, without a receipt, that it can go.
type entry struct {
	attempt
	receipt []byte
	checked *receipt.Checked // the same, where this process has signed it
	sure    bool             // nobody is told of it before it is durable
	safe    func()           // called when it outlives the process; nil: nobody wants to know
}

func (e *entry) size() int { return entryHeader + len(e.receipt) }

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // made once, in hash/crc32

// DamageError says that the effect store holds what was never written there.
type DamageError struct {
	Path   string
	Offset int64 // of the first byte that cannot be read
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %s", e.Path, e.Offset, e.Reason)
}

// beginFrame appends the header of a frame that will stand at a place in the
// file; endFrame, given where in b it begins, completes it.
func beginFrame(b []byte, place int64) []byte {
	b = append(b, make([]byte, 8)...)
	return binary.BigEndian.AppendUint64(b, uint64(place))
}

func endFrame(frame []byte) {
	binary.BigEndian.PutUint32(frame[4:], uint32(len(frame)-frameHeader))
	binary.BigEndian.PutUint32(frame, crc32.Checksum(frame[4:], castagnoli()))
}

func appendEntry(b []byte, e *entry) []byte {
	b = append(b, e.key.Hash[:]...)
	b = binary.BigEndian.AppendUint64(b, e.number)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.receipt)))
	return append(b, e.receipt...)
}

// beginGroup begins a frame of entries at a place, with what is durable before it.
func beginGroup(b []byte, place, durable int64) []byte {
	return binary.BigEndian.AppendUint64(beginFrame(b, place), uint64(durable))
}

// frameAt returns the body of the frame at a place, if a whole one stands there.
func frameAt(file []byte, place int) (body []byte, ok bool) {
	rest := file[place:]
	if len(rest) < frameHeader || binary.BigEndian.Uint64(rest[8:]) != uint64(place) {
		return nil, false
	}
	length := uint64(binary.BigEndian.Uint32(rest[4:]))
	if length > uint64(len(rest)-frameHeader) {
		return nil, false
	}
	rest = rest[:frameHeader+length]
	return rest[frameHeader:], crc32.Checksum(rest[4:], castagnoli()) == binary.BigEndian.Uint32(rest)
}

// parseStore reads a whole effect store: what it holds for a world, and where its frames
// end. Groups whose sync never returned may be torn; any other bad frame before a good
// one is a *DamageError without path.
func parseStore(file []byte, world string) (kept map[attempt][]byte, end int, err error) {
	head, ok := frameAt(file, 0)
	if !ok || !bytes.HasPrefix(head, []byte(storeMagic)) {
		return nil, 0, &DamageError{Reason: "it does not begin like an effect store of version 1"}
	}
	if owner := string(head[len(storeMagic):]); owner != world {
		return nil, 0, fmt.Errorf("it belongs to world %s, not to %s", owner, world)
	}
	kept = make(map[attempt][]byte)
	hole := 0 // where the first torn frame stands; 0: there is none
	for end = frameHeader + len(head); ; {
		place, body := nextFrame(file, end)
		if body == nil {
			return kept, end, nil
		}
		if place > end && hole == 0 {
			hole = end
		}
		end = place + frameHeader + len(body)
		if len(body) < durableBytes {
			return nil, place, &DamageError{Offset: int64(place), Reason: errEntry.Error()}
		}
		durable := binary.BigEndian.Uint64(body)
		body = body[durableBytes:]
		if hole > 0 && durable > uint64(hole) {
			return nil, hole, &DamageError{Offset: int64(hole), Reason: fmt.Sprintf("no frame, but one follows at %d", place)}
		}
		if err := parseEntries(body, kept); err != nil {
			return nil, place, &DamageError{Offset: int64(place), Reason: err.Error()}
		}
	}
}

// nextFrame returns the first whole frame at a place or after it; no body: there is none.
func nextFrame(file []byte, place int) (int, []byte) {
	for ; place <= len(file)-frameHeader; place++ {
		if body, ok := frameAt(file, place); ok {
			return place, body
		}
	}
	return place, nil
}

var errEntry = errors.New("a frame with a valid checksum has no whole entries")

func parseEntries(body []byte, kept map[attempt][]byte) error {
	for len(body) > 0 {
		if len(body) < entryHeader {
			return errEntry
		}
		var at attempt
		n := copy(at.key.Hash[:], body)
		at.number = binary.BigEndian.Uint64(body[n:])
		length := uint64(binary.BigEndian.Uint32(body[n+8:]))
		body = body[entryHeader:]
		if length > uint64(len(body)) {
			return errEntry
		}
		if length == 0 {
			delete(kept, at)
		} else {
			kept[at] = body[:length:length]
		}
		body = body[length:]
	}
	return nil
}
