package host

import (
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/receipt"
)

// leases say who is at work on what. They fence within this process and give
// liveness; that an attempt happens at most once is the ledger's doing. Safe
// for concurrent use.
type leases struct {
	term time.Duration // how long a lease is good for without renewal

	mu   sync.Mutex
	held map[claim]lease
	open int // how many of held have an owner
}

// claim is what a lease is for.
type claim struct {
	work receipt.Work
	key  receipt.Key
}

// lease is held by its owner; one without an owner remembers that the attempt
// was made.
type lease struct {
	attempt uint64
	owner   *job
	until   time.Time
}

func newLeases(term time.Duration) *leases {
	return &leases{term: term, held: make(map[claim]lease)}
}

// acquire decides whether owner may make an attempt. An attempt is allowed once
// and never again, whatever became of its lease. A newer one takes over: the
// ledger would not have granted it if it still waited for the older.
func (l *leases) acquire(c claim, attempt uint64, owner *job, now time.Time) receipt.Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.held[c]
	switch {
	case !known || attempt > last.attempt:
		if last.owner == nil {
			l.open++
		}
		l.held[c] = lease{attempt: attempt, owner: owner, until: now.Add(l.term)}
		return receipt.AllowExecute
	case attempt == last.attempt && last.owner != nil:
		return receipt.WaitOtherWorker
	default:
		return receipt.Rejected
	}
}

// adopt has owner hold an attempt that was begun before, under a lease of then.
func (l *leases) adopt(c claim, attempt uint64, owner *job, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[c] = lease{attempt: attempt, owner: owner, until: until}
	l.open++
}

// owner returns who makes an attempt; nil: nobody.
func (l *leases) owner(c claim, attempt uint64) *job {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held := l.held[c]; held.attempt == attempt {
		return held.owner
	}
	return nil
}

// renew prolongs the leases of the owners in this process whose deadline has
// not passed.
func (l *leases) renew(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, held := range l.held {
		if held.owner != nil && held.owner.worker == "" && !now.After(held.owner.deadline) {
			held.until = now.Add(l.term)
			l.held[c] = held
		}
	}
}

// prolong is renew for one lease, wherever its owner is. It reports whether
// owner still held it and its deadline has not passed.
func (l *leases) prolong(c claim, owner *job, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held[c]
	if held.owner != owner || now.After(owner.deadline) {
		return false
	}
	held.until = now.Add(l.term)
	l.held[c] = held
	return true
}

// restart gives the owner in this process all the time of its effect, from now on. It
// reports whether owner still held the lease.
func (l *leases) restart(owner *job, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	owner.deadline = now.Add(owner.effect.timeout())
	return l.held[owner.claim()].owner == owner
}

// release ends a lease and reports whether owner still held it.
func (l *leases) release(c claim, owner *job) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held[c]
	if held.owner != owner {
		return false
	}
	held.owner = nil
	l.held[c] = held
	l.open--
	return true
}

// expired takes the leases that have run out from their owners, which it
// returns, and reports whether others are still held.
func (l *leases) expired(now time.Time) (owners []*job, others bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, held := range l.held {
		if held.owner != nil && !now.Before(held.until) {
			owners = append(owners, held.owner)
			held.owner = nil
			l.held[c] = held
			l.open--
		}
	}
	return owners, l.open > 0
}

// forget drops what is remembered of a claim up to an attempt.
func (l *leases) forget(c claim, attempt uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held, known := l.held[c]; known && held.owner == nil && held.attempt <= attempt {
		delete(l.held, c)
	}
}
