package host_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// newOwner returns a setup whose live effects are performed elsewhere. Its Close
// waits for nobody.
func newOwner(t testing.TB, path string) *setup {
	s := newLive(path, func(context.Context, host.Call) (host.Result, error) {
		t.Error("the owner performs nothing")
		return host.Result{}, errors.New("never here")
	})
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Remote, cfg.Grace = true, 1
	}
	return s
}

// newPatientOwner is newOwner with a Close that waits.
func newPatientOwner(t testing.TB, path string) *setup {
	s := newOwner(t, path)
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Grace = 0
	}
	return s
}

// newWorker returns the setup of a worker's own Host. Each process has a key of
// its own.
func newWorker(t testing.TB, path string, process byte, o outside) *setup {
	t.Helper()
	k, err := receipt.NewKeyring(town, []receipt.Epoch{{Number: 1, Secret: append(make([]byte, receipt.SecretBytes-1), process)}})
	require.NoError(t, err)
	s := newLive(path, o)
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Keys = k
	}
	return s
}

// acquire returns what a worker gets of the owner now.
func acquire(t testing.TB, owner *host.Host, worker string, most int) []host.Offer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	offers, err := owner.Acquire(ctx, worker, nil, most)
	require.NoError(t, err)
	return offers
}

// perform has the worker's own Host perform what was acquired.
func performHere(t testing.TB, own *host.Host, offers []host.Offer) []receipt.Answer {
	t.Helper()
	tasks := make([]receipt.Task, len(offers))
	for i, o := range offers {
		tasks[i] = receipt.Task{Permit: o.Permit}
	}
	own.Start(tasks)
	return await(t, own, len(offers))
}

// deliver commits receipts and forgets them.
func deliver(t testing.TB, owner, own *host.Host, worker string, receipts ...[]byte) {
	t.Helper()
	for _, data := range receipts {
		r, err := receipt.Decode(data)
		require.NoError(t, err)
		require.NoError(t, owner.Commit(worker, data, own.RetryAfter(r.Key)))
		own.Start(task(receipt.Forget, receipt.Permit{Intent: receipt.Intent{Key: r.Key, Kind: r.Kind}, Attempt: r.Attempt}))
	}
}

// fromElsewhere is a receipt that a worker has made for a permit, with changes.
func fromElsewhere(t testing.TB, p receipt.Permit, changes ...func(*receipt.Receipt)) []byte {
	t.Helper()
	r := receipt.New(town, p, receipt.StatusOK, data(t, `"done"`))
	for _, change := range changes {
		change(&r)
	}
	k, err := receipt.NewKeyring(r.World, []receipt.Epoch{{Number: 1, Secret: make([]byte, receipt.SecretBytes)}, {Number: 2, Secret: append(make([]byte, receipt.SecretBytes-1), 2)}})
	require.NoError(t, err)
	data, err := k.Sign(&r)
	require.NoError(t, err)
	return data
}

func none(t testing.TB, h *host.Host) {
	t.Helper()
	answers, err := h.Answers()
	require.NoError(t, err)
	require.Empty(t, answers)
}

// TestAWorkerElsewhere is a worker's life, but for the network.
func TestAWorkerElsewhere(t *testing.T) {
	ownersPath, ownPath, copied := storeAt(t), storeAt(t), storeAt(t)
	owner := newOwner(t, ownersPath).open(t)
	own := newWorker(t, ownPath, 1, func(_ context.Context, call host.Call) (host.Result, error) {
		require.Equal(t, call.Permit.Key.External(town), call.External)
		return host.Result{
			Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, Payload: call.Permit.Params,
			Cost: receipt.Cost{Tokens: 7}, RetryAfter: time.Minute,
		}, nil
	}).open(t)
	start(owner, nth(t, 1), nth(t, 2), nth(t, 3))
	offers := acquire(t, owner, "w-1", 2)
	require.Equal(t, []host.Offer{
		{Permit: nth(t, 1), Lease: host.DefaultLease, Timeout: 30 * time.Second},
		{Permit: nth(t, 2), Lease: host.DefaultLease, Timeout: 30 * time.Second},
	}, offers, "in the order of their permits, whole")
	for _, a := range performHere(t, own, offers) {
		deliver(t, owner, own, "w-1", a.Receipt)
		got := next(t, owner)
		require.Equal(t, receipt.Perform, got.Work)
		mine := decoded(t, got)
		theirs, err := receipt.Decode(a.Receipt)
		require.NoError(t, err)
		require.ErrorIs(t, keys(t).Verify(theirs), receipt.ErrUnknownKey)
		theirs.KeyID, theirs.Hash, theirs.MAC = mine.KeyID, mine.Hash, mine.MAC
		require.Equal(t, theirs, mine, "the owner has signed what the worker says")
		require.Equal(t, receipt.Cost{Tokens: 7, Calls: 1}, mine.Cost)

		file, err := os.ReadFile(ownersPath)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(copied, file, 0o600)) // the owner dies here
		require.Equal(t, got.Receipt, recovered(t, copied, receipt.Permit{Intent: receipt.Intent{Key: got.Key}, Attempt: 1}).Receipt)
	}
	require.Empty(t, own.Stored())
	require.Len(t, owner.Stored(), 2, "until the journal has them")
}

