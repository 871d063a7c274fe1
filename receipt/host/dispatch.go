package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// ErrClosed is what Await returns after Close.
var ErrClosed = errors.New("host: closed")

var _ world.Host = (*Host)(nil)

// Host performs effects in goroutines of its own; see [world.Host]. It is safe
// for concurrent use. Its
// queues have no bound of their own: a world never has more than
// limits.in_flight effects in flight.
type Host struct {
	cfg     Config
	effects map[string]*effect // by kind
	secrets *secrets
	limit   uint64     // bytes of one receipt
	log     *effectLog // nil where no effect is live
	leases  *leases

	tame, live context.Context // of what can be asked again, and of live attempts
	stop, kill context.CancelFunc
	workers    sync.WaitGroup
	closing    sync.Once
	closeErr   error // of closing

	mu        sync.Mutex // guards what follows
	queue     []world.Task
	busy      int // workers; one whose lease ran out does not count any more
	answers   []world.Answer
	news      chan struct{}             // closed when answers come; nil: nobody waits
	notBefore map[receipt.Key]time.Time // what the outside asked for in its last answer
	keeper    *time.Timer
	keeping   bool // keeper is set
	closed    bool
	failed    error // of the effect store: nothing is acknowledged after it
}

// job is a task in a worker's hands.
type job struct {
	world.Task
	effect   *effect
	deadline time.Time
	lost     bool // its lease ran out, and its worker is not one of busy any more; guarded by Host.mu
}

func (j *job) claim() claim { return claim{j.Work, j.Key} }

func start(cfg Config, effects map[string]*effect, hidden *secrets, files vfs.FS) (*Host, error) {
	h := &Host{
		cfg: cfg, effects: effects, secrets: hidden, limit: cfg.Manifest.Limits.WithDefaults().Receipt,
		leases: newLeases(cfg.Lease), notBefore: make(map[receipt.Key]time.Time),
	}
	if anyLive(effects) {
		var err error
		if h.log, err = openEffectLog(files, cfg.EffectLog, cfg.World); err != nil {
			return nil, err
		}
		h.log.start(h.publish, h.fail)
	}
	h.tame, h.stop = context.WithCancel(context.Background())
	h.live, h.kill = context.WithCancel(context.Background())
	return h, nil
}

// Live reports whether nobody may repeat an attempt of an effect.
func (h *Host) Live(kind string) bool {
	e := h.effects[kind]
	return e != nil && e.live
}

// Stats counts what a Host has done.
type Stats struct {
	EffectSyncs uint64 // of the effect store
	EffectBytes uint64 // written to it
}

// Stats returns the counts since New.
func (h *Host) Stats() Stats {
	if h.log == nil {
		return Stats{}
	}
	return Stats{EffectSyncs: h.log.syncs.Load(), EffectBytes: h.log.written.Load()}
}

// Start begins to do tasks and returns at once. After Close it does nothing.
// Whatever an earlier process has left has to be asked for, with Recover, before
// the first live effect is performed: the rest is forgotten then.
func (h *Host) Start(tasks []world.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	for _, t := range tasks {
		switch t.Work {
		case world.Forget:
			h.forget(t)
		case world.Recover:
			h.answer(h.recover(t))
		case world.Retry:
			h.retry(t)
		case world.Perform, world.Verify, world.Confirm:
			if t.Work == world.Perform && h.Live(t.Kind) {
				h.log.settle()
			}
			h.queue = append(h.queue, t)
		}
	}
	h.hire()
}

// hire starts workers for what is queued. It is called with mu held.
func (h *Host) hire() {
	for n := min(len(h.queue), h.cfg.Workers-h.busy); n > 0; n-- {
		h.busy++
		h.workers.Go(h.run)
	}
}

func (h *Host) forget(t world.Task) {
	if h.log != nil {
		h.log.forget(attempt{t.Key, t.Attempt})
		h.leases.forget(claim{world.Perform, t.Key}, t.Attempt)
	}
}

func (h *Host) recover(t world.Task) world.Answer {
	a := world.Answer{Key: t.Key, Attempt: t.Attempt, Work: t.Work}
	if h.log != nil {
		a.Receipt = h.log.recover(attempt{t.Key, t.Attempt})
	}
	if a.Receipt == nil {
		a.Lost = "the process that performed it has ended and no result of it was stored"
	}
	return a
}

// retry answers Due when the wait after a failed attempt is over.
func (h *Host) retry(t world.Task) {
	now := time.Now()
	var initial time.Duration
	if e := h.effects[t.Kind]; e != nil {
		initial = time.Duration(e.declared.Retry.Backoff)
	}
	wait := max(backoffAfter(initial, t.Key, t.Attempt), h.notBefore[t.Key].Sub(now))
	delete(h.notBefore, t.Key)
	time.AfterFunc(wait, func() {
		h.post(world.Answer{Key: t.Key, Attempt: t.Attempt, Work: t.Work, Due: true})
	})
}

