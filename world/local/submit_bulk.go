package local

import (
	"cmp"
	"context"
	"iter"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
)

// Accepted says which events of a bulk were taken.
type Accepted struct {
	Count       uint64
	First, Last journal.Seq // their records; others may lie between them. 0: there are none
}

// The size of a piece of a bulk: others get hold of the world between two.
const (
	pieceEvents = 256
	pieceBytes  = 256 << 10 // of data, or one event
)

// lined is an event of a bulk, and the line that it came on.
type lined struct {
	world.Submission
	line uint64 // from 1
}

// submitBulk takes events until the first that is refused, or that the sequence has an
// error for: that one is returned, too. Those that were taken are durable. The world is
// held for a piece of them at a time, and not while the sequence makes the next.
func (lw *World) submitBulk(ctx context.Context, all iter.Seq2[lined, error]) (a Accepted, refused lined, err error) {
	piece, size := make([]lined, 0, pieceEvents), 0
	for s, fault := range all {
		if fault == nil {
			piece, size = append(piece, s), size+len(s.Data)
		}
		if fault != nil || len(piece) == pieceEvents || size >= pieceBytes {
			if refused, err = lw.submitPiece(ctx, piece, &a); err != nil {
				return a, refused, err
			}
			piece, size = piece[:0], 0
		}
		if fault != nil {
			return a, s, fault
		}
	}
	refused, err = lw.submitPiece(ctx, piece, &a)
	return a, refused, err
}

// submitPiece submits events at once, adds those that were taken, and returns the first
// that was not.
func (lw *World) submitPiece(ctx context.Context, piece []lined, to *Accepted) (refused lined, err error) {
	if len(piece) == 0 {
		return refused, nil
	}
	first, taken, err := lw.SubmitAll(ctx, func(yield func(world.Submission, error) bool) {
		for _, s := range piece {
			if !yield(s.Submission, nil) {
				return
			}
		}
	})
	if taken > 0 {
		to.First, to.Last = cmp.Or(to.First, first), first+journal.Seq(taken)-1
		to.Count += taken
	}
	if taken < uint64(len(piece)) {
		refused = piece[taken]
	}
	return refused, err
}
