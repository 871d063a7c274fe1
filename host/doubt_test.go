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

// TestNothingHappenedCountsWhenNothingCanArriveAnyMore is the third of the ways in
// which something was done twice: a verifier that asks before the attempt has arrived
// sees nothing of it.
func TestNothingHappenedCountsWhenNothingCanArriveAnyMore(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		settles time.Duration // declared; 0: the timeout of 30s
		arrives time.Duration // after the verifier is first asked
		final   bool          // the outside refuses what arrives later
		verdict receipt.FoundVerdict
		from    time.Duration // the answer comes then, or later
		to      time.Duration
	}{
		"it was there":            {0, -time.Second, false, receipt.Happened, 0, 0},
		"it arrives":              {0, time.Second, false, receipt.Happened, time.Second, 3 * time.Second},
		"it arrives at the end":   {5 * time.Second, 5*time.Second - 1, false, receipt.Happened, 4 * time.Second, 5 * time.Second},
		"it never arrives":        {0, never, false, receipt.NotHappened, 30 * time.Second, 31 * time.Second},
		"it settles sooner":       {2 * time.Second, never, false, receipt.NotHappened, 2 * time.Second, 3 * time.Second},
		"it settles later":        {time.Minute, 45 * time.Second, false, receipt.Happened, 45 * time.Second, time.Minute},
		"the outside refuses it":  {0, never, true, receipt.NotHappened, 0, 0},
		"and it had arrived then": {0, -time.Second, true, receipt.Happened, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				s := withVerifier(t, asked{verify: func(context.Context, host.Call) (receipt.Found, error) {
					if time.Since(begun) >= c.arrives {
						return receipt.Found{Verdict: receipt.Happened, Reason: "it is there"}, nil
					}
					return receipt.Found{Verdict: receipt.NotHappened, Final: c.final, Reason: "it is not there"}, nil
				}})
				e := s.effects["k"]
				e.SettlesAfter = int64(c.settles)
				s.effects["k"] = e
				h := s.open(t)
				h.Start(task(receipt.Verify, nth(t, 1)))
				a := next(t, h)
				require.Equal(t, c.verdict, a.Found.Verdict)
				require.GreaterOrEqual(t, time.Since(begun), c.from)
				require.LessOrEqual(t, time.Since(begun), c.to)
			})
		})
	}
}

// TestNextProcessWaitsAnew knows nothing of how long the one before has waited.
func TestNextProcessWaitsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := withVerifier(t, asked{verify: func(context.Context, host.Call) (receipt.Found, error) {
			return receipt.Found{Verdict: receipt.NotHappened}, nil
		}})
		first, err := s.new(t)
		require.NoError(t, err)
		first.Start(task(receipt.Verify, nth(t, 1)))
		time.Sleep(20 * time.Second) // of the bubble's time
		require.NoError(t, first.Close())
		begun := time.Now()
		h := s.open(t)
		h.Start(task(receipt.Verify, nth(t, 1)))
		require.Equal(t, receipt.NotHappened, next(t, h).Found.Verdict)
		require.GreaterOrEqual(t, time.Since(begun), 30*time.Second)
	})
}

// TestWithdrawTakesBackWhatNobodyHasBegun and nothing else; what was withdrawn can be
// begun after all.
func TestWithdrawTakesBackWhatNobodyHasBegun(t *testing.T) {
	release := make(chan struct{})
	begun := make(chan struct{}, 3)
	s := newLive(storeAt(t), func(ctx context.Context, call host.Call) (host.Result, error) {
		begun <- struct{}{}
		<-release
		return ok(ctx, call)
	})
	s.workers = 1
	h := s.open(t)
	start(h, nth(t, 1), nth(t, 2), nth(t, 3))
	<-begun
	withdraw := func(n int) []receipt.Answer {
		h.Start(task(receipt.Withdraw, nth(t, n)))
		answers, err := h.Answers()
		require.NoError(t, err, "the answer is there when Start returns")
		return answers
	}
	require.Empty(t, withdraw(1), "it was begun")
	require.Equal(t, []receipt.Answer{{Key: nth(t, 2).Key, Attempt: 1, Work: receipt.Withdraw, Unbegun: true}}, withdraw(2))
	require.Empty(t, withdraw(2), "it is taken back already")
	close(release)
	require.Len(t, await(t, h, 2), 2)
	require.Len(t, begun, 1, "the third")
	start(h, nth(t, 2))
	require.Equal(t, nth(t, 2).Key, next(t, h).Key)
}

