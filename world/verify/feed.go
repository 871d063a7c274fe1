package verify

import (
	"iter"

	"github.com/worldkernel/worldkernel/journal"
)

// feed hands the records that scan reads over to a replay beside it, so that the
// journal is read once, and what is replayed is what was checked.
type feed struct {
	next   []fed
	chunks chan []fed
	ended  chan struct{} // closed when the replay takes no more
}

// fed is what a Scan yields.
type fed struct {
	journal.Scanned
	err error
}

// Records are handed over many at once, because that costs. At most three chunks are
// in memory.
const chunkRecords = 256

func newFeed() *feed {
	return &feed{chunks: make(chan []fed, 1), ended: make(chan struct{})}
}

// give hands over one record, or what ended the reading. There is no feed where
// nothing is replayed.
func (f *feed) give(s journal.Scanned, err error) {
	if f == nil {
		return
	}
	if f.next = append(f.next, fed{s, err}); len(f.next) == chunkRecords {
		f.flush()
	}
}

func (f *feed) flush() {
	select {
	case f.chunks <- f.next:
	case <-f.ended:
	}
	f.next = make([]fed, 0, chunkRecords)
}

// close ends the journal for the replay.
func (f *feed) close() {
	if f != nil {
		f.flush()
		close(f.chunks)
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
	chunks := h.chunks
	h.feed = nil
	return func(yield func(journal.Scanned, error) bool) {
		for chunk := range chunks {
			for _, r := range chunk {
				if !yield(r.Scanned, r.err) {
					return
				}
			}
		}
	}
}
