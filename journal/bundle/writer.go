package bundle

import (
	"fmt"
	"io"
	"slices"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/chunk"
	"github.com/worldkernel/worldkernel/journal"
)

// Writer writes a bundle, item by item. It computes chain and Merkle tree itself,
// so that nothing is written that does not belong together: that is an ErrInvalid.
// After an error it writes nothing more, and what was written is no bundle. Equal
// calls write equal bytes. It is not safe for concurrent use.
type Writer struct {
	course course
	to     *packer
	n      int64 // bytes before they are packed
	chain  *canon.Chain
	tree   *checkpoint.Tree

	written map[journal.Hash]bool
	pieces  pieceWriter
	pending journal.BlobList // since the last record

	buf []byte
	err error
}

// NewWriter begins a bundle. The lists of h need not be sorted.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h = h.sorted()
	if err := h.overLimit(); err != nil {
		return nil, err
	}
	if faults := h.faults(); len(faults) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, faults[0])
	}
	tree, err := checkpoint.Resume(uint64(h.First-1), h.Nodes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	x := &Writer{
		course: newCourse(&h), to: newPacker(w), chain: canon.ResumeChain(h.Root), tree: tree,
		pieces: pieceWriter{number: make(map[chunk.Sum]uint64)}, written: make(map[journal.Hash]bool),
	}
	x.item(h.append(nil))
	return x, x.err
}

// Blob writes a content that the next record needs, unless it was written before
// or is withheld. The Writer keeps it until that record.
func (x *Writer) Blob(content []byte) error {
	name := canon.Sum(content)
	if _, withheld := x.course.withheld[name]; x.err != nil || withheld || x.written[name] {
		return x.err
	}
	if len(x.written) >= maxBlobs {
		return x.fail(fmt.Errorf("%w: more than %d blobs", ErrLimit, maxBlobs))
	}
	x.written[name] = true
	x.pending = append(x.pending, journal.Blob{Hash: name, Bytes: content})
	x.course.ends = false
	if len(content) < piecesFrom || len(x.pieces.number)+len(content)/256 > maxPieces {
		x.item(canon.AppendBytes(x.buf[:0], content))
	} else {
		x.inPieces(content)
	}
	return x.err
}

// Record writes the next record, with the link that its journal keeps beside it.
func (x *Writer) Record(s journal.Scanned) error {
	rec := s.Record
	switch {
	case x.err != nil:
		return x.err
	case s.Err != nil:
		return x.fail(s.Err)
	case rec.ID != x.course.last+1 || rec.ID > x.course.header.Last:
		return x.invalid("record #%d is not the next of #%d to #%d", rec.ID, x.course.last+1, x.course.header.Last)
	}
	root := x.chain.Add(uint64(rec.ID), string(rec.Kind), s.Bytes)
	if [journal.LinkBytes]byte(root[:]) != s.Link {
		return x.invalid("record #%d has another chain root than its link says", rec.ID)
	}
	if len(x.pending) > 0 {
		names := needs(rec, x.pending, 0)
		for _, b := range x.pending {
			if !slices.Contains(names, b.Hash) {
				return x.invalid("record #%d does not need blob %s", rec.ID, b.Hash)
			}
		}
		x.pending = nil
	}
	x.tree.Add(s.Bytes)
	x.course.record(rec.ID, rec.Blob)
	x.item(canon.AppendBytes(append(append(x.buf[:0], headOfPair), s.Bytes...), s.Link[:]))
	return x.err
}

// Checkpoint writes a signed checkpoint of the records up to the last one that was
// written. At least one of Header.Keys has signed it.
func (x *Writer) Checkpoint(note []byte) error {
	if x.err != nil {
		return x.err
	}
	signed, err := checkpoint.Open(note, x.course.header.Keys...)
	if err == nil {
		err = x.course.checkpoint(note, len(x.pending) > 0)
	}
	switch {
	case err != nil:
		return x.invalid("after record #%d: %w", x.course.last, err)
	case signed.Root != x.tree.Root():
		return x.invalid("the checkpoint at %d is not one of these records", signed.Size)
	case len(signed.By) == 0:
		return x.invalid("none of the header's keys has signed the checkpoint at %d", signed.Size)
	}
	x.item(canon.AppendText(x.buf[:0], string(note)))
	return x.err
}

// Close ends the bundle. It does not close the writer below.
func (x *Writer) Close() error {
	if x.err != nil {
		return x.err
	}
	if faults := x.course.close(); len(faults) > 0 {
		return x.invalid("%w", faults[0].Err)
	}
	if err := x.to.Close(); err != nil {
		return x.fail(fmt.Errorf("bundle: %w", err))
	}
	x.err = fmt.Errorf("%w: it has ended", ErrInvalid)
	return nil
}

func (x *Writer) fail(err error) error {
	x.err = err
	return err
}

func (x *Writer) invalid(format string, args ...any) error {
	return x.fail(fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
}

// item writes an item that was appended to the Writer's buffer.
func (x *Writer) item(b []byte) {
	if cap(b) <= keptBytes {
		x.buf = b[:0]
	}
	x.n += int64(len(b))
	switch {
	case len(b) > maxItemBytes:
		x.err = errItemSize()
	case x.n > DefaultMaxBytes:
		x.err = errUnpacked(DefaultMaxBytes)
	case !inRatio(x.n, x.to.n): // what is packed already a reader has read before this item
		x.err = errUnpacked(freeBytes + maxRatio*x.to.n)
	default:
		if _, err := x.to.Write(b); err != nil {
			x.err = fmt.Errorf("bundle: %w", err)
		}
	}
}
