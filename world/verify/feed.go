package verify

import (
	"iter"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// fed is a record as a Scan yields it, or what ended that, with what can be computed
// of it ahead of who looks at it. Nobody changes it: scan and a replay beside it share it.
type fed struct {
	journal.Scanned             // its Root is zero from where the chain cannot be computed any more
	id              journal.Seq // its number, as it says itself
	leaf            checkpoint.Hash
	err             error
}

// feed reads the journal once for scan and for a replay beside it, so that what is
// replayed is what was checked.
type feed struct {
	chain *canon.Chain
	lost  bool // the chain cannot be computed any more

	scan   chan []fed
	replay chan []fed
	ended  chan struct{} // closed when the replay takes no more
}

// Records are handed over many at once, because that costs, and each of the two who take
// them may be so many chunks behind, so that neither waits for a slow record of the other.
const (
	chunkRecords = 256
	chunksBehind = 4
)

func newFeed(before journal.Hash) *feed {
	return &feed{
		chain: canon.ResumeChain(before),
		scan:  make(chan []fed, 1), replay: make(chan []fed, 1), ended: make(chan struct{}),
	}
}

// readHistory reads a history for scan, which takes all of it, and for the replay.
func (f *feed) readHistory(h journal.History) {
	defer close(f.scan)
	defer close(f.replay)
	var next []fed
	for s, err := range h.Scan(0) {
		if next = append(next, f.hash(s, err)); len(next) == chunkRecords {
			f.give(next)
			next = make([]fed, 0, chunkRecords)
		}
		if err != nil {
			break
		}
	}
	f.give(next)
}

func (f *feed) give(chunk []fed) {
	f.scan <- chunk
	select {
	case f.replay <- chunk:
	case <-f.ended:
	}
}

// hash adds a record to the chain, and hashes it for the tree. Of a record that cannot
// be read its number and kind are enough for the chain.
func (f *feed) hash(s journal.Scanned, err error) fed {
	if err != nil {
		return fed{err: err}
	}
	id, kind := s.Record.ID, s.Record.Kind
	if s.Err != nil {
		e, err := canon.DecodeEnvelope(s.Bytes)
		f.lost = f.lost || err != nil
		id, kind = journal.Seq(e.ID), journal.Kind(e.Kind)
	}
	s.Root = journal.Hash{}
	if !f.lost {
		s.Root = f.chain.Add(uint64(id), string(kind), s.Bytes)
	}
	return fed{Scanned: s, id: id, leaf: checkpoint.Leaf(s.Bytes)}
}

// records yields what was read for scan.
func (f *feed) records() iter.Seq[*fed] {
	return func(yield func(*fed) bool) {
		for chunk := range f.scan {
			for i := range chunk {
				if !yield(&chunk[i]) {
					return
				}
			}
		}
	}
}

// fedHistory is a history whose first Scan of everything gets its records from a feed.
type fedHistory struct {
	journal.History
	*feed
}

// Scan implements journal.History.
func (h *fedHistory) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	if after != 0 || h.feed == nil {
		return h.History.Scan(after)
	}
	chunks := h.replay
	h.feed = nil
	return func(yield func(journal.Scanned, error) bool) {
		for chunk := range chunks {
			for i := range chunk {
				if !yield(chunk[i].Scanned, chunk[i].err) {
					return
				}
			}
		}
	}
}
