package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/receipt"
)

// ErrClosed is what Await returns after Close.
var ErrClosed = errors.New("host: closed")

// Host performs effects in goroutines of its own, as the Host of package world says. It is safe
// for concurrent use. Its queues have no bound of their own: a world never has
// more than limits.in_flight effects in flight.
type Host struct {
	cfg     Config
	effects map[string]*effect // by kind
	secrets *secrets
	limit   uint64       // bytes of one receipt
	log     *effectStore // nil where no effect is live
	leases  *leases
	decoder receipt.Decoder // the effect store's writer's

	tame, live context.Context // of what can be asked again, and of live attempts
	stop, kill context.CancelFunc
	workers    sync.WaitGroup
	closing    sync.Once
	closeErr   error // of closing

	mu        sync.Mutex // guards what follows
	works     crew       // of effects that take something of this machine, and of verifiers
	calls     crew       // of effects whose adapters are Waiting
	answers   []receipt.Answer
	woken     bool          // by Wake
	news      chan struct{} // closed when answers come; nil: nobody waits
	doubts    map[attempt]*doubt
	notBefore map[receipt.Key]time.Time // what the outside asked for in its last answer
	remote    remote
	keeper    *time.Timer
	keeping   bool // keeper is set
	closed    bool
	left      bool  // to who owns the world next: what workers elsewhere hold
	refused   error // that not all of what Start was told of since could be given back
	failed    error // of the effect store: nothing is acknowledged after it
}

func start(cfg Config, effects map[string]*effect, hidden *secrets, files vfs.FS) (*Host, error) {
	h := &Host{
		cfg: cfg, effects: effects, secrets: hidden, limit: cfg.Manifest.Limits.WithDefaults().Receipt,
		leases: newLeases(cfg.Lease), notBefore: make(map[receipt.Key]time.Time), doubts: make(map[attempt]*doubt),
		remote: remote{tasks: make(map[attempt]*remoteTask)},
	}
	h.works.most, h.calls.most = crewSizes(cfg.Workers)
	h.works.work, h.calls.work = func() { h.run(&h.works) }, func() { h.run(&h.calls) }
	if anyLive(effects) && cfg.hasStore() {
		var err error
		if h.log, err = openStore(&cfg, files); err != nil {
			return nil, err
		}
		h.log.start(h.publish, h.fail)
	}
	h.tame, h.stop = context.WithCancel(context.Background())
	h.live, h.kill = context.WithCancel(context.Background())
	return h, nil
}

// Live reports whether nobody may repeat an attempt of an intent.
func (h *Host) Live(in *receipt.Intent) bool {
	e := h.effects[in.Kind]
	return e != nil && e.live && !h.Recorded(in)
}

// Performs reports whether effects of a kind that no Recording answers touch the outside.
func (h *Host) Performs(kind string) bool {
	e := h.effects[kind]
	return e != nil && e.performs()
}

// Withheld says why effects of a kind are not performed here; nil: they are.
func (h *Host) Withheld(kind string) error {
	if e := h.effects[kind]; e != nil && !h.cfg.Remote {
		return e.withheld
	}
	return nil
}

// Recorded reports whether it is the Recording that answers an intent, or nothing does.
func (h *Host) Recorded(in *receipt.Intent) bool {
	e := h.effects[in.Kind]
	return e != nil && e.recorded != nil && (!e.asks || e.recorded.has(in))
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
	return h.log.stats()
}

// Start begins to do tasks and returns at once. After Shut it gives live attempts back
// instead, and after Close it does nothing. Whatever an earlier process has left has to be
// asked for, with Recover, before the first live effect is performed: the rest is
// forgotten then.
func (h *Host) Start(tasks []receipt.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		h.refuse(tasks)
		return
	}
	begun := false
	h.withdraw(tasks)
	for _, t := range tasks {
		switch t.Work {
		case receipt.Forget:
			h.forget(t)
		case receipt.Recover:
			h.recover(t)
		case receipt.Retry:
			h.retry(t)
		case receipt.Withdraw: // was done first
		case receipt.GiveBack:
			h.endUnwanted(t)
		case receipt.Hasten:
			h.addAnswer(receipt.Answer{Key: t.Key, Attempt: t.Attempt, Work: t.Work, Due: true})
		case receipt.Perform, receipt.Verify, receipt.Confirm:
			if t.Work == receipt.Perform && h.Live(&t.Intent) {
				if h.cfg.Missed != nil {
					h.cfg.Missed(t.Permit)
				}
				h.log.recover(attempt{t.Key, t.Attempt}) // never again what has a result
				begun = true
				if h.cfg.Remote || h.effects[t.Kind].withheld != nil {
					h.offer(t)
					continue
				}
			}
			h.beginDoubt(t)
			h.crewOf(t).add(t)
		}
	}
	if begun {
		h.log.dropStale()
	}
	h.hire()
}