func TestTheOwnerDoesAllButPerformLiveEffects(t *testing.T) {
	s := newOwner(t, storeAt(t))
	e := s.effects["k"]
	e.Verify = &manifest.Verify{Adapter: "ask"}
	s.effects["k"], s.effects["d"] = e, manifest.Effect{Adapter: "d"}
	s.adapters["d"] = func(host.Setup) (host.Adapter, error) { return result(receipt.StatusOK, nil), nil }
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Verifiers = map[string]host.VerifierFactory{"ask": func(host.Setup) (host.Verifier, error) {
			return asked{verify: func(context.Context, host.Call) (receipt.Found, error) {
				return receipt.Found{Verdict: receipt.Happened}, nil
			}}, nil
		}}
	}
	h := s.open(t)
	require.True(t, h.Live(&receipt.Intent{Kind: "k"}))
	start(h, nth(t, 1))
	_, err := ask(t, h, permit(t, "agent/1", "d", `1`, 0))
	require.NoError(t, err)
	h.Start(task(receipt.Verify, nth(t, 2)))
	require.Equal(t, receipt.Happened, next(t, h).Found.Verdict)
	h.Start(task(receipt.Recover, nth(t, 2)))
	require.NotEmpty(t, next(t, h).Lost)
	none(t, h)
	require.Len(t, acquire(t, h, "w-1", 9), 1)

	rec, err := host.NewRecording("other", each(host.Recorded{
		Cell: "agent/1", Kind: "k", Params: data(t, `1`), Occurrence: 1, Result: host.Result{Status: receipt.StatusOK},
	}))
	require.NoError(t, err)
	s.more = func(cfg *host.Config) { cfg.Recording, cfg.Remote = rec, true }
	h = s.open(t)
	_, err = ask(t, h, nth(t, 1))
	require.NoError(t, err)
	require.Empty(t, acquire(t, h, "w-1", 9))
	require.ErrorIs(t, h.Commit("w-1", fromElsewhere(t, nth(t, 1)), 0), host.ErrBadReceipt)
}

func TestThreeWorkersPerformEachAttemptOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which sees it where one of them is stuck
		const attempts = 60
		owner := newOwner(t, storeAt(t)).open(t)
		var mu sync.Mutex
		calls := make(map[receipt.Key]int)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var workers sync.WaitGroup
		for i, name := range []string{"w-1", "w-2", "w-3"} {
			own := newWorker(t, storeAt(t), byte(i), func(_ context.Context, call host.Call) (host.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				calls[call.Permit.Key]++
				return host.Result{Status: receipt.StatusOK}, nil
			}).open(t)
			workers.Go(func() {
				for {
					offers, err := owner.Acquire(ctx, name, []string{"k"}, 4)
					if err != nil {
						require.ErrorIs(t, err, context.Canceled)
						return
					}
					for _, a := range performHere(t, own, offers) {
						deliver(t, owner, own, name, a.Receipt)
					}
				}
			})
		}
		var permits []receipt.Permit
		for n := range attempts {
			permits = append(permits, nth(t, n))
		}
		start(owner, permits[:attempts/2]...)
		start(owner, permits...) // some twice
		answered := make(map[receipt.Key]int)
		for len(answered) < attempts {
			for _, a := range await(t, owner, 1) {
				decoded(t, a)
				answered[a.Key]++
			}
		}
		cancel()
		workers.Wait()
		require.Len(t, calls, attempts)
		for key, n := range calls {
			require.Equal(t, 1, n)
			require.Equal(t, 1, answered[key])
		}
	})
}

