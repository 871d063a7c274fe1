package store

import (
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// reading counts what reads from Pebble, which panics when it is asked after it was closed. So Close
// has no other read begin, and waits for those that have. Whoever reads may read more meanwhile: it
// gets ErrClosed, and ends.
type reading struct {
	mu   sync.Mutex
	n    int  // reads under way
	over bool // none begins any more
	none chan struct{}
}

// beginRead counts a read, for which end is called when it is over.
func (r *reading) beginRead() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return ErrClosed
	}
	r.n++
	return nil
}

func (r *reading) endRead() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n--; r.n == 0 && r.over {
		close(r.none)
	}
}

// stop has no read begin, and returns what is closed when none is under way.
func (r *reading) stop() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over, r.none = true, make(chan struct{})
	if r.n == 0 {
		close(r.none)
	}
	return r.none
}

// iterator is one that counts as a read until it is closed.
type iterator struct {
	*pebble.Iterator
	of *reading
}

func (it *iterator) Close() error {
	defer it.of.endRead()
	return it.Iterator.Close()
}

func (s *Store) iterate(lower, upper []byte) (*iterator, error) {
	if err := s.reading.beginRead(); err != nil {
		return nil, err
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		s.reading.endRead()
		return nil, err
	}
	return &iterator{it, &s.reading}, nil
}

// value returns a value of Pebble's, which counts as a read until it is closed.
func (s *Store) value(key []byte) ([]byte, io.Closer, error) {
	if err := s.reading.beginRead(); err != nil {
		return nil, nil, err
	}
	value, closer, err := s.db.Get(key)
	if err != nil {
		s.reading.endRead()
		return nil, nil, err
	}
	return value, got{closer, &s.reading}, nil
}

// got is what keeps a value valid.
type got struct {
	io.Closer
	of *reading
}

func (g got) Close() error {
	defer g.of.endRead()
	return g.Closer.Close()
}
