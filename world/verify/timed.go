package verify

import (
	"context"
	"iter"

	"github.com/worldkernel/worldkernel/journal"
)

// timed is a history of which nothing more is scanned once ctx has ended.
type timed struct {
	journal.History
	ctx context.Context
}

// Scan implements journal.History.
func (h timed) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for s, err := range h.History.Scan(after) {
			if err == nil {
				err = context.Cause(h.ctx)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// until yields errors until ctx ends.
func until(ctx context.Context, all iter.Seq[error]) iter.Seq[error] {
	if all == nil {
		return nil
	}
	return func(yield func(error) bool) {
		for err := range all {
			if ctx.Err() != nil || !yield(err) {
				return
			}
		}
	}
}
