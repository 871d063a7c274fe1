package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/worldkernel/worldkernel/receipt"
)

// Bounds of what attemptTable asks for at once.
const (
	tableGroup  = 4096 // attempts
	tableForget = 256  // forgotten ones, after which they do not wait for others any more
)

// attemptTable is an effectStore on Attempts. One goroutine writes: whatever came while it
// wrote is the next group.
type attemptTable struct {
	table  Attempts
	run    [16]byte
	lease  time.Duration // of a worker, as the table has it
	ctx    context.Context
	cancel context.CancelFunc
	stored func(group []entry)
	failed func(error)

	mu      sync.Mutex // guards what follows
	work    *sync.Cond // signalled when the writer has something to do
	waiting []change
	urgent  int // how many of them somebody waits for
	rows    map[attempt]*row
	closed  bool
	err     error

	ended chan struct{} // closed when the writer has ended

	groups, written atomic.Uint64
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

// openTable reads what earlier owners have left. A worker is told that an attempt is its own
// for a lease; here it is for two from when the host has looked at it last, which it does each
// third of one: so it never ends here before it does there.
func openTable(a Attempts, lease time.Duration) (*attemptTable, error) {
	t := &attemptTable{table: a, lease: 2 * lease, rows: make(map[attempt]*row), ended: make(chan struct{})}
	t.work = sync.NewCond(&t.mu)
	_, _ = rand.Read(t.run[:]) // which never fails
	t.ctx, t.cancel = context.WithCancel(context.Background())
	before := time.Now()
	kept, err := a.KeptAttempts(t.ctx)
	if err != nil {
		t.cancel()
		return nil, fmt.Errorf("host: attempts: %w", err)
	}
	now := time.Now()
	for _, k := range kept {
		t.rows[attempt{k.Key, k.Attempt}] = &row{
			receipt: k.Receipt, worker: k.Worker, until: now.Add(k.Lease), heard: before, lent: k.Lease, stale: true,
		}
	}
	return t, nil
}

func (t *attemptTable) start(stored func([]entry), failed func(error)) {
	t.stored, t.failed = stored, failed
	go t.write()
}

// begin takes note of the row before it is there: from here on nobody can tell that it is not.
func (t *attemptTable) begin(at attempt, worker string) *beginning {
	b := &beginning{worker: worker, done: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.over(); err != nil {
		b.end(false, err)
		return b
	}
	b.first = t.note(at)
	t.add(change{entry: entry{attempt: at}, begin: b})
	return b
}

// over returns why nothing is written any more. It is called with mu held, and so are the
// next two.
func (t *attemptTable) over() error {
	if t.err == nil && t.closed {
		return ErrClosed
	}
	return t.err
}

func (t *attemptTable) note(at attempt) (first bool) {
	if t.rows[at] != nil {
		return false
	}
	t.rows[at] = new(row)
	return true
}

func (t *attemptTable) add(c change) {
	t.waiting = append(t.waiting, c)
	if c.isUrgent() {
		t.urgent++
	}
	t.work.Signal()
}

// isUrgent reports whether somebody waits for it.
func (c *change) isUrgent() bool { return c.begin != nil || c.renewal != nil || c.receipt != nil }

func (t *attemptTable) renew(lent []attempt) *beginning {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last *beginning
	for _, at := range lent {
		if t.rows[at] == nil || t.rows[at].receipt != nil {
			continue
		}
		last = &beginning{done: make(chan struct{})}
		if err := t.over(); err != nil {
			last.end(false, err)
		} else {
			t.add(change{entry: entry{attempt: at}, renewal: last})
		}
	}
	return last
}

func (t *attemptTable) lends(at attempt) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[at]
	return r == nil || passed(r.heard)+t.lease/2 <= r.lent
}

func (t *attemptTable) put(e entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over() != nil {
		return false
	}
	t.note(e.attempt)
	t.add(change{entry: e})
	return true
}

func (t *attemptTable) forget(at attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(at)
}

// drop is forget with mu held.
func (t *attemptTable) drop(at attempt) {
	if t.rows[at] == nil || t.over() != nil {
		return
	}
	delete(t.rows, at)
	t.add(change{entry: entry{attempt: at}})
}

func (t *attemptTable) get(at attempt) ([]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[at]
	if r == nil || r.receipt == nil {
		return nil, false
	}
	return r.receipt, true
}

func (t *attemptTable) recover(at attempt) left {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rows[at]
	if r == nil {
		return left{unbegun: true}
	}
	r.stale = false
	return left{receipt: r.receipt, worker: r.worker, until: r.until}
}

func (t *attemptTable) dropStale() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, r := range t.rows { // order cannot show: each goes
		if r.stale {
			t.drop(at)
		}
	}
}

func (t *attemptTable) all() [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := make(map[attempt][]byte)
	for at, r := range t.rows {
		if r.stale = false; r.receipt != nil {
			kept[at] = r.receipt
		}
	}
	return oldestFirst(kept)
}