func TestAcquireWaitsForWhatTheWorkerCanDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newOwner(t, storeAt(t)).open(t)
		type answer struct {
			offers []host.Offer
			err    error
		}
		got := make(chan answer, 2)
		for _, kinds := range [][]string{{"other", "k"}, {"other"}} {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				offers, err := owner.Acquire(ctx, "w-1", kinds, 0)
				got <- answer{offers, err}
			}()
		}
		synctest.Wait()
		require.Empty(t, got)
		start(owner, nth(t, 1), nth(t, 2))
		require.Equal(t, nth(t, 1), (<-got).offers[0].Permit)
		synctest.Wait()
		require.Empty(t, got, "it can do nothing else")
		require.Equal(t, answer{}, <-got, "and has waited until its deadline")

		start(owner, nth(t, 3))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := owner.Acquire(ctx, "w-1", nil, 9)
		require.ErrorIs(t, err, context.Canceled, "who has gone gets nothing")
		offers := acquire(t, owner, "w-2", 1000)
		require.Len(t, offers, 2)
		require.Equal(t, nth(t, 2), offers[0].Permit)
	})
}

func TestAcquireHandsOutNoMoreThanItsLimit(t *testing.T) {
	owner := newOwner(t, storeAt(t)).open(t)
	for n := range host.MaxOffers + 1 {
		start(owner, nth(t, n))
	}
	require.Len(t, acquire(t, owner, "w-1", 1<<40), host.MaxOffers)
	require.Len(t, acquire(t, owner, "w-1", 1<<40), 1)
}

// TestAcquireHandsOutNoMoreBytesThanItsLimit: a worker whose attempts have params of the
// largest size gets one at a time, and in the end all of them.
func TestAcquireHandsOutNoMoreBytesThanItsLimit(t *testing.T) {
	owner := newOwner(t, storeAt(t)).open(t)
	for n, bytes := range []int{1, host.MaxOfferBytes, 1, 1} {
		start(owner, permit(t, "agent/1", "k", `"`+strings.Repeat("x", bytes)+`"`, uint64(n)))
	}
	for _, want := range []int{2, 2, 0} {
		require.Len(t, acquire(t, owner, "w-1", host.MaxOffers), want)
	}
}

func TestAWorkerHasAName(t *testing.T) {
	owner := newOwner(t, storeAt(t)).open(t)
	start(owner, nth(t, 1))
	for _, name := range []string{"", "a\nb", "\x1b[2J", "\xff", strings.Repeat("w", host.MaxWorkerBytes+1)} {
		_, err := owner.Acquire(t.Context(), name, nil, 1)
		require.ErrorIs(t, err, host.ErrWorkerName, "%q", name)
	}
	require.Len(t, acquire(t, owner, strings.Repeat("w", host.MaxWorkerBytes), 1), 1)
}

// leased returns a host and the permit that the worker w-1 holds of it.
func leased(t testing.TB) (*host.Host, receipt.Permit) {
	t.Helper()
	owner := newOwner(t, storeAt(t)).open(t)
	p := nth(t, 1)
	start(owner, p)
	acquire(t, owner, "w-1", 1)
	return owner, p
}

func TestALeaseThatIsNotRenewedRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner, p := leased(t)
		began := time.Now()
		a := next(t, owner)
		require.Equal(t, receipt.Answer{Key: p.Key, Attempt: 1, Work: receipt.Perform, Lost: "worker w-1 has not renewed its lease"}, a)
		require.GreaterOrEqual(t, time.Since(began), host.DefaultLease)
		require.LessOrEqual(t, time.Since(began), host.DefaultLease*4/3)
		require.ErrorIs(t, owner.Renew("w-1", p.Key, 1, p.Nonce), host.ErrNotHeld)
		start(owner, p)
		require.Empty(t, acquire(t, owner, "w-2", 1), "nobody can tell what it did")
		none(t, owner)

		require.ErrorIs(t, owner.Commit("w-2", fromElsewhere(t, p), 0), host.ErrNotHeld, "it was never w-2's")
		require.NoError(t, owner.Commit("w-1", fromElsewhere(t, p), 0))
		require.Equal(t, data(t, `"done"`), decoded(t, next(t, owner)).Payload, "the late result is not thrown away")
		require.NoError(t, owner.Commit("w-1", fromElsewhere(t, p), 0))
		none(t, owner)
	})
}

