package host

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/receipt"
)

// Bounds of what is written at once, besides frameBodyLimit.
const (
	groupMost  = 4096 // attempts
	forgetMost = 256  // forgotten ones, after which they do not wait for others any more
)

// effectStore keeps the results of live effects until the journal has them, on a medium: a file of
// its own, or a table that it shares with those who own the world after it. One goroutine writes:
// whatever came while it wrote is the next group. All of it may be called by any goroutine.
type effectStore struct {
	medium medium
	name   string              // of the medium, in errors
	lease  time.Duration       // of a worker elsewhere, as the medium has it; 0: who has the medium has the world
	stored func(group []entry) // told of results that outlive the process, in their order; must not keep group
	failed func(error)         // told once; nothing is safe after it

	mu      sync.Mutex // guards what follows
	work    *sync.Cond // signalled when the writer has something to do
	waiting []change   // for the writer
	urgent  int        // how many of them somebody waits for
	woken   bool       // the medium has something to do
	rows    map[attempt]row
	loose   map[attempt]bool // of rows: outlive the process, but not the machine; nil: the medium knows no such
	live    int64            // bytes of their results
	dropped bool             // the medium may have what rows have not
	closed  bool
	err     error

	ended chan struct{} // closed when the writer has ended

	group   []change // the writer's own, and so is results
	results []entry

	syncs, written atomic.Uint64
}

// medium is what an effectStore writes. Only its writer calls it, and close after that has ended.
type medium interface {
	// write makes a group safe, has the store keep it, and tells of what began. The group is
	// empty where the medium has woken the writer.
	write(group []change) error
	// tidy is called when what a group holds was told.
	tidy() error
	// end ends it; with an error, of what could not be written.
	closeMedium(err error) error
}

// row is what is kept of an attempt, or is about to be.
type row struct {
	receipt []byte        // safe
	worker  string        // that it was lent to by an earlier process
	until   time.Time     // of the lease that an earlier process has left it with
	heard   time.Time     // of a worker's lease: before the table was told, or asked, which has it
	lent    time.Duration // from then on
	stale   bool          // left by an earlier process, and not recovered yet
}

// change is of one attempt: that it begins, that it has a result, that its lease goes on, or
// that it can go.
type change struct {
	entry
	begin   *beginning
	renewal *beginning
}

// isUrgent reports whether somebody waits for it.
func (c *change) isUrgent() bool { return c.begin != nil || c.renewal != nil || c.receipt != nil }

// left is what a store knows of an attempt; the zero value: that it may have been made.
type left struct {
	receipt []byte    // its result
	unbegun bool      // nobody has begun it
	worker  string    // that has it, in another process; empty: who owned the world had it
	until   time.Time // of its lease
}

func openStore(cfg *Config, files vfs.FS) (*effectStore, error) {
	if cfg.Attempts != nil {
		return openTable(cfg.Attempts, cfg.Lease)
	}
	l, err := openEffectLog(files, cfg.EffectLog, cfg.World)
	if err != nil {
		return nil, err
	}
	return l.effectStore, nil
}

func newEffectStore(name string, lease time.Duration) *effectStore {
	s := &effectStore{name: name, lease: lease, rows: make(map[attempt]row), ended: make(chan struct{})}
	s.work = sync.NewCond(&s.mu)
	return s
}

// start begins to write.
func (s *effectStore) start(stored func([]entry), failed func(error)) {
	s.stored, s.failed = stored, failed
	go s.run()
}

