package host

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// leaveBehind is how long Close waits for adapters that ignore the end of their
// context, and for those that do not close.
const leaveBehind = 2 * time.Second

// Close ends the Host. What can be asked again is dropped; live attempts that
// nobody has started are given back, which the effect store keeps; running ones
// have Config.Grace to end before their contexts do, and workers elsewhere to
// commit what they hold; where another machine may own the world next (Config.Attempts),
// they go on there with what they hold, and until it lets go of that the Host renews it and takes
// results. What then still runs is left behind: nobody will know
// what became of it. The error is that of the effect store or of an adapter's
// Close.
func (h *Host) Close() error {
	h.closing.Do(func() { h.closeErr = h.drain() })
	return h.closeErr
}

// Shut has the Host begin nothing more: live attempts that nobody has started, and those
// that Start is told of from here on, are given back. Whoever closes a Host that may still
// be told of attempts, since their permits are not known to be durable yet, shuts it first.
func (h *Host) Shut() error {
	var faults []error
	for _, j := range h.shut() {
		faults = append(faults, h.giveBack(j))
	}
	return errors.Join(faults...)
}

func (h *Host) drain() error {
	faults := []error{h.Shut()}
	h.stop()
	if h.cfg.Attempts != nil {
		h.handOver()
	}
	if !within(h.cfg.Grace, &h.workers) {
		h.kill()
		h.leave()
		within(leaveBehind, &h.workers)
	}
	h.kill()
	h.mu.Lock()
	faults = append(faults, h.refused)
	h.mu.Unlock()
	if h.log != nil {
		faults = append(faults, h.log.close())
	}
	faults = append(faults, closeAll(h.effects))
	return errors.Join(faults...)
}

// shut lets nothing in any more and returns the live attempts that were queued.
func (h *Host) shut() []*job {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.wake()
	ring(&h.remote.news)
	if h.keeper != nil {
		h.keeper.Stop()
	}
	for _, e := range h.remote.queue {
		if !e.ended {
			h.works.add(e.Task)
		}
	}
	unstarted := h.unstarted(slices.Concat(h.works.queue, h.calls.queue))
	h.works.queue, h.calls.queue, h.remote.queue = nil, nil, nil
	return unstarted
}

// unstarted returns the live attempts of tasks that nobody will begin. It is called with
// mu held.
func (h *Host) unstarted(tasks []receipt.Task) (jobs []*job) {
	for _, t := range tasks {
		if t.Work != receipt.Perform || !h.Live(&t.Intent) {
			continue
		}
		if j := h.claim(t); j != nil { // or it runs, under the same permit
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// refuse gives back what came after Shut. It is called with mu held.
func (h *Host) refuse(tasks []receipt.Task) {
	for _, j := range h.unstarted(tasks) {
		h.refused = errors.Join(h.refused, h.giveBack(j))
	}
}

// handOver leaves workers elsewhere what they hold, for a lease from now: who owns the world next
// has them go on, and none of them waits for this process, which does not renew any more.
func (h *Host) handOver() {
	h.mu.Lock()
	h.left = true
	var held []attempt
	for at, e := range h.remote.tasks { // order cannot show: each has its own lease
		if e.held {
			held = append(held, at)
		}
	}
	h.mu.Unlock()
	if len(held) > 0 { // a world without live effects has no log
		h.log.renew(held)
	}
	h.leave()
}

// leave waits no longer for workers elsewhere.
func (h *Host) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.remote.tasks { // order cannot show: none is ended
		h.takeBack(e)
	}
}

// GiveBack says of attempts in flight that nothing was done for them, where that
// is so because a Recording was to answer: a process without it would not know.
// It is called last before Close.
func (h *Host) GiveBack(permits []receipt.Permit) error {
	if h.log == nil {
		return nil
	}
	for _, p := range permits {
		e := h.effects[p.Kind]
		if e == nil || !e.live || h.Live(&p.Intent) {
			continue
		}
		if err := h.giveBack(&job{Task: receipt.Task{Permit: p}, effect: e}); err != nil {
			return err
		}
	}
	return nil
}

// Left returns those of attempts in flight that a closed Host leaves in doubt: nobody may
// repeat them, and no result of theirs is stored.
func (h *Host) Left(permits []receipt.Permit) (left []receipt.Permit) {
	for _, p := range permits {
		if h.log == nil || !h.Live(&p.Intent) {
			continue
		}
		if was := h.log.recover(attempt{p.Key, p.Attempt}); was.receipt == nil && !was.unbegun {
			left = append(left, p)
		}
	}
	return left
}

// unsent makes the receipt of an attempt that was never begun.
func (h *Host) unsent(j *job) (err error) {
	payload := failure("given_back", "given back: nothing was done")
	now := time.Now().UnixNano()
	j.made, err = h.sign(&j.Permit, Result{
		Status: receipt.StatusCancelled, Class: receipt.OutcomeRetryableFailure, Unsent: true, Payload: payload,
	}, now, now)
	return err
}

// giveBack answers for an attempt that was never begun.
func (h *Host) giveBack(j *job) error {
	err := h.unsent(j)
	if err == nil {
		h.log.put(entry{attempt: attempt{j.Key, j.Attempt}, receipt: j.made.Bytes(), checked: &j.made})
	}
	return err
}

// failure is the payload of a receipt that the Host itself makes.
func failure(code, text string) receipt.Data {
	payload := canon.AppendMap(nil, 2)
	payload = canon.AppendText(canon.AppendText(payload, "code"), code)
	return canon.AppendText(canon.AppendText(payload, "error"), text)
}

// within waits for all, but not for longer than that.
func within(wait time.Duration, all *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// closeAll closes the adapters and verifiers that can be closed, all at once.
func closeAll(effects map[string]*effect) error {
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		faults []error
	)
	for _, e := range effects {
		for _, part := range []any{e.adapter, e.verifier} {
			if c, ok := part.(io.Closer); ok {
				all.Go(func() {
					err := closeOne(c)
					mu.Lock()
					defer mu.Unlock()
					faults = append(faults, err)
				})
			}
		}
	}
	within(leaveBehind, &all)
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(faults...)
}

// closeOne closes an adapter or a verifier; its panic is its own fault.
func closeOne(c io.Closer) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("host: closing %T panicked: %v", c, fault)
		}
	}()
	return c.Close()
}
