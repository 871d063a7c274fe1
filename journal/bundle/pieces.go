package bundle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/chunk"
	"github.com/worldkernel/worldkernel/journal"
)

// What the items of a blob in pieces begin with, besides the form of a record's.
const (
	headOfPiece = majorArray | 1
	majorUint   = 0
)

// Limits of pieces.
const (
	piecesFrom    = 4<<10 + 1 // bytes of a blob that is written in pieces
	maxPieces     = 1 << 23   // 16 bytes of memory each
	maxPieceBytes = 64 << 10
)

// pieceWriter is the pieces that a Writer has written.
type pieceWriter struct {
	number map[chunk.Sum]uint64
}

// inPieces writes a blob in pieces, those alone that are not there yet.
func (x *Writer) inPieces(content []byte) {
	l, err := chunk.Build(content, nil, func(piece []byte, _ bool) (uint64, chunk.Sum, error) {
		sum := sha256.Sum256(piece)
		n, there := x.pieces.number[sum]
		if !there {
			n = uint64(len(x.pieces.number)) + 1
			x.pieces.number[sum] = n
			x.item(canon.AppendBytes(append(x.buf[:0], headOfPiece), piece))
		}
		return n, sum, x.err
	})
	if err != nil {
		x.err = err
		return
	}
	b := canon.AppendUint(append(x.buf[:0], headOfPair), uint64(len(content)))
	x.item(canon.AppendBytes(b, l.Append(nil)))
}

// piece takes the item at hand, a piece.
func (k *indexer) piece() error {
	r := canon.NewReader(k.item)
	r.ArrayOf(1)
	piece := r.Bytes()
	if err := r.Close(); err != nil {
		k.fault("a piece: %w", err)
		return nil
	}
	switch {
	case len(piece) > maxPieceBytes:
		k.fault("a piece of more than %d bytes", maxPieceBytes)
	case len(k.r.pieces) >= maxPieces:
		return fmt.Errorf("%w: more than %d pieces", ErrLimit, maxPieces)
	}
	// What is at fault has its number, too: so it hurts no other.
	k.r.pieces = append(k.r.pieces, span{at: k.at + int64(len(k.item)-len(piece)), bytes: len(piece)})
	k.fresh = append(k.fresh, pendingPiece{k.items.n, k.at})
	return nil
}

// pendingPiece is a piece that the next blob has to need.
type pendingPiece struct {
	item uint64
	at   int64
}

// inPieces takes the item at hand, a blob in pieces.
func (k *indexer) inPieces() error {
	r := canon.NewReader(k.item)
	r.ArrayOf(2)
	size, list := r.Uint(), r.Bytes()
	if err := r.Close(); err != nil {
		k.fault("an array that is no [record, link], and no blob in pieces")
		return nil
	}
	if size > maxItemBytes {
		return errItemSize()
	}
	if k.stood += size; k.stood > uint64(k.most) {
		return ErrSize
	}
	l, err := chunk.Parse(list, size)
	if err == nil && l.Bytes() != size {
		err = chunk.ErrList
	}
	sum := sha256.New()
	if err == nil {
		err = k.r.readPieces(l, sum)
	}
	if err == nil {
		err = k.needed(l)
	}
	k.fresh = nil
	if errors.Is(err, chunk.ErrList) {
		k.fault("a blob in pieces: %w", err)
		return nil
	}
	if err != nil {
		return err
	}
	name := journal.Hash(sum.Sum(nil))
	k.r.lists[name] = span{at: k.at + int64(len(k.item)-len(list)), bytes: len(list)}
	return k.named(name, span{bytes: int(size)})
}

// needed says which of the pieces since the blob before a list does not need.
func (k *indexer) needed(l chunk.List) error {
	first := len(k.r.pieces) - len(k.fresh) + 1
	seen := make([]bool, len(k.fresh))
	err := l.Each(k.r.piece, func(number uint64, _ bool) bool {
		fresh := number >= uint64(first)
		if fresh {
			seen[number-uint64(first)] = true
		}
		return fresh // what is older needs nothing that is fresh
	})
	for i, p := range k.fresh {
		if err == nil && !seen[i] {
			k.r.damaged(p.item, p.at, "a piece that the next blob does not need")
		}
	}
	return err
}

// piece returns a piece by its number, from 1.
func (r *Reader) piece(number uint64) ([]byte, error) {
	if number == 0 || number > uint64(len(r.pieces)) {
		return nil, fmt.Errorf("%w: there is no piece %d before it", chunk.ErrList, number)
	}
	return r.bytes(r.pieces[number-1])
}

// readPieces writes a content to where it is summed up.
func (r *Reader) readPieces(l chunk.List, to hash.Hash) error {
	return l.Read(r.piece, func(_ uint64, piece []byte) error {
		to.Write(piece)
		return nil
	})
}

// inPieces returns a blob in pieces of so many bytes.
func (r *Reader) inPieces(at span, size int) ([]byte, error) {
	list, err := r.bytes(at)
	if err != nil {
		return nil, err
	}
	l, err := chunk.Parse(list, uint64(size))
	if err != nil {
		return nil, err
	}
	content := make([]byte, 0, size)
	err = l.Read(r.piece, func(_ uint64, piece []byte) error {
		content = append(content, piece...)
		return nil
	})
	return content, err
}