// beginAttempt begins an attempt, for a worker elsewhere or, without a name, for this process. It takes note
// of the row before it is there: from here on nobody can tell that it is not. Who has a file needs
// no word of it.
func (s *effectStore) beginAttempt(at attempt, worker string) *beginning {
	if s.lease == 0 {
		return nil
	}
	b := &beginning{worker: worker, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.over(); err != nil {
		b.endBeginning(false, err)
		return b
	}
	b.first = s.noteBegun(at)
	s.add(change{entry: entry{attempt: at}, begin: b})
	return b
}

// over returns why nothing is written any more. It is called with mu held, and so are the
// next two.
func (s *effectStore) over() error {
	if s.err == nil && s.closed {
		return ErrClosed
	}
	return s.err
}

func (s *effectStore) noteBegun(at attempt) (first bool) {
	if _, known := s.rows[at]; known {
		return false
	}
	s.rows[at] = row{}
	return true
}

func (s *effectStore) add(c change) {
	s.waiting = append(s.waiting, c)
	if c.isUrgent() {
		s.urgent++
	}
	if s.urgent > 0 || len(s.waiting) >= forgetMost {
		s.work.Signal()
	}
}

// renew prolongs what workers elsewhere have. It has the last of several told when it is.
func (s *effectStore) renew(lent []attempt) *beginning {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last *beginning
	for _, at := range lent {
		if r, ok := s.rows[at]; !ok || s.lease == 0 || r.receipt != nil {
			continue
		}
		last = &beginning{done: make(chan struct{})}
		if err := s.over(); err != nil {
			last.endBeginning(false, err)
		} else {
			s.add(change{entry: entry{attempt: at}, renewal: last})
		}
	}
	return last
}

// lends reports whether an attempt is sure to be left to its worker elsewhere for a lease from now.
func (s *effectStore) lends(at attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rows[at]
	return !ok || s.lease == 0 || passed(r.heard)+s.lease/2 <= r.lent
}

// put stores a result, unless the store is closed or has failed.
func (s *effectStore) put(e entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() != nil {
		return false
	}
	if s.lease > 0 {
		s.noteBegun(e.attempt)
	}
	s.add(change{entry: e})
	return true
}

// forget drops an attempt whose result the journal has. The medium is told with a later group: one
// that is forgotten twice does no harm.
func (s *effectStore) forget(at attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(at)
}

// drop is forget with mu held.
func (s *effectStore) drop(at attempt) {
	r, ok := s.rows[at]
	if !ok || s.over() != nil {
		return
	}
	if r.receipt != nil {
		s.live -= int64(entryHeader + len(r.receipt))
	}
	delete(s.rows, at)
	delete(s.loose, at)
	s.dropped = true
	s.add(change{entry: entry{attempt: at}})
}

// get returns a result that is safe, and not forgotten.
func (s *effectStore) get(at attempt) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := s.rows[at].receipt
	return data, data != nil
}

// recover is what an earlier process has left, and keeps it from dropStale.
func (s *effectStore) recover(at attempt) left {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rows[at]
	if !ok {
		return left{unbegun: s.lease > 0}
	}
	r.stale = false
	s.rows[at] = r
	return left{receipt: r.receipt, worker: r.worker, until: r.until}
}

// dropStale drops what earlier processes have left and nobody wanted back: the
// journal had it, but not the time to say so.
func (s *effectStore) dropStale() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, r := range s.rows { // order cannot show: each goes
		if r.stale {
			s.drop(at)
		}
	}
}

// keptResults returns the results that are not forgotten, in the order in which they were
// made, and keeps them from dropStale.
func (s *effectStore) keptResults() [][]byte {
	s.mu.Lock()
	for at, r := range s.rows {
		r.stale = false
		s.rows[at] = r
	}
	s.mu.Unlock()
	return oldestFirst(s.kept())
}

// kept returns the results that are not forgotten.
func (s *effectStore) kept() map[attempt][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := make(map[attempt][]byte, len(s.rows))
	for at, r := range s.rows {
		if r.receipt != nil {
			kept[at] = r.receipt
		}
	}
	return kept
}

// oldestFirst returns results in the order in which they were made.
func oldestFirst(kept map[attempt][]byte) [][]byte {
	results := make([]storedResult, 0, len(kept))
	for at, data := range kept { // order cannot show: sorted below
		s := storedResult{entry: entry{attempt: at, receipt: data}}
		if r, err := receipt.Decode(data); err == nil { // it was made by this package
			s.finished = r.FinishedAt
		}
		results = append(results, s)
	}
	slices.SortFunc(results, func(a, b storedResult) int {
		return cmp.Or(cmp.Compare(a.finished, b.finished), bytes.Compare(a.key.Hash[:], b.key.Hash[:]), cmp.Compare(a.number, b.number))
	})
	out := make([][]byte, len(results))
	for i := range results {
		out[i] = results[i].receipt
	}
	return out
}

