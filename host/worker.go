package host

import (
	"context"
	"fmt"
	"time"

	files "github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/receipt"
)

// job is a task in a worker's hands.
type job struct {
	receipt.Task
	effect   *effect
	deadline time.Time
	context  attemptContext          // of an attempt in this process
	short    time.Time               // when it was Short first
	asking   context.Context         // of one that only asks what came of something: ended by stop, too
	stop     context.CancelCauseFunc // nil where asking is
	made     receipt.Checked         // the receipt, of an attempt that came to one in this process
	worker   string                  // who performs it in another process; empty: this one does
	lost     bool                    // its lease ran out, and its worker is not one of busy any more; guarded by Host.mu
}

func (j *job) claim() claim { return claim{j.Work, j.Key} }

// crew is the workers that do tasks of one sort; guarded by Host.mu.
type crew struct {
	most  int  // that are at work at once
	busy  int  // one whose lease ran out does not count any more
	hired bool // one of them has not looked at the queue yet
	queue []receipt.Task
	work  func() // what each of them does
}

// crewSizes returns how many do works and calls, of which somebody wants so many; below
// 1: nobody says. A program takes up to eight descriptors while it starts, and a call two
// while it looks for its host: these are half of what there are.
func crewSizes(workers int) (works, calls int) {
	if workers > 0 {
		return workers, workers
	}
	most := files.Descriptors()
	return max(1, min(DefaultWorkers, most/16)), max(1, min(DefaultCalls, most/4))
}

func (c *crew) add(t receipt.Task) { c.queue = append(c.queue, t) }

// crews are all of them.
func (h *Host) crews() []*crew { return []*crew{&h.works, &h.calls} }

// Queued returns the live attempts that wait to be begun.
func (h *Host) Queued() receipt.Queued {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(receipt.Queued)
	note := func(t *receipt.Task) {
		if t.Work == receipt.Perform && h.Live(&t.Intent) {
			all[t.Key] = t.Attempt
		}
	}
	for _, c := range h.crews() {
		for i := range c.queue {
			note(&c.queue[i])
		}
	}
	for _, e := range h.remote.queue {
		if !e.ended {
			note(&e.Task)
		}
	}
	return all
}

// crewOf returns the crew that does a task.
func (h *Host) crewOf(t receipt.Task) *crew {
	if e := h.effects[t.Kind]; e != nil && (e.waits || t.Accepted != "") && t.Work == receipt.Perform {
		return &h.calls
	}
	return &h.works
}

// hire starts a worker for what is queued, unless one is about to look there. Each hires
// the next before it begins, so that there are many where they have to wait, and few
// where what they do is done at once. It is called with mu held.
func (h *Host) hire() {
	for _, c := range h.crews() {
		if len(c.queue) > 0 && c.busy < c.most && !c.hired {
			c.busy++
			c.hired = true
			h.workers.Add(1)
			go c.work()
		}
	}
}

// run is one worker: it ends when there is nothing to do, or when it was too
// slow and another has its place.
func (h *Host) run(c *crew) {
	defer h.workers.Done()
	var last *job
	for {
		j := h.next(c, last)
		if j == nil {
			return
		}
		h.do(j)
		last = j
	}
}

func (h *Host) next(c *crew, last *job) *job {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last == nil {
		c.hired = false
	} else if last.lost {
		return nil
	}
	for len(c.queue) > 0 && !h.closed {
		t := c.queue[0]
		c.queue = c.queue[1:]
		if j := h.claim(t); j != nil {
			h.hire()
			return j
		}
	}
	c.busy--
	return nil
}

// claim makes a job of a task, unless it is nobody's business any more. What
// can be asked again needs no lease.
func (h *Host) claim(t receipt.Task) *job {
	j := &job{Task: t, effect: h.effects[t.Kind]}
	if t.Work == receipt.Perform && !h.Live(&t.Intent) {
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
	if t.Work == receipt.Perform {
		if data, ok := h.log.get(attempt{t.Key, t.Attempt}); ok {
			h.addAnswer(receipt.Answer{Key: t.Key, Attempt: t.Attempt, Work: t.Work, Receipt: data})
			return nil
		}
	}
	if d := h.leases.acquire(j.claim(), t.Attempt, j, now); d != receipt.AllowExecute {
		if d == receipt.Rejected && t.Work == receipt.Verify {
			h.addAnswer(h.overtaken(j))
		}
		return nil // who holds it answers, or has answered
	}
	if t.Work == receipt.Perform && t.Accepted != "" {
		j.asking, j.stop = context.WithCancelCause(h.live)
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

// look renews the leases of this process and gives up jobs whose lease ran out:
// they have ignored the end of their context, and their places are needed, or
// they are with a worker elsewhere that is gone.
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
		if j.worker == "" {
			j.lost = true
			h.crewOf(j.Task).busy--
		} else {
			h.takeBack(h.remote.tasks[attempt{j.Key, j.Attempt}])
			if j.Work == receipt.Perform && j.Accepted != "" && !j.overdue(now) && h.giveBack(j) == nil {
				continue // it only asked, and the next one asks again
			}
		}
		h.addAnswer(h.gaveUp(j, h.late(j)))
	}
	h.keeping = false
	if others {
		h.keep()
	}
	h.hire()
}

// late says why a job whose lease ran out is given up.
func (h *Host) late(j *job) string {
	if j.worker != "" {
		return fmt.Sprintf("worker %s has not renewed its lease", j.worker)
	}
	return fmt.Sprintf("the lease ran out: it had not ended %s after its timeout of %s", h.cfg.Lease, j.effect.timeout())
}

func (h *Host) gaveUp(j *job, reason string) receipt.Answer {
	a := receipt.Answer{Key: j.Key, Attempt: j.Attempt, Work: j.Work}
	if j.Accepted != "" {
		reason += fmt.Sprintf("; it asked what came of %q", j.Accepted)
	}
	if j.Work == receipt.Perform {
		a.Lost = reason
	} else {
		a.Found = &receipt.Found{Verdict: receipt.Unknown, Reason: reason}
		h.endDoubt(j)
	}
	return a
}