func TestALeaseIsKeptByRenewingUntilItsWorkerMustHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner, p := leased(t)
		end := 30*time.Second + 2*host.DefaultLease
		for began := time.Now(); time.Since(began) <= end; <-time.After(host.DefaultLease / 2) {
			require.NoError(t, owner.Renew("w-1", p.Key, 1, p.Nonce))
			require.ErrorIs(t, owner.Renew("w-2", p.Key, 1, p.Nonce), host.ErrNotHeld)
			require.ErrorIs(t, owner.Renew("w-1", p.Key, 2, p.Nonce), host.ErrNotHeld)
			require.ErrorIs(t, owner.Renew("w-1", p.Key, 1, receipt.Nonce{9}), host.ErrNotHeld)
			none(t, owner)
		}
		require.ErrorIs(t, owner.Renew("w-1", p.Key, 1, p.Nonce), host.ErrNotHeld)
		require.NotEmpty(t, next(t, owner).Lost)
	})
}

func TestARenewedLeaseDoesNotProlongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newOwner(t, storeAt(t)).open(t)
		start(owner, nth(t, 1), nth(t, 2))
		acquire(t, owner, "w-1", 2)
		<-time.After(host.DefaultLease / 2)
		require.NoError(t, owner.Renew("w-1", nth(t, 2).Key, 1, nth(t, 2).Nonce))
		require.Equal(t, nth(t, 1).Key, next(t, owner).Key)
		none(t, owner)
	})
}

func TestAWorkerThatDiedBeforeItsCommitCommitsWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := storeAt(t)
		owner := newOwner(t, storeAt(t)).open(t)
		start(owner, nth(t, 1), nth(t, 2))
		s := newWorker(t, path, 1, func(context.Context, host.Call) (host.Result, error) {
			<-time.After(time.Second)
			return host.Result{Status: receipt.StatusOK}, nil
		})
		s.workers = 1
		own, err := s.new(t)
		require.NoError(t, err)
		answers := performHere(t, own, acquire(t, owner, "w-1", 2))
		require.NoError(t, own.Close()) // it dies: nothing was committed

		own = newWorker(t, path, 2, func(_ context.Context, call host.Call) (host.Result, error) {
			require.Equal(t, nth(t, 3).Key, call.Permit.Key, "performed once")
			<-time.After(time.Second)
			return host.Result{Status: receipt.StatusOK}, nil
		}).open(t)
		stored := own.Stored()
		require.Equal(t, [][]byte{answers[0].Receipt, answers[1].Receipt}, stored, "the oldest first")
		deliver(t, owner, own, "w-1", stored[0])
		start(own, nth(t, 3)) // before the owner has the other
		next(t, own)
		require.Equal(t, stored[1], own.Stored()[0], "it is still there")
		deliver(t, owner, own, "w-1", own.Stored()[0])
		for _, a := range await(t, owner, 2) {
			require.Equal(t, receipt.StatusOK, decoded(t, a).Status)
		}
		require.Len(t, own.Stored(), 1)
	})
}

func TestAWorkerThatStopsGivesBackWhatItHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newOwner(t, storeAt(t)).open(t)
		start(owner, nth(t, 1), nth(t, 2))
		s := newWorker(t, storeAt(t), 1, func(ctx context.Context, _ host.Call) (host.Result, error) {
			<-ctx.Done()
			return host.Result{}, ctx.Err()
		})
		s.workers = 1
		own := s.open(t)
		for _, o := range acquire(t, owner, "w-1", 2) {
			start(own, o.Permit)
		}
		synctest.Wait()
		require.NoError(t, own.Close())
		stored := own.Stored()
		require.Len(t, stored, 1)
		require.NoError(t, owner.Commit("w-1", stored[0], 0))
		r := decoded(t, await(t, owner, 1)[0])
		require.Equal(t, nth(t, 2).Key, r.Key)
		require.Equal(t, receipt.StatusCancelled, r.Status)
		require.Zero(t, r.Cost)
	})
}

