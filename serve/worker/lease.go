package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/receipt"
)

// errLeaseOver says that somebody else may have decided about an attempt.
var errLeaseOver = errors.New("the lease is over")

// attempt names one attempt of an intent.
type attempt struct {
	key    receipt.Key
	number uint64
}

func attemptOf(p *receipt.Permit) attempt { return attempt{p.Key, p.Attempt} }

// leases are those of the attempts that a worker has, by its own clock, which goes
// on while the process is stopped. It is safe for concurrent use.
type leases struct {
	mu   sync.Mutex
	held map[attempt]*lease
}

type lease struct {
	nonce receipt.Nonce
	term  time.Duration
	until time.Time
	over  bool               // for good
	stop  context.CancelFunc // of the adapter; nil: it has not begun
	timer *time.Timer        // for expire
	gone  chan struct{}      // closed when it is not held any more
}

func newLeases() *leases { return &leases{held: make(map[attempt]*lease)} }

// add takes note of an attempt that was asked for at a time. The server counts from
// later on, and looks after leases only now and then; a tenth of the term is for
// clocks that do not run alike, and for the way from here to the outside.
func (l *leases) add(p *receipt.Permit, term time.Duration, asked time.Time) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &lease{nonce: p.Nonce, term: term, gone: make(chan struct{})}
	h.until = asked.Add(term - term/10)
	h.timer = time.AfterFunc(time.Until(h.until), func() { l.expire(h) })
	l.held[attemptOf(p)] = h
	return h
}

// expire stops the adapter where the time of a lease is over. Before that has begun
// the lease can still be prolonged.
func (l *leases) expire(h *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch wait := time.Until(h.until); {
	case wait > 0:
		h.timer.Reset(wait) // it was prolonged
	case h.stop != nil:
		h.endLease()
	}
}

// endLease ends a lease for good. It is called with mu held.
func (h *lease) endLease() {
	h.over = true
	if h.stop != nil {
		h.stop()
	}
}

// prolong takes note that the server has renewed a lease, which was asked at a time.
func (l *leases) prolong(h *lease, asked time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.until = asked.Add(h.term - h.term/10)
	h.timer.Reset(time.Until(h.until))
}

// leaseOf returns the lease of an attempt; nil: there is none.
func (l *leases) leaseOf(at attempt) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[at]
}

// lose ends a lease before its time.
func (l *leases) lose(at attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[at]; h != nil {
		h.endLease()
	}
}

// lost reports whether a lease is over for good.
func (l *leases) lost(h *lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return h.over
}

// drop forgets an attempt, and reports whether it was there.
func (l *leases) drop(at attempt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held[at]
	if h == nil {
		return false
	}
	h.timer.Stop()
	close(h.gone)
	delete(l.held, at)
	return true
}

// dropOthers forgets all attempts but some.
func (l *leases) dropOthers(some []offer) {
	keep := make(map[attempt]bool, len(some))
	for i := range some {
		keep[attemptOf(&some[i].permit)] = true
	}
	l.mu.Lock()
	var others []attempt
	for at := range l.held { // order cannot show: each is dropped
		if !keep[at] {
			others = append(others, at)
		}
	}
	l.mu.Unlock()
	for _, at := range others {
		l.drop(at)
	}
}

// fence is what an adapter's attempt has to pass; see host.Config.
func (l *leases) fence(ctx context.Context, p receipt.Permit) (context.Context, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held[attemptOf(&p)]
	if h == nil || h.over || !time.Now().Before(h.until) {
		return nil, errLeaseOver
	}
	ctx, h.stop = context.WithCancel(ctx)
	return ctx, nil
}
