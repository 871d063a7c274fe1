package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/receipt"
)

// Bounds of Acquire.
const (
	MaxOffers      = 64      // attempts handed out at once
	MaxOfferBytes  = 8 << 20 // of params, after which no more are handed out at once
	MaxWorkerBytes = 128     // of a worker's name
)

// The Host's errors for workers.
var (
	ErrWorkerName     = fmt.Errorf("host: a worker's name is 1 to %d bytes of printable text", MaxWorkerBytes)
	ErrNotHeld        = errors.New("host: the worker does not hold the attempt")
	ErrBadReceipt     = errors.New("host: the receipt is not one of a worker for that attempt")
	ErrUnknownAttempt = errors.New("host: the attempt was not handed out by this host")
	ErrOtherResult    = errors.New("host: the attempt has another result already")
)

// Offer is one attempt that a worker in another process has acquired: it makes
// a [receipt.Task] of the permit for a Host of its own.
type Offer struct {
	Permit  receipt.Permit
	Lease   time.Duration // how long the attempt is the worker's without Renew
	Timeout time.Duration // of the effect
}

// remote is what a Host knows of the attempts that workers in other processes
// perform. Host.mu guards it.
type remote struct {
	queue []*remoteTask // not acquired yet, in the order of their permits
	tasks map[attempt]*remoteTask
	news  chan struct{} // closed when there is more to acquire; nil: nobody waits
}

// remoteTask is one of these attempts, from its permit until the journal has its
// result.
type remoteTask struct {
	receipt.Task                 // without params once it is acquired
	job          *job            // whose it is or was; nil: it is not acquired yet
	held         bool            // and counts as one of Host.workers
	blank        receipt.Receipt // what its receipt says beside the result
	result       []byte          // what was committed, signed; nil: nothing yet
	ended        bool            // finished is closed
	finished     chan struct{}   // closed when the result, or another one, is durable, or will not be: see err
	err          error
}

func (e *remoteTask) finish(err error) {
	if !e.ended {
		e.ended, e.err = true, err
		close(e.finished)
	}
}

// offer has an attempt wait for a worker. It is called with mu held.
func (h *Host) offer(t receipt.Task) {
	at := attempt{t.Key, t.Attempt}
	if h.remote.tasks[at] != nil { // its result is told once, when it is durable
		return
	}
	if data, ok := h.log.get(at); ok { // of a process before
		h.addAnswer(receipt.Answer{Key: t.Key, Attempt: t.Attempt, Work: t.Work, Receipt: data})
		return
	}
	e := &remoteTask{Task: t, finished: make(chan struct{})}
	h.remote.tasks[at] = e
	h.remote.queue = append(h.remote.queue, e)
	ring(&h.remote.news)
}

