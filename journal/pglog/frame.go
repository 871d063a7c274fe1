package pglog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

const (
	// maxFrameRecords and maxFrameBytes are what a frame holds at most, before it is packed; a
	// record that is longer has one of its own.
	maxFrameRecords = 2048
	maxFrameBytes   = 1 << 20

	// packFrom is how long something is at least that may get shorter.
	packFrom = 64
	// packWindow is how far back packed bytes refer, so also what an encoder keeps.
	packWindow = 1 << 20
)

// How long anything is at most, packed or not. What claims more is damaged, and not read.
const (
	maxFrame   = 32 << 20  // what may be with a record of maxStatementBytes
	maxContent = 128 << 20 // twice what limits.payload may be, and a file that a manifest names
	maxPart    = journal.MaxKeptPart
	maxSmall   = 1 << 20 // of notes, keyrings and the tree of an image
)

// How packed bytes begin.
const (
	packedPlain = 0
	packedZstd  = 1
)

// packer makes bytes shorter, and checks nothing: all that is packed has a hash.
type packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	raw     sync.Pool // of *[]byte: a frame before it is packed
}

func newPacker() (*packer, error) {
	e, err1 := zstd.NewWriter(nil, zstd.WithEncoderCRC(false), zstd.WithWindowSize(packWindow),
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	d, err2 := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderConcurrency(0))
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("pglog: zstd: %w", err)
	}
	return &packer{encoder: e, decoder: d, raw: sync.Pool{New: func() any { return new([]byte) }}}, nil
}

func (p *packer) pack(b []byte) []byte {
	if len(b) >= packFrom {
		room := append(make([]byte, 0, 1+len(b)/2), packedZstd)
		if out := p.encoder.EncodeAll(b, room); len(out) <= len(b) {
			return out
		}
	}
	return append([]byte{packedPlain}, b...)
}

// unpack returns so many bytes at most, which are its caller's only if the bytes given are. It takes
// no more memory, whatever it is given.
func (p *packer) unpack(b []byte, most int) ([]byte, error) {
	switch {
	case len(b) == 0:
		return nil, errors.New("there are no bytes, or too many")
	case len(b)-1 > most:
		return nil, fmt.Errorf("it has %d bytes, and %d are the most", len(b)-1, most)
	case b[0] == packedPlain:
		return b[1:], nil
	case b[0] == packedZstd:
		return p.decode(b[1:], most)
	}
	return nil, fmt.Errorf("they are packed in an unknown way, %d", b[0])
}

// unsaid is how long something is at most that does not say so when it is packed.
const unsaid = 256

// decode has room for what packed bytes say that they are.
func (p *packer) decode(b []byte, most int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	if !h.HasFCS {
		h.FrameContentSize = unsaid
	}
	if h.FrameContentSize > uint64(most) {
		return nil, fmt.Errorf("it unpacks to %d bytes, and %d are the most", h.FrameContentSize, most)
	}
	return p.decoder.DecodeAll(b, make([]byte, 0, h.FrameContentSize))
}

// frame is a row of records that follow from each other.
type frame struct {
	first, last journal.Seq
	was         journal.Hash // the chain root before the first
	body        []byte       // packed
}

// frames puts the records after a head into frames.
func (p *packer) frames(after journal.Head, records iter.Seq[journal.Stored]) []frame {
	var out []frame
	kept := p.raw.Get().(*[]byte)
	raw := (*kept)[:0]
	defer func() {
		*kept = raw
		p.raw.Put(kept)
	}()
	f := frame{first: after.ID + 1, last: after.ID, was: after.Root}
	root := after.Root
	end := func() {
		if f.last >= f.first {
			f.body = p.pack(raw)
			out = append(out, f)
			f, raw = frame{first: f.last + 1, last: f.last, was: root}, raw[:0]
		}
	}
	for r := range records {
		if f.last-f.first+1 >= maxFrameRecords || len(raw)+len(r.Bytes) > maxFrameBytes {
			end()
		}
		raw = binary.AppendUvarint(raw, uint64(len(r.Bytes)))
		raw = append(raw, r.Bytes...)
		raw = append(raw, r.Root[:journal.LinkBytes]...)
		f.last, root = r.ID, r.Root
	}
	end()
	return out
}

// DamageError names what in a store is not what was written.
type DamageError struct {
	World string // empty: it is not of one
	What  string // "frame #1 to #2048", "content 9f86d0…", "image"
	Err   error
}

func (e *DamageError) Error() string {
	if e.World == "" {
		return fmt.Sprintf("pglog: %s is damaged: %v", e.What, e.Err)
	}
	return fmt.Sprintf("pglog: world %s: %s is damaged: %v", e.World, e.What, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// open checks a frame, yields its records, and returns the chain root with the last. Yield
// returns whether to go on.
func (f *frame) open(p *packer, yield func(journal.Linked) bool) (journal.Hash, bool, error) {
	raw, err := p.unpack(f.body, maxFrame)
	if err != nil {
		return journal.Hash{}, false, err
	}
	chain := canon.ResumeChain(f.was)
	for id := f.first; id <= f.last; id++ {
		n, w := binary.Uvarint(raw)
		if w <= 0 || n > uint64(len(raw)-w) || uint64(len(raw)-w)-n < journal.LinkBytes {
			return journal.Hash{}, false, fmt.Errorf("it ends within record #%d", id)
		}
		r := journal.Linked{ID: id, Bytes: raw[w : w+int(n) : w+int(n)]}
		raw = raw[w+int(n):]
		raw = raw[copy(r.Link[:], raw):]
		e, err := canon.DecodeEnvelopeAs(r.Bytes, journal.KindOf)
		if err != nil {
			return journal.Hash{}, false, fmt.Errorf("record #%d: %w", id, err)
		}
		if root := chain.Add(uint64(id), e.Kind, r.Bytes); [journal.LinkBytes]byte(root[:]) != r.Link {
			return journal.Hash{}, false, fmt.Errorf("record #%d is not the one that was appended: its link does not match", id)
		}
		if !yield(r) {
			return journal.Hash{}, false, nil
		}
	}
	if len(raw) > 0 {
		return journal.Hash{}, false, fmt.Errorf("%d bytes follow its last record", len(raw))
	}
	return chain.Root(), true, nil
}
