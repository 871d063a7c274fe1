package store

import (
	"context"
	"iter"
	"sync"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// acknowledged is how far the journal is durable, and who waits for more of it.
type acknowledged struct {
	mu     sync.Mutex
	last   journal.Seq
	follow bool             // somebody asks for records as they come
	recent []journal.Stored // then the last of them up to last; what is in it stays as it is
	ended  bool             // nothing more will be acknowledged
	news   chan struct{}    // closed when one of these changes, or the store fails; nil: nobody waits
}

// recentRecords is how many records are in recent at most: 2 MiB, as none has more than journal.MaxInlineBytes in it.
const recentRecords = 512

// Await blocks until a record after one is durable, or returns the error of ctx,
// the one that the store has failed with, or ErrClosed. Any number of callers may
// wait, also while the store is being closed.
func (s *Store) Await(ctx context.Context, after journal.Seq) error {
	for {
		news, err := s.News(after)
		if news == nil {
			return err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// News returns nil once a record after one is durable, or with the error why none will be. Else it returns
// what is closed when that may have changed.
func (s *Store) News(after journal.Seq) (<-chan struct{}, error) {
	there, ended, news := s.acked.look(after)
	switch {
	case there:
		return nil, nil
	case s.failed() != nil:
		return nil, s.failed()
	case ended:
		return nil, ErrClosed
	}
	return news, nil
}

// AwaitRecords waits as Await does, and yields the durable records after one. It reads no disk for those that were
// appended lately.
func (s *Store) AwaitRecords(ctx context.Context, after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		s.acked.mu.Lock()
		s.acked.follow = true
		s.acked.mu.Unlock()
		if err := s.Await(ctx, after); err != nil {
			yield(journal.Scanned{}, err)
			return
		}
		recent, last := s.acked.since(after)
		for _, r := range recent {
			e, err := canon.DecodeEnvelopeAs(r.Bytes, journal.KindOf)
			if err != nil {
				yield(journal.Scanned{}, err)
				return
			}
			if !yield(journal.ScannedAs(e, r.Bytes, r.Root[:]), nil) {
				return
			}
		}
		if len(recent) > 0 {
			return
		}
		for r, err := range s.Scan(after) {
			if !yield(r, err) || err != nil || r.ID >= last {
				return
			}
		}
	}
}

// look reports whether a record after one is acknowledged, and whether none will
// be any more. news is closed when that may have changed.
func (a *acknowledged) look(after journal.Seq) (there, ended bool, news <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.news == nil {
		a.news = make(chan struct{})
	}
	return a.last > after, a.ended, a.news
}

// since returns the acknowledged records after one, if all of them are recent, and the last that is acknowledged.
func (a *acknowledged) since(after journal.Seq) (recent []journal.Stored, last journal.Seq) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at := len(a.recent) - int(a.last-min(after, a.last)); at >= 0 { //nolint:gosec // a difference of ids
		recent = a.recent[at:]
	}
	return recent, a.last
}

// reach takes note of the last record that is durable, and of the records up to it; nil: recent holds none of them.
func (a *acknowledged) reach(last journal.Seq, records []journal.Stored) {
	a.change(func() {
		if records == nil {
			a.recent = nil
		}
		a.last, a.recent = last, append(a.recent, records...)
		a.recent = a.recent[max(0, len(a.recent)-recentRecords):]
	})
}

// copies returns copies of the records of a group, whose memory is the caller's again when it is done; nil: recent holds none of them.
func (a *acknowledged) copies(group []*pending) []journal.Stored {
	a.mu.Lock()
	follow := a.follow
	a.mu.Unlock()
	var kept arena
	recent := []journal.Stored{}
	for _, p := range group {
		if !follow || len(recent)+len(p.Records) > recentRecords {
			return nil
		}
		for _, r := range p.Records {
			r.Bytes = kept.copy(r.Bytes)
			recent = append(recent, r)
		}
	}
	return recent
}

// endWaits takes note that no more will be.
func (a *acknowledged) endWaits() {
	a.change(func() { a.ended, a.recent = true, nil })
}

func (a *acknowledged) change(how func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	how()
	if a.news != nil {
		close(a.news)
		a.news = nil
	}
}