// Acquire hands attempts of live effects to a worker in another process: see
// Config.Remote. It waits until there is one of the given kinds (none given: of
// any), and returns up to most, from 1 to MaxOffers, in the order of their
// permits: fewer where their params have MaxOfferBytes. Nobody gets an attempt that was handed out before, to whomever.
// When the deadline of ctx passes it returns none, when ctx is cancelled that
// error; after Close ErrClosed, and when the effect store has failed its error.
func (h *Host) Acquire(ctx context.Context, worker string, kinds []string, most int) ([]Offer, error) {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if worker == "" || len(worker) > MaxWorkerBytes || !utf8.ValidString(worker) || strings.ContainsFunc(worker, odd) {
		return nil, ErrWorkerName
	}
	most = max(1, min(most, MaxOffers))
	for {
		if err := ctx.Err(); errors.Is(err, context.Canceled) {
			return nil, err // whoever asked has gone, and would never perform it
		}
		lent, news, err := h.handOut(worker, kinds, most)
		if err != nil {
			return nil, err
		}
		offers, err := h.begun(lent)
		if err != nil || len(offers) > 0 || ctx.Err() != nil {
			return offers, err
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

// handOut is Acquire of what is there, which is still to be begun. If that is nothing,
// news says when to look again.
func (h *Host) handOut(worker string, kinds []string, most int) (all []lent, news <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.over(); err != nil {
		return nil, nil, err
	}
	bytes := 0 // of params
	h.remote.queue = slices.DeleteFunc(h.remote.queue, func(e *remoteTask) bool {
		switch {
		case e.ended: // Forget came first
			return true
		case len(all) >= most || bytes >= MaxOfferBytes || len(kinds) > 0 && !slices.Contains(kinds, e.Kind):
			return false
		}
		if j := h.claim(e.Task); j != nil {
			bytes += len(e.Params)
			offer := Offer{Permit: e.Permit, Lease: h.cfg.Lease, Timeout: j.effect.timeout()}
			h.lend(e, j, worker)
			all = append(all, lent{offer, e, h.log.beginAttempt(attempt{e.Key, e.Attempt}, worker)})
		}
		return true
	})
	if len(all) == 0 && h.remote.news == nil {
		h.remote.news = make(chan struct{})
	}
	return all, h.remote.news, nil
}

// lend notes whose an attempt is. It is called with mu held.
func (h *Host) lend(e *remoteTask, j *job, worker string) {
	// The adapter has ended at its timeout, or the worker's own Host has given it
	// up a lease later; another lease is for telling us. A worker that still
	// renews then has lost sight of the attempt, and it must not be in flight for
	// ever.
	j.worker, j.deadline = worker, j.deadline.Add(2*h.cfg.Lease)
	e.hold(j, h.cfg.World)
	h.workers.Add(1)
}

// hold notes who has it.
func (e *remoteTask) hold(j *job, world string) {
	e.job, e.held, e.blank = j, true, receipt.New(world, e.Permit, "", nil)
	e.Params, j.Params = nil, nil // the hash is enough
}

// takeBack ends that a worker holds an attempt. It is called with mu held.
func (h *Host) takeBack(e *remoteTask) {
	if e.held {
		e.held = false
		h.leases.release(e.job.claim(), e.job)
		h.workers.Done()
	}
}

// Renew prolongs the lease of an attempt by its term, from now. ErrNotHeld where
// the worker does not hold it, has committed its result, or has held it for
// longer than the effect's timeout and two leases; the error of the effect store when
// that has failed: the world may be another's; ErrClosed when it is about to be.
//
// Where the table of attempts was not heard of for so long that who owns the world next might decide about
// the attempt within that lease, it is asked first.
func (h *Host) Renew(worker string, key receipt.Key, number uint64, nonce receipt.Nonce) error {
	for {
		asked, err := h.renew(worker, attempt{key, number}, nonce)
		if asked == nil || err != nil {
			return err
		}
		if _, err := asked.wait(); err != nil {
			return err
		}
	}
}

// renew is Renew, or tells what it waits for.
func (h *Host) renew(worker string, at attempt, nonce receipt.Nonce) (*beginning, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.remote.tasks[at]
	switch {
	case h.failed != nil:
		return nil, h.failed
	case h.left:
		return nil, ErrClosed
	case e == nil || !e.held || e.job.worker != worker || e.blank.Nonce != nonce:
		return nil, ErrNotHeld
	case !h.log.lends(at):
		if asked := h.log.renew([]attempt{at}); asked != nil {
			return asked, nil
		}
		return nil, ErrNotHeld // its result is there
	case !h.leases.prolong(e.job.claim(), e.job, time.Now()):
		return nil, ErrNotHeld
	}
	return nil, nil //nolint:nilnil // there is nothing to wait for
}

// Lose takes the word of a worker that nobody can tell what came of an attempt which it
// holds, and why: that is known at once, and not when the lease has run out. A result that
// comes all the same is taken. ErrNotHeld where the worker does not hold it; ErrClosed where the
// owner that comes next has to be told.
func (h *Host) Lose(worker string, key receipt.Key, number uint64, nonce receipt.Nonce, why string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed && h.cfg.Attempts != nil {
		return ErrClosed
	}
	e := h.remote.tasks[attempt{key, number}]
	if e == nil || !e.held || e.job.worker != worker || e.blank.Nonce != nonce {
		return ErrNotHeld
	}
	h.takeBack(e)
	h.addAnswer(receipt.Answer{Key: key, Attempt: number, Work: e.Work, Lost: h.secrets.redactText(fmt.Sprintf("worker %s: %s", worker, why))})
	return nil
}

// Stored returns the receipts in the effect store that nobody has forgotten yet,
// the oldest first: also after Close. What it returns stays there until Forget,
// as if Recover had asked for each. It is for a worker that starts: its owner
// may not have them yet.
func (h *Host) Stored() [][]byte {
	if h.log == nil {
		return nil
	}
	return h.log.keptResults()
}

// RetryAfter returns how long the outside asked to wait in its last answer for
// an intent whose next attempt is allowed, 0 if it did not, and forgets it. It
// is for a worker: its owner waits.
func (h *Host) RetryAfter(key receipt.Key) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	wait := time.Until(h.notBefore[key]) // of the zero time: as far in the past as can be
	delete(h.notBefore, key)
	return max(wait, 0)
}
