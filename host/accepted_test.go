package host_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/receipt"
)

func requireGivenBack(t *testing.T, a receipt.Answer) {
	t.Helper()
	require.Empty(t, a.Lost)
	r, err := receipt.Decode(a.Receipt)
	require.NoError(t, err)
	require.True(t, r.GivenBack())
}

// A process that dies asking what came of something that the outside has accepted
// leaves nothing that nobody knows of.
func TestAskingOfAProcessBeforeIsGivenBack(t *testing.T) {
	owner := newOwner(t, storeAt(t)).open(t)
	p := nth(t, 1)
	p.Accepted = "job-1"
	owner.Start([]receipt.Task{{Work: receipt.Recover, Permit: p}})
	requireGivenBack(t, next(t, owner))
}

func TestAskingOfAWorkerThatIsGoneIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newOwner(t, storeAt(t)).open(t)
		p := nth(t, 1)
		p.Accepted = "job-1"
		start(owner, p)
		offers := acquire(t, owner, "w-1", 1)
		require.Equal(t, "job-1", offers[0].Permit.Accepted)
		requireGivenBack(t, next(t, owner))
		none(t, owner)
	})
}

// asker is an adapter whose outside has accepted something already.
type asker func(ctx context.Context, call host.Call) (host.Result, error)

func (asker) Perform(context.Context, host.Call) (host.Result, error) {
	panic("it is asked for again")
}

func (a asker) Ask(ctx context.Context, call host.Call) (host.Result, error) { return a(ctx, call) }

// newAsker returns a setup whose effects of kind "k" are asked about.
func newAsker(t testing.TB, a asker) *setup {
	s := newLive(storeAt(t), nil)
	s.adapter("k", a)
	e := s.effects["k"]
	e.Timeout = int64(time.Hour)
	s.effects["k"] = e
	return s
}

// atWork says that the outside has not ended job-1.
func atWork(t testing.TB) host.Result {
	t.Helper()
	payload, err := (&receipt.Accepted{ID: "job-1", Message: "half of it"}).Encode()
	require.NoError(t, err)
	return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeAccepted, Payload: payload}
}

func nthAsking(t testing.TB, n int) receipt.Permit {
	p := nth(t, n)
	p.Accepted = "job-1"
	return p
}

// An attempt that asks ends where its cell has cancelled what it asks about, so that the
// next can tell the outside; what it has heard meanwhile counts.
func TestAskingAboutWhatNobodyWantsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAsker(t, func(ctx context.Context, call host.Call) (host.Result, error) {
			<-ctx.Done()
			switch call.Permit.Occurrence {
			case 1:
				return atWork(t), nil
			case 2:
				return host.Result{}, ctx.Err()
			}
			return host.Result{Status: receipt.StatusOK}, nil
		}).open(t)
		began := time.Now()
		for n := 1; n <= 3; n++ {
			p := nthAsking(t, n)
			start(h, p)
			synctest.Wait()
			h.Start([]receipt.Task{{Work: receipt.GiveBack, Permit: p}})
			if a := next(t, h); n < 3 {
				requireGivenBack(t, a)
			} else {
				require.Equal(t, receipt.StatusOK, decoded(t, a).Status)
			}
		}
		require.Zero(t, time.Since(began))
	})
}

func TestAskingOfAWorkerAboutWhatNobodyWantsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newOwner(t, storeAt(t)).open(t)
		p := nthAsking(t, 1)
		start(owner, p)
		acquire(t, owner, "w-1", 1)
		began := time.Now()
		owner.Start([]receipt.Task{{Work: receipt.GiveBack, Permit: p}})
		requireGivenBack(t, next(t, owner))
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, owner.Renew("w-1", p.Key, p.Attempt, p.Nonce), host.ErrNotHeld)
	})
}

// What is done is not taken back: an attempt that asks for something goes on.
func TestAttemptUnderWayIsNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLive(storeAt(t), func(ctx context.Context, _ host.Call) (host.Result, error) {
			select {
			case <-time.After(time.Second):
				return host.Result{Status: receipt.StatusOK}, nil
			case <-ctx.Done():
				return host.Result{}, ctx.Err()
			}
		}).open(t)
		start(h, nth(t, 1))
		synctest.Wait()
		h.Start([]receipt.Task{{Work: receipt.GiveBack, Permit: nth(t, 1)}})
		require.Equal(t, receipt.StatusOK, decoded(t, next(t, h)).Status)
	})
}

func TestWaitEndsWhereItIsHastened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newLive(storeAt(t), ok).open(t)
		began := time.Now()
		h.Start(task(receipt.Retry, nth(t, 1)))
		h.Start(task(receipt.Hasten, nth(t, 1)))
		require.True(t, next(t, h).Due)
		require.Zero(t, time.Since(began))
	})
}

// What the outside has at work still when it should have ended, or cannot say, is in
// doubt. Before, and of what has ended, that changes nothing.
func TestWhatIsAtWorkForTooLongIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notAsked := host.Result{Status: receipt.StatusTimeout, Class: receipt.OutcomeRetryableFailure}
		for _, r := range []host.Result{atWork(t), notAsked, {Status: receipt.StatusOK}} {
			s := newAsker(t, func(context.Context, host.Call) (host.Result, error) { return r, nil })
			h, owner := s.open(t), newOwner(t, storeAt(t)).open(t)
			for n, left := range []time.Duration{time.Second, 0, -time.Hour} {
				p := nthAsking(t, n+1)
				p.AskUntil = time.Now().Add(left).UnixNano()
				start(h, p)
				here := next(t, h)
				start(owner, p)
				worker := acquire(t, owner, "w-1", 1)[0].Permit
				require.NoError(t, owner.Commit("w-1", fromElsewhere(t, worker, func(x *receipt.Receipt) {
					x.Status, x.Class = r.Status, r.Class
					if r.Payload != nil {
						x.Payload = r.Payload
					}
				}), 0))
				for _, a := range []receipt.Answer{here, next(t, owner)} {
					if left > 0 || r.Status == receipt.StatusOK {
						require.Empty(t, a.Lost)
						continue
					}
					require.Contains(t, a.Lost, `what it calls "job-1"`)
				}
			}
		}
	})
}

// A worker that is gone is no reason to ask for ever.
func TestAskingOfAWorkerThatIsGoneEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newOwner(t, storeAt(t)).open(t)
		p := nthAsking(t, 1)
		p.AskUntil = time.Now().Add(time.Second).UnixNano()
		start(owner, p)
		acquire(t, owner, "w-1", 1)
		require.Contains(t, next(t, owner).Lost, `"job-1"`)
	})
}