func TestWhatTheOutsideAsksAWorkerToWaitForTheOwnerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newOwner(t, storeAt(t)).open(t)
		own := newWorker(t, storeAt(t), 1, func(context.Context, host.Call) (host.Result, error) {
			return host.Result{Status: receipt.StatusError, Class: receipt.OutcomeRetryableFailure, RetryAfter: time.Minute}, nil
		}).open(t)
		p := nth(t, 1)
		require.Zero(t, own.RetryAfter(p.Key))
		start(owner, p)
		a := performHere(t, own, acquire(t, owner, "w-1", 1))[0]
		deliver(t, owner, own, "w-1", a.Receipt)
		require.Zero(t, own.RetryAfter(p.Key), "it is forgotten")
		next(t, owner)
		began := time.Now()
		owner.Start(task(receipt.Retry, p))
		require.True(t, next(t, owner).Due)
		require.Equal(t, time.Minute, time.Since(began))
	})
}

func TestWhatIsForgottenIsNobodysToPerform(t *testing.T) {
	owner := newOwner(t, storeAt(t)).open(t)
	start(owner, nth(t, 1), nth(t, 2))
	held := acquire(t, owner, "w-1", 1)[0].Permit
	owner.Start(task(receipt.Forget, nth(t, 1))) // someone else brought a receipt
	owner.Start(task(receipt.Forget, nth(t, 2)))
	require.Empty(t, acquire(t, owner, "w-1", 9))
	require.ErrorIs(t, owner.Renew("w-1", held.Key, held.Attempt, held.Nonce), host.ErrNotHeld)
	require.ErrorIs(t, owner.Commit("w-1", fromElsewhere(t, held), 0), host.ErrUnknownAttempt)
	none(t, owner)
}

func TestCloseWaitsForWorkersElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := storeAt(t)
		owner := newPatientOwner(t, path).open(t)
		start(owner, nth(t, 1), nth(t, 2), nth(t, 3))
		acquire(t, owner, "w-1", 2)
		waits := make(chan error)
		go func() {
			_, err := owner.Acquire(t.Context(), "w-2", []string{"other"}, 1)
			waits <- err
		}()
		synctest.Wait()
		took := closing(owner)
		require.ErrorIs(t, <-waits, host.ErrClosed)
		<-time.After(host.DefaultGrace / 2)
		require.NoError(t, owner.Renew("w-1", nth(t, 1).Key, 1, nth(t, 1).Nonce))
		require.NoError(t, owner.Commit("w-1", fromElsewhere(t, nth(t, 1)), 0))
		require.Equal(t, host.DefaultGrace, <-took, "and no longer")
		require.ErrorIs(t, owner.Renew("w-1", nth(t, 2).Key, 1, nth(t, 2).Nonce), host.ErrNotHeld)
		require.ErrorIs(t, owner.Commit("w-1", fromElsewhere(t, nth(t, 2)), 0), host.ErrClosed)
		require.ErrorIs(t, owner.Commit("w-1", fromElsewhere(t, nth(t, 2)), 0), host.ErrClosed)

		require.Equal(t, receipt.StatusOK, decoded(t, recovered(t, path, nth(t, 1))).Status)
		require.NotEmpty(t, recovered(t, path, nth(t, 2)).Lost)
		require.Equal(t, receipt.StatusCancelled, decoded(t, recovered(t, path, nth(t, 3))).Status, "nobody had it")
	})
}

func TestCloseWaitsForNobodyWhereNothingIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := newPatientOwner(t, storeAt(t)).open(t)
		start(owner, nth(t, 1), nth(t, 2))
		acquire(t, owner, "w-1", 2)
		require.NoError(t, owner.Commit("w-1", fromElsewhere(t, nth(t, 1)), 0))
		<-time.After(2 * host.DefaultLease) // the other is lost
		require.Zero(t, <-closing(owner))
	})
}