func (t *attemptTable) stats() Stats {
	return Stats{EffectSyncs: t.groups.Load(), EffectBytes: t.written.Load()}
}

// close waits until everything that was put is durable, or failed to be. What is not begun
// by then is not begun any more.
func (t *attemptTable) close() error {
	t.mu.Lock()
	t.closed = true
	waiting := t.waiting
	t.waiting, t.urgent = nil, 0
	for _, c := range waiting {
		switch {
		case c.begin != nil:
			if c.begin.first {
				delete(t.rows, c.attempt)
			}
			c.begin.end(false, ErrClosed)
		default: // what a worker is left with, too
			t.add(c)
		}
	}
	t.work.Signal()
	t.mu.Unlock()
	<-t.ended
	t.cancel()
	return t.err
}

// write is the writer.
func (t *attemptTable) write() {
	defer close(t.ended)
	for {
		group := t.next()
		if group == nil {
			return
		}
		if err := t.writeGroup(group); err != nil {
			t.fail(group, fmt.Errorf("host: attempts: %w", err))
			return
		}
	}
}

// fail ends all that waits: nobody knows whether anything of the group is there.
func (t *attemptTable) fail(group []change, err error) {
	t.mu.Lock()
	t.err = err
	group = append(group, t.waiting...)
	t.waiting = nil
	t.mu.Unlock()
	t.failed(err)
	for _, c := range group {
		switch {
		case c.begin != nil:
			c.begin.end(false, err)
		case c.renewal != nil:
			c.renewal.end(false, err)
		}
	}
}

// next waits for the next group; nil: the table is closed. It has each attempt once, and as
// many of them as one may have.
func (t *attemptTable) next() []change {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.urgent == 0 && len(t.waiting) < tableForget && !t.closed {
		t.work.Wait()
	}
	if !t.closed {
		t.mu.Unlock()
		runtime.Gosched() // workers that are about to begin or to end attempts join the group
		t.mu.Lock()
	}
	n, bytes, there := 0, 0, make(map[attempt]bool)
	for n < min(len(t.waiting), tableGroup) && bytes < frameBodyLimit && !there[t.waiting[n].attempt] {
		c := &t.waiting[n]
		there[c.attempt] = true
		bytes += c.size()
		if c.isUrgent() {
			t.urgent--
		}
		n++
	}
	if n == 0 {
		return nil
	}
	group := t.waiting[:n:n]
	t.waiting = t.waiting[n:]
	return group
}

// writeGroup makes a group durable, and tells of it.
func (t *attemptTable) writeGroup(group []change) error {
	changes, results := t.changes(group)
	asked := time.Now()
	is, err := t.table.ChangeAttempts(t.ctx, changes)
	if err == nil && len(is.Begun) != len(changes.Begin) {
		err = fmt.Errorf("%d answers to %d attempts", len(is.Begun), len(changes.Begin))
	}
	if err != nil {
		return err
	}
	t.groups.Add(1)
	t.written.Add(uint64(sizeOf(results)))
	t.keep(group, asked)
	for _, c := range group {
		switch {
		case c.begin != nil:
			c.begin.asked, c.begin.lease = asked, is.Lease
			c.begin.end(is.Begun[0], nil)
			is.Begun = is.Begun[1:]
		case c.renewal != nil:
			c.renewal.end(true, nil)
		}
	}
	if len(results) > 0 {
		t.stored(results)
	}
	return nil
}

// keep takes note of what the table has by now, which was asked at a time.
func (t *attemptTable) keep(group []change, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range group {
		switch r := t.rows[c.attempt]; {
		case r == nil:
		case c.receipt != nil:
			r.receipt = c.receipt
		case c.begin != nil && c.begin.worker != "", c.renewal != nil:
			r.heard, r.lent = asked, t.lease
		}
	}
}

func sizeOf(results []entry) (bytes int) {
	for i := range results {
		bytes += results[i].size()
	}
	return bytes
}

// changes are a group as the table takes it, and the results in it.
func (t *attemptTable) changes(group []change) (all *receipt.AttemptChanges, results []entry) {
	all = new(receipt.AttemptChanges)
	for _, c := range group {
		k := receipt.KeptAttempt{Key: c.key, Attempt: c.number, Run: t.run}
		switch {
		case c.begin != nil:
			if k.Worker = c.begin.worker; k.Worker != "" {
				k.Lease = t.lease
			}
			all.Begin = append(all.Begin, k)
		case c.renewal != nil:
			k.Lease = t.lease
			all.Renew = append(all.Renew, k)
		case c.receipt != nil:
			k.Receipt = c.receipt
			all.End = append(all.End, k)
			results = append(results, c.entry)
		default:
			all.Forget = append(all.Forget, k)
		}
	}
	return all, results
}