// DropStale forgets what an earlier process has left and nobody has asked for with Recover: the
// journal has it. It is durable when the Host is closed.
func (h *Host) DropStale() {
	if h.log != nil {
		h.log.dropStale()
	}
}

// withdraw takes the live attempts that tasks want back out of what waits to be
// begun, and says which were there. It is called with mu held.
func (h *Host) withdraw(tasks []receipt.Task) {
	wanted := make(map[attempt]bool)
	for _, t := range tasks {
		if t.Work == receipt.Withdraw {
			wanted[attempt{t.Key, t.Attempt}] = true
		}
	}
	if len(wanted) == 0 {
		return
	}
	for _, t := range h.unqueue(wanted) {
		h.addAnswer(receipt.Answer{Key: t.Key, Attempt: t.Attempt, Work: receipt.Withdraw, Unbegun: true})
	}
}

// endUnwanted gives an attempt back that waits to be begun, and one that only asks what
// came of something also where it is under way: the next one tells the outside that
// nobody wants it. It is called with mu held.
func (h *Host) endUnwanted(t receipt.Task) {
	unbegun := h.unqueue(map[attempt]bool{{t.Key, t.Attempt}: true})
	for _, t := range unbegun {
		j := &job{Task: t, effect: h.effects[t.Kind]}
		if err := h.unsent(j); err != nil {
			h.crewOf(t).add(t) // it has no receipt: be it begun
			continue
		}
		h.addAnswer(receipt.Answer{Key: t.Key, Attempt: t.Attempt, Work: receipt.Perform, Receipt: j.made.Bytes(), Checked: &j.made})
	}
	if len(unbegun) > 0 || t.Accepted == "" {
		return
	}
	switch j := h.leases.owner(claim{receipt.Perform, t.Key}, t.Attempt); {
	case j == nil: // its result is on its way
	case j.worker == "":
		j.stop(errUnwanted)
	default:
		h.takeBack(h.remote.tasks[attempt{t.Key, t.Attempt}])
		if err := h.giveBack(j); err != nil {
			h.addAnswer(h.gaveUp(j, h.late(j)))
		}
	}
}

// unqueue takes those attempts out of what waits to be begun that are wanted. It is called
// with mu held.
func (h *Host) unqueue(wanted map[attempt]bool) []receipt.Task {
	var out []receipt.Task
	taken := func(t receipt.Task) bool {
		is := t.Work == receipt.Perform && wanted[attempt{t.Key, t.Attempt}]
		if is {
			out = append(out, t)
		}
		return is
	}
	for _, c := range h.crews() {
		c.queue = slices.DeleteFunc(c.queue, taken)
	}
	h.remote.queue = slices.DeleteFunc(h.remote.queue, func(e *remoteTask) bool {
		if e.ended || !taken(e.Task) {
			return false
		}
		delete(h.remote.tasks, attempt{e.Key, e.Attempt})
		return true
	})
	return out
}

func (h *Host) forget(t receipt.Task) {
	if h.log != nil {
		at := attempt{t.Key, t.Attempt}
		h.log.forget(at)
		if e := h.remote.tasks[at]; e != nil {
			h.takeBack(e)
			e.finish(nil)
			delete(h.remote.tasks, at)
		}
		h.leases.forget(claim{receipt.Perform, t.Key}, t.Attempt)
	}
}

