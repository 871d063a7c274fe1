package store

import (
	"context"
	"sync"

	"github.com/worldkernel/worldkernel/journal"
)

// acknowledged is how far the journal is durable, and who waits for more of it.
type acknowledged struct {
	mu    sync.Mutex
	last  journal.Seq
	ended bool          // nothing more will be acknowledged
	news  chan struct{} // closed when one of these changes; nil: nobody waits
}

// Await blocks until a record after one is durable, or returns the error of ctx,
// the one that the store has failed with, or ErrClosed. Any number of callers may
// wait, also while the store is being closed.
func (s *Store) Await(ctx context.Context, after journal.Seq) error {
	for {
		there, ended, news := s.acked.look(after)
		switch {
		case there:
			return nil
		case s.failed() != nil:
			return s.failed()
		case ended:
			return ErrClosed
		}
		select {
		case <-news:
		case <-s.failing:
		case <-ctx.Done():
			return ctx.Err()
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

// reach takes note of the last record that is durable.
func (a *acknowledged) reach(last journal.Seq) {
	a.change(func() { a.last = last })
}

// endWaits takes note that no more will be.
func (a *acknowledged) endWaits() {
	a.change(func() { a.ended = true })
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