// Answers returns the answers that have come, in their order, each once. After
// Close it fails with ErrClosed, and when the effect store has failed with that
// error: then nothing more will come.
func (h *Host) Answers() ([]world.Answer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.over(); err != nil {
		return nil, err
	}
	answers := h.answers
	h.answers = nil
	return answers, nil
}

// Wait blocks until there are answers, or ctx ends, or nothing more will come
// (see Answers). Any number of callers may wait.
func (h *Host) Wait(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h.mu.Lock()
		err, news := h.over(), h.news
		if err == nil && len(h.answers) == 0 && news == nil {
			news = make(chan struct{})
			h.news = news
		}
		ready := err != nil || len(h.answers) > 0
		h.mu.Unlock()
		if ready {
			return err
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

func (h *Host) over() error {
	if h.closed {
		return ErrClosed
	}
	return h.failed
}

// post gives one answer.
func (h *Host) post(a world.Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer(a)
}

// answer is post with mu held.
func (h *Host) answer(a world.Answer) {
	h.answers = append(h.answers, a)
	h.tell()
}

// tell wakes everybody in Wait. It is called with mu held.
func (h *Host) tell() {
	if h.news != nil {
		close(h.news)
		h.news = nil
	}
}

// publish gives the answers to live effects, whose results are durable now.
func (h *Host) publish(group []entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range group {
		if e := &group[i]; e.receipt != nil {
			h.answers = append(h.answers, world.Answer{Key: e.key, Attempt: e.number, Work: world.Perform, Receipt: e.receipt})
		}
	}
	h.tell()
}

func (h *Host) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = err
	h.tell()
}

// run is one worker: it ends when there is nothing to do, or when it was too
// slow and another has its place.
func (h *Host) run() {
	var last *job
	for {
		j := h.next(last)
		if j == nil {
			return
		}
		h.do(j)
		last = j
	}
}

func (h *Host) next(last *job) *job {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last != nil && last.lost {
		return nil
	}
	for len(h.queue) > 0 && !h.closed {
		t := h.queue[0]
		h.queue = h.queue[1:]
		if j := h.claim(t); j != nil {
			return j
		}
	}
	h.busy--
	return nil
}

// claim makes a job of a task, unless it is nobody's business any more. What
// can be asked again needs no lease.
func (h *Host) claim(t world.Task) *job {
	j := &job{Task: t, effect: h.effects[t.Kind]}
	if t.Work == world.Perform && !h.Live(t.Kind) {
		return j
	}
	if h.failed != nil {
		return nil // its result could not be stored
	}
	if j.effect == nil {
		j.effect = new(effect)
	}
	now := time.Now()
	j.deadline = now.Add(j.effect.timeout())
	if t.Work == world.Perform {
		if data, ok := h.log.get(attempt{t.Key, t.Attempt}); ok {
			h.answer(world.Answer{Key: t.Key, Attempt: t.Attempt, Work: t.Work, Receipt: data})
			return nil
		}
	}
	if h.leases.acquire(j.claim(), t.Attempt, j, now) != receipt.AllowExecute {
		return nil // who holds it answers, or has answered
	}
	h.keep()
	return j
}

// keep sees to it that leases are looked after. It is called with mu held.
func (h *Host) keep() {
	switch wait := h.cfg.Lease / 3; {
	case h.keeping || h.closed:
		return
	case h.keeper == nil:
		h.keeper = time.AfterFunc(wait, h.look)
	default:
		h.keeper.Reset(wait)
	}
	h.keeping = true
}

// look renews leases and gives up jobs whose lease ran out: they have ignored
// the end of their context, and their places are needed.
func (h *Host) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	now := time.Now()
	h.leases.renew(now)
	lost, others := h.leases.expired(now)
	for _, j := range lost {
		j.lost = true
		h.busy--
		h.answer(h.gaveUp(j))
	}
	h.keeping = false
	if others {
		h.keep()
	}
	h.hire()
}

func (h *Host) gaveUp(j *job) world.Answer {
	a := world.Answer{Key: j.Key, Attempt: j.Attempt, Work: j.Work}
	reason := fmt.Sprintf("the lease ran out: it had not ended %s after its timeout of %s", h.cfg.Lease, j.effect.timeout())
	if j.Work == world.Perform {
		a.Lost = reason
	} else {
		a.Found = &world.Found{Verdict: world.Unknown, Reason: reason}
	}
	return a
}