// recover answers for an attempt of an earlier process. One that only asked about what
// the outside has accepted is given back: the next one asks again. It is called with mu
// held.
func (h *Host) recover(t receipt.Task) {
	a := receipt.Answer{Key: t.Key, Attempt: t.Attempt, Work: t.Work}
	var was left
	if h.log != nil {
		was = h.log.recover(attempt{t.Key, t.Attempt})
	}
	switch {
	case was.receipt != nil:
		a.Receipt = was.receipt
	case h.log != nil && t.Accepted != "" && h.giveBack(&job{Task: t}) == nil:
		return
	case was.unbegun:
		a.Unbegun = true
	case was.worker == "" && time.Until(was.until) > 0:
		a.Lost = "whoever owned the world before had begun it, and no result of it was stored"
		time.AfterFunc(time.Until(was.until), func() { h.post(a) }) // by then that one performs nothing
		return
	case was.worker == "":
		a.Lost = "the process that performed it has ended and no result of it was stored"
	case h.adopt(t, was):
		return
	default:
		a.Lost = fmt.Sprintf("worker %s has not renewed its lease, and no result of it was stored", was.worker)
	}
	h.addAnswer(a)
}

// retry answers Due when the wait after a failed attempt is over: at once where a
// Recording answers. It is called with mu held.
func (h *Host) retry(t receipt.Task) {
	if h.Recorded(&t.Intent) {
		h.addAnswer(receipt.Answer{Key: t.Key, Attempt: t.Attempt, Work: t.Work, Due: true})
		return
	}
	now := time.Now()
	var initial time.Duration
	if e := h.effects[t.Kind]; e != nil {
		initial = time.Duration(e.declared.Retry.Backoff)
	}
	wait := max(backoffAfter(initial, t.Key, t.Attempt), h.notBefore[t.Key].Sub(now))
	delete(h.notBefore, t.Key)
	time.AfterFunc(wait, func() {
		h.post(receipt.Answer{Key: t.Key, Attempt: t.Attempt, Work: t.Work, Due: true})
	})
}

// Answers returns the answers that have come, in their order, each once. After
// Close it fails with ErrClosed, and when the effect store has failed with that
// error: then nothing more will come.
func (h *Host) Answers() ([]receipt.Answer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.over(); err != nil {
		return nil, err
	}
	answers := h.answers
	h.answers, h.woken = nil, false
	return answers, nil
}

// Wake ends every Wait until Answers is called.
func (h *Host) Wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.woken = true
	h.wake()
}

// Wait blocks until there are answers, Wake is called, ctx ends, or nothing more
// will come (see Answers). Any number of callers may wait.
func (h *Host) Wait(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		news, err := h.News()
		if news == nil {
			return err
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

// News returns nil where Wait would not block, or would return an error. Else it returns what is closed when that may have
// changed.
func (h *Host) News() (<-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.over(); err != nil || len(h.answers) > 0 || h.woken {
		return nil, err
	}
	if h.news == nil {
		h.news = make(chan struct{})
	}
	return h.news, nil
}

func (h *Host) over() error {
	if h.closed {
		return ErrClosed
	}
	return h.failed
}

// post gives one answer.
func (h *Host) post(a receipt.Answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addAnswer(a)
}

// addAnswer is post with mu held.
func (h *Host) addAnswer(a receipt.Answer) {
	h.answers = append(h.answers, a)
	h.wake()
}

// wake wakes everybody in Wait. It is called with mu held.
func (h *Host) wake() { ring(&h.news) }

// ring wakes those who wait for news.
func ring(news *chan struct{}) {
	if *news != nil {
		close(*news)
		*news = nil
	}
}

// publish gives the answers to live effects, whose results are durable now.
func (h *Host) publish(group []entry) {
	h.check(group)
	for i := range group {
		if group[i].safe != nil {
			group[i].safe()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range group {
		if e := &group[i]; e.receipt != nil {
			h.answers = append(h.answers, receipt.Answer{Key: e.key, Attempt: e.number, Work: receipt.Perform, Receipt: e.receipt, Checked: e.checked})
			if done := h.remote.tasks[e.attempt]; done != nil {
				done.finish(nil)
			}
		}
	}
	h.wake()
}

// check verifies the receipts of a group that this process has not signed just now, so that
// the world need not: it has much to do.
func (h *Host) check(group []entry) {
	for i := range group {
		e := &group[i]
		if e.receipt == nil || e.checked != nil {
			continue
		}
		if c, err := h.cfg.Keys.Check(&h.decoder, e.receipt); err == nil { // else the world says why
			e.checked = &c
		}
	}
}

func (h *Host) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = err
	for _, e := range h.remote.tasks { // order cannot show: each is ended
		if e.result != nil {
			e.finish(err)
		}
	}
	h.wake()
	ring(&h.remote.news)
}
