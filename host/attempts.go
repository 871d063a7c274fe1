package host

import (
	"context"
	"time"

	"github.com/worldkernel/worldkernel/receipt"
)

// Attempts keeps the attempts of live effects of a world that another machine may take over:
// in a table beside the journal that the machines share. It is one owner's of the world, and
// whatever it does it does as long as that one is: so nobody begins what its successor has
// found not begun.
//
// An attempt is begun here before anything of it is performed, or lent to a worker elsewhere,
// and its result is here before the world hears of it. So the owner that comes next knows of
// each attempt in flight what became of it: it was not begun, it has a result, a worker has it
// whose lease lives, or nobody can tell.
//
// A world that is moved to such a table takes the attempts that it has in flight with it, as
// begun: what is not here is performed.
type Attempts interface {
	// KeptAttempts returns all of them. It was read after the owner became the owner: nothing of
	// an earlier one can come after it. It may be called at any time.
	KeptAttempts(ctx context.Context) ([]receipt.KeptAttempt, error)

	// ChangeAttempts makes changes, all or none of them, which are durable on return, and says of
	// each to begin whether it is begun. It is not where it was begun before: unless the same
	// Run did, and there is no result yet. Who began it by a call whose answer was lost is
	// therefore told so when it calls again, and so is who only wants to know whether it still is
	// the owner. A lease begins when it is written.
	//
	// It also says for how long nobody takes the world over who is not told to, by the lease by which that is
	// done, and not by Config.Lease: so long its answer may be believed. What is begun without a worker is kept
	// with that lease. Whoever takes the world over before, for it was told to, decides about it after.
	//
	// It is called by one goroutine at a time, and only asks again to begin what has not been
	// performed since. Answers that are lost are the implementation's to look for, by the same
	// changes again, for as long as it sees fit. After an error it is unknown whether anything of
	// it is there, and nothing more is asked for: journal.ErrFenced says that the world is
	// another's by now. The changes are not kept.
	ChangeAttempts(ctx context.Context, changes *receipt.AttemptChanges) (receipt.AttemptsChanged, error)
}

// attempt names one attempt of an intent.
type attempt struct {
	key    receipt.Key
	number uint64
}

// beginning is an attempt that is being begun; nil: it is begun.
type beginning struct {
	worker string
	first  bool          // the store knew nothing of it
	asked  time.Time     // before the store was; set when it has answered, as is
	lease  time.Duration // from then on, of the owner of the world
	done   chan struct{} // closed then
	ok     bool          // nobody had begun it before
	err    error         // of the store, which has failed or was closed
}

func (b *beginning) wait() (ok bool, err error) {
	if b == nil {
		return true, nil
	}
	<-b.done
	return b.ok, b.err
}

func (b *beginning) endBeginning(ok bool, err error) {
	b.ok, b.err = ok, err
	close(b.done)
}

const begunBefore = "another process has begun it"

// fresh reports whether the world is sure to be its owner's still. It is for half of the lease that was
// left: the other half is for the way from here to the outside.
func (b *beginning) fresh() bool {
	return passed(b.asked) < b.lease/2
}

// passed is how long ago a time was, by the clock that says more: one stands still while the machine
// sleeps, the other one can be set.
func passed(since time.Time) time.Duration {
	return max(time.Since(since), time.Now().Round(0).Sub(since.Round(0)))
}

// beginAttempt begins the attempt of a job, and reports whether it is to be performed. What took so
// long that the world may be another's by now is begun again: whoever was stopped between the
// answer and here performs nothing that somebody else has decided about.
func (h *Host) beginAttempt(ctx context.Context, j *job) bool {
	for {
		b := h.log.beginAttempt(attempt{j.Key, j.Attempt}, "")
		if b == nil {
			return true
		}
		ok, err := b.wait()
		switch {
		case err != nil: // as Answers tells
			h.leases.release(j.claim(), j)
			return false
		case !ok:
			if h.leases.release(j.claim(), j) {
				h.post(receipt.Answer{Key: j.Key, Attempt: j.Attempt, Work: j.Work, Lost: begunBefore})
			}
			return false
		case ctx.Err() != nil || h.leases.owner(j.claim(), j.Attempt) != j: // it came too late
			h.fenced(j)
			return false
		case b.fresh():
			return true
		}
		if b.lease <= 0 {
			awaitMoment(ctx)
		}
	}
}

// moment is how long an owner is left alone whose lease has run out, before it is asked about again, and who
// waits for what this process has none left of.
const moment = 100 * time.Millisecond

func awaitMoment(ctx context.Context) { _ = await(ctx, moment) }

// await waits for so long, or returns the error of ctx.
func await(ctx context.Context, long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lent is an attempt that is about to be handed out.
type lent struct {
	offer Offer
	task  *remoteTask
	begin *beginning
}

// begun returns what can be handed out: what is begun, and was not given up meanwhile.
func (h *Host) begun(all []lent) (offers []Offer, err error) {
	for _, l := range all {
		ok, err := l.begin.wait()
		if err != nil {
			return nil, err
		}
		h.mu.Lock()
		switch e := l.task; {
		case !e.held:
		case ok:
			offers = append(offers, l.offer)
		default:
			h.takeBack(e)
			h.addAnswer(receipt.Answer{Key: e.Key, Attempt: e.Attempt, Work: e.Work, Lost: begunBefore})
		}
		h.mu.Unlock()
	}
	return offers, nil
}

// adopt has the worker go on that has an attempt since an earlier process, and reports whether
// its lease lives. It is called with mu held.
func (h *Host) adopt(t receipt.Task, was left) bool {
	now := time.Now()
	if !now.Before(was.until) {
		return false
	}
	j := &job{Task: t, effect: h.effects[t.Kind], worker: was.worker}
	if j.effect == nil {
		j.effect = new(effect)
	}
	j.Work = receipt.Perform
	j.deadline = now.Add(j.effect.timeout() + 2*h.cfg.Lease)
	e := &remoteTask{Task: j.Task, finished: make(chan struct{})}
	h.remote.tasks[attempt{t.Key, t.Attempt}] = e
	h.leases.adopt(j.claim(), t.Attempt, j, was.until)
	e.hold(j, h.cfg.World)
	h.workers.Add(1)
	h.keep()
	return true
}
