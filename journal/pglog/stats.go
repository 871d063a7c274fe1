package pglog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/journal"
)

// Stats counts what a process has done in a store.
type Stats struct {
	Appends   journal.Latency // of the records of one world that went in one statement, until the answer
	Records   uint64          // in those that are durable
	Confirms  uint64          // appends that were not answered by a row: what became of them was looked for
	Fenced    uint64          // worlds that turned out to have another owner
	Rewound   uint64          // worlds that are halted: the store has lost what it had acknowledged
	Unknown   uint64          // appends of which nobody could tell in time whether they are durable
	Takeovers uint64          // worlds that were claimed from owners that had died

	PoolUsed, PoolMax int32         // connections
	PoolWaited        time.Duration // for one that was free
}

// stats is Stats that grows.
type stats struct {
	mu sync.Mutex
	Stats
}

func (s *stats) count(f func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.Stats)
}

// Stats returns what was done by now.
func (s *Store) Stats() Stats {
	pool := s.pool.Stat()
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	out := s.stats.Stats
	out.PoolUsed, out.PoolMax, out.PoolWaited = pool.AcquiredConns(), pool.MaxConns(), pool.AcquireDuration()
	return out
}

// Figures are measurements of a store, for monitoring.
type Figures struct {
	Nodes    int // that are alive
	Worlds   int // that live here
	Orphaned int // whose owner has died, and nobody has taken them over
	Overdue  int // that nobody owns, and that should have gone on a minute ago

	Begun   int // attempts of this process' worlds that are under way
	Expired int // of those, whose lease is over: their worker is gone, or late
	Ended   int // of this process' worlds, whose results the journal does not have yet
}

// Figures asks how the store stands.
func (s *Store) Figures(ctx context.Context) (f Figures, err error) {
	err = s.row(ctx, sqlFigures, []any{s.opts.Node, s.run}, &f.Nodes, &f.Worlds, &f.Orphaned, &f.Overdue, &f.Begun, &f.Expired, &f.Ended)
	return f, err
}

// landed counts what has become of a flight.
func (n *Stats) landed(f *flight, err error) {
	switch {
	case err == nil:
		n.Appends.Note(time.Since(f.began))
		n.Records += uint64(f.head.ID - f.after.ID)
	case errors.Is(err, journal.ErrFenced):
		n.Fenced++
	case errors.Is(err, journal.ErrRewound):
		n.Rewound++
	case errors.Is(err, journal.ErrUnknown):
		n.Unknown++
	}
}