// TestGiveBackAnswersForWhatNobodyHasBegun and for nothing else, with a receipt.
func TestGiveBackAnswersForWhatNobodyHasBegun(t *testing.T) {
	release := make(chan struct{})
	begun := make(chan struct{}, 3)
	s := newLive(storeAt(t), func(ctx context.Context, call host.Call) (host.Result, error) {
		begun <- struct{}{}
		<-release
		return ok(ctx, call)
	})
	s.workers = 1
	h := s.open(t)
	start(h, nth(t, 1))
	<-begun
	h.Start([]receipt.Task{{Work: receipt.Perform, Permit: nth(t, 2)}, {Work: receipt.GiveBack, Permit: nth(t, 2)}, {Work: receipt.GiveBack, Permit: nth(t, 1)}})
	a := next(t, h)
	r, err := receipt.Decode(a.Receipt)
	require.NoError(t, err)
	require.Equal(t, nth(t, 2).Key, r.Key)
	require.True(t, r.GivenBack())
	close(release)
	require.Equal(t, nth(t, 1).Key, next(t, h).Key, "it was begun")
	require.Empty(t, begun)
}

func TestWithdrawTakesBackWhatNoWorkerElsewhereHasAcquired(t *testing.T) {
	s := newLive(storeAt(t), ok)
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Remote = true
	}
	h := s.open(t)
	start(h, nth(t, 1), nth(t, 2))
	offers, err := h.Acquire(t.Context(), "worker", nil, 1)
	require.NoError(t, err)
	require.Len(t, offers, 1)
	h.Start([]receipt.Task{{Work: receipt.Withdraw, Permit: nth(t, 1)}, {Work: receipt.Withdraw, Permit: nth(t, 2)}})
	answers, err := h.Answers()
	require.NoError(t, err)
	require.Equal(t, []receipt.Answer{{Key: nth(t, 2).Key, Attempt: 1, Work: receipt.Withdraw, Unbegun: true}}, answers)
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	offers, err = h.Acquire(ctx, "worker", nil, 1)
	require.NoError(t, err)
	require.Empty(t, offers)
	start(h, nth(t, 2))
	offers, err = h.Acquire(t.Context(), "worker", nil, 1)
	require.NoError(t, err)
	require.Equal(t, nth(t, 2).Key, offers[0].Permit.Key)
	h.Start([]receipt.Task{{Work: receipt.Forget, Permit: nth(t, 1)}, {Work: receipt.Forget, Permit: nth(t, 2)}})
}

// TestEveryQuestionIsAnsweredOnce, also about an attempt that a person has decided
// about while the verifier was being asked, or was to be asked again.
func TestEveryQuestionIsAnsweredOnce(t *testing.T) {
	for slow := uint64(1); slow <= 2; slow++ {
		synctest.Test(t, func(t *testing.T) {
			h := withVerifier(t, asked{verify: func(_ context.Context, call host.Call) (receipt.Found, error) {
				if call.Permit.Attempt == slow {
					time.Sleep(2 * time.Second) // it is being asked when the other is, or is to be
				}
				return receipt.Found{Verdict: receipt.NotHappened}, nil
			}}).open(t)
			second := nth(t, 1)
			second.Attempt = 2
			h.Start(task(receipt.Verify, nth(t, 1)))
			time.Sleep(time.Second / 2) // of the bubble's time
			h.Start(task(receipt.Verify, second))
			found := map[uint64]receipt.FoundVerdict{}
			for _, a := range await(t, h, 2) {
				found[a.Attempt] = a.Found.Verdict
			}
			require.Equal(t, map[uint64]receipt.FoundVerdict{1: receipt.Unknown, 2: receipt.NotHappened}, found)
			time.Sleep(time.Minute)
			more, err := h.Answers()
			require.NoError(t, err)
			require.Empty(t, more)
		})
	}
}