type storedResult struct {
	entry
	finished int64
}

func (s *effectStore) stats() Stats {
	return Stats{EffectSyncs: s.syncs.Load(), EffectBytes: s.written.Load()}
}

// close waits until everything that was put is durable, or failed to be. What is not begun
// by then is not begun any more.
func (s *effectStore) close() error {
	s.mu.Lock()
	s.closed = true
	waiting := s.waiting
	s.waiting, s.urgent = nil, 0
	for _, c := range waiting {
		switch {
		case c.begin != nil:
			if c.begin.first {
				delete(s.rows, c.attempt)
			}
			c.begin.endBeginning(false, ErrClosed)
		default: // what a worker is left with, too
			s.add(c)
		}
	}
	s.work.Signal()
	s.mu.Unlock()
	<-s.ended
	return s.medium.closeMedium(s.err)
}

// run is the writer.
func (s *effectStore) run() {
	defer close(s.ended)
	for s.next() {
		if err := s.writeGroup(); err != nil {
			s.fail(fmt.Errorf("host: %s: %w", s.name, err))
			return
		}
	}
}

// fail ends all that waits: nobody knows whether anything of the group is there.
func (s *effectStore) fail(err error) {
	s.mu.Lock()
	s.err = err
	group := slices.Concat(s.group, s.waiting)
	s.waiting = nil
	s.mu.Unlock()
	s.failed(err)
	for _, c := range group {
		switch {
		case c.begin != nil:
			c.begin.endBeginning(false, err)
		case c.renewal != nil:
			c.renewal.endBeginning(false, err)
		}
	}
}

// next waits for the next group; false: the store is closed. Where others read it too, it has each attempt
// once. What is more than a group may hold is left.
func (s *effectStore) next() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.urgent == 0 && len(s.waiting) < forgetMost && !s.closed && !s.woken {
		s.work.Wait()
	}
	s.group = s.group[:0]
	switch {
	case s.closed:
	case s.urgent == 0 && s.woken:
		return true
	default:
		s.mu.Unlock()
		runtime.Gosched() // workers that are about to begin or to end attempts join the group
		s.mu.Lock()
	}
	n, bytes, there := 0, 0, make(map[attempt]bool)
	for n < min(len(s.waiting), groupMost) && bytes < frameBodyLimit && !there[s.waiting[n].attempt] {
		c := &s.waiting[n]
		if s.lease > 0 {
			there[c.attempt] = true
		}
		bytes += c.size()
		if c.isUrgent() {
			s.urgent--
		}
		n++
	}
	if n == len(s.waiting) {
		s.group, s.waiting = s.waiting, s.group
	} else {
		s.group = append(s.group, s.waiting[:n]...)
		s.waiting = slices.Delete(s.waiting, 0, n)
	}
	return n > 0
}

// writeGroup writes the group, and tells of the results in it.
func (s *effectStore) writeGroup() error {
	if err := s.medium.write(s.group); err != nil {
		return err
	}
	s.results = s.results[:0]
	for i := range s.group {
		if s.group[i].receipt != nil {
			s.results = append(s.results, s.group[i].entry)
		}
	}
	if len(s.results) > 0 {
		s.stored(s.results)
	}
	return s.medium.tidy()
}

// keep takes note of what the medium has by now, which was asked at a time.
func (s *effectStore) keep(group []change, asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range group {
		c := &group[i]
		r, ok := s.rows[c.attempt]
		switch {
		case s.lease > 0 && !ok: // it is forgotten
			continue
		case c.receipt != nil:
			r.receipt = c.receipt
			s.live += int64(c.size())
			if s.loose != nil {
				s.loose[c.attempt] = true
			}
		case c.begin != nil && c.begin.worker != "", c.renewal != nil:
			r.heard, r.lent = asked, s.lease
		default:
			continue
		}
		s.rows[c.attempt] = r
	}
}
