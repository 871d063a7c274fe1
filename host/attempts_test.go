package host_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// table is the attempts of one owner of a world, and what a test does to them.
type table struct {
	host.Attempts
	before, after  func(*receipt.AttemptChanges) // a change; nil: nothing
	refuses, loses error                         // with which changes fail that are not made, or are
	calls          atomic.Int64
}

func (x *table) ChangeAttempts(ctx context.Context, c *receipt.AttemptChanges) (receipt.AttemptsChanged, error) {
	x.calls.Add(1)
	if x.before != nil {
		x.before(c)
	}
	if x.refuses != nil {
		return receipt.AttemptsChanged{}, x.refuses
	}
	begun, err := x.Attempts.ChangeAttempts(ctx, c)
	if err == nil && x.after != nil {
		x.after(c)
	}
	return begun, errors.Join(err, x.loses)
}

// own takes the world over.
func own(t testing.TB, s *logtest.Server) *table {
	t.Helper()
	return ownLog(t, s.Log())
}

func ownLog(t testing.TB, l journal.Log) *table {
	t.Helper()
	_, err := l.Own(context.Background())
	require.NoError(t, err)
	a, is := l.(host.Attempts)
	require.True(t, is)
	return &table{Attempts: a}
}

// newShared returns a setup whose attempts are in a table.
func newShared(a host.Attempts, o outside) *setup {
	s := newLive("", o)
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Attempts = a
	}
	return s
}

// doomed is a host whose end nobody looks at: its world is another's.
func (s *setup) doomed(t testing.TB) *host.Host {
	t.Helper()
	h, err := s.new(t)
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// kept returns what is there of an attempt; nil: nothing.
func kept(t testing.TB, a host.Attempts, p receipt.Permit) *receipt.KeptAttempt {
	t.Helper()
	all, err := a.KeptAttempts(t.Context())
	require.NoError(t, err)
	at := slices.IndexFunc(all, func(k receipt.KeptAttempt) bool { return k.Key == p.Key && k.Attempt == p.Attempt })
	if at < 0 {
		return nil
	}
	return &all[at]
}

func recover1(t testing.TB, h *host.Host, p receipt.Permit) receipt.Answer {
	t.Helper()
	h.Start(task(receipt.Recover, p))
	answers, err := h.Answers()
	require.NoError(t, err)
	require.Len(t, answers, 1)
	return answers[0]
}

func TestAttemptIsBegunBeforeItIsPerformedAndStoredBeforeItIsTold(t *testing.T) {
	server := new(logtest.Server)
	a := own(t, server)
	p := nth(t, 1)
	var h *host.Host
	a.before = func(c *receipt.AttemptChanges) {
		if ends(c) {
			none(t, h)
		}
	}
	h = newShared(a, func(_ context.Context, c host.Call) (host.Result, error) {
		k := kept(t, a, c.Permit)
		require.NotNil(t, k, "begun")
		require.Nil(t, k.Receipt)
		return host.Result{Status: receipt.StatusOK}, nil
	}).open(t)
	require.True(t, recover1(t, h, p).Unbegun)
	start(h, p)
	got := next(t, h)
	require.Equal(t, got.Receipt, kept(t, a, p).Receipt)

	after := newShared(own(t, server), nil).open(t)
	require.Equal(t, got.Receipt, recover1(t, after, p).Receipt, "the next owner has it")
	require.True(t, recover1(t, after, nth(t, 2)).Unbegun)
	after.Start(task(receipt.Forget, p))
	require.NoError(t, after.Close())
	require.Nil(t, kept(t, own(t, server), p))
}

func TestBeginsThatWaitGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := own(t, new(logtest.Server))
		goOn, most := make(chan struct{}), 0
		a.before = func(c *receipt.AttemptChanges) {
			if a.calls.Load() == 1 {
				<-goOn
			}
			most = max(most, len(c.Begin))
		}
		h := newShared(a, ok).open(t)
		const more = 40
		for n := range 1 + more {
			start(h, nth(t, n))
			synctest.Wait()
		}
		close(goOn)
		await(t, h, 1+more)
		require.Equal(t, more, most)
	})
}

// TestNobodyPerformsWhatAnotherHostHasBegun: the same owner may have two hosts, one after
// the other.
func TestNobodyPerformsWhatAnotherHostHasBegun(t *testing.T) {
	a := own(t, new(logtest.Server))
	began := make(chan struct{})
	one := newShared(a, func(ctx context.Context, _ host.Call) (host.Result, error) {
		close(began)
		<-ctx.Done()
		return host.Result{}, ctx.Err()
	}).open(t)
	start(one, nth(t, 1))
	<-began
	two := newShared(a, func(context.Context, host.Call) (host.Result, error) {
		t.Error("performed")
		return host.Result{}, nil
	}).open(t)
	start(two, nth(t, 1))
	require.Contains(t, next(t, two).Lost, "begun")
	require.NotEmpty(t, recover1(t, two, nth(t, 1)).Lost)
}

func TestWhatTheTableRefusesIsNotPerformed(t *testing.T) {
	broken := errors.New("the server is on fire")
	for name, fails := range map[string]func(*table){
		"begin":          func(a *table) { a.refuses = broken },
		"begin, unknown": func(a *table) { a.loses = broken },
	} {
		t.Run(name, func(t *testing.T) {
			a := own(t, new(logtest.Server))
			fails(a)
			h := newShared(a, func(context.Context, host.Call) (host.Result, error) {
				t.Error("performed")
				return host.Result{}, nil
			}).doomed(t)
			start(h, nth(t, 1), nth(t, 2))
			require.ErrorIs(t, h.Wait(t.Context()), broken)
			_, err := h.Answers()
			require.ErrorIs(t, err, broken)
			require.ErrorIs(t, h.Close(), broken)
		})
	}
}

func TestResultThatIsNotStoredIsNotTold(t *testing.T) {
	server := new(logtest.Server)
	a := own(t, server)
	h := newShared(a, func(context.Context, host.Call) (host.Result, error) {
		own(t, server)
		return host.Result{Status: receipt.StatusOK}, nil
	}).doomed(t)
	start(h, nth(t, 1))
	require.ErrorIs(t, h.Wait(t.Context()), journal.ErrFenced)
	_, err := h.Answers()
	require.ErrorIs(t, err, journal.ErrFenced)
	require.NotEmpty(t, recover1(t, newShared(own(t, server), nil).open(t), nth(t, 1)).Lost)
}

// TestWhoWasStoppedAfterItsBeginPerformsNothing: the answer came, and nobody was there to
// hear it until the world was another's.
func TestWhoWasStoppedAfterItsBeginPerformsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &logtest.Server{Lease: host.DefaultLease / 10}
		a := own(t, server)
		a.after = func(*receipt.AttemptChanges) {
			a.after = nil
			own(t, server)
			time.Sleep(server.Lease / 2)
		}
		h := newShared(a, func(context.Context, host.Call) (host.Result, error) {
			t.Error("performed")
			return host.Result{}, nil
		}).doomed(t)
		start(h, nth(t, 1))
		require.ErrorIs(t, h.Wait(t.Context()), journal.ErrFenced)
		synctest.Wait()
	})
}

// TestWhatWasLongOnItsWayIsBegunAgain is the same without a takeover.
func TestWhatWasLongOnItsWayIsBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &logtest.Server{Lease: host.DefaultLease / 10}
		a := own(t, server)
		a.after = func(*receipt.AttemptChanges) {
			if a.calls.Load() < 3 {
				time.Sleep(server.Lease / 2)
			}
		}
		h := newShared(a, ok).open(t)
		start(h, nth(t, 1))
		require.Equal(t, receipt.StatusOK, decoded(t, next(t, h)).Status)
		require.Equal(t, int64(4), a.calls.Load(), "three begins and a result")
	})
}

// TestWhatWasGivenUpWhileItWasBegunIsNotPerformed: the world was told that it is lost.
func TestWhatWasGivenUpWhileItWasBegunIsNotPerformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := own(t, new(logtest.Server))
		a.before = func(c *receipt.AttemptChanges) {
			if len(c.Begin) > 0 {
				time.Sleep(2 * time.Minute)
			}
		}
		h := newShared(a, func(context.Context, host.Call) (host.Result, error) {
			t.Error("performed")
			return host.Result{}, nil
		}).open(t)
		start(h, nth(t, 1))
		require.NotEmpty(t, next(t, h).Lost)
		r := decoded(t, next(t, h))
		require.True(t, r.GivenBack(), "and then that nothing was done")
	})
}

// newSharedOwner is newShared where workers elsewhere perform.
func newSharedOwner(a host.Attempts) *setup {
	s := newShared(a, nil)
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Remote, cfg.Grace = true, 1
	}
	return s
}

func TestWorkerGoesOnOverATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(logtest.Server)
		p := nth(t, 1)
		one := newSharedOwner(own(t, server)).doomed(t)
		start(one, p)
		require.Len(t, acquire(t, one, "w-1", 1), 1)
		time.Sleep(host.DefaultLease * 9 / 10)
		require.NoError(t, one.Renew("w-1", p.Key, 1, p.Nonce))
		time.Sleep(host.DefaultLease / 3)

		two := newSharedOwner(own(t, server)).open(t)
		two.Start(task(receipt.Recover, p))
		none(t, two)
		require.Empty(t, acquire(t, two, "w-2", 9), "it is the other worker's")
		require.ErrorIs(t, two.Commit("w-2", fromElsewhere(t, p), 0), host.ErrNotHeld)
		for range 5 {
			time.Sleep(host.DefaultLease * 9 / 10)
			require.NoError(t, two.Renew("w-1", p.Key, 1, p.Nonce))
		}
		require.NoError(t, two.Commit("w-1", fromElsewhere(t, p), 0))
		require.Equal(t, receipt.StatusOK, decoded(t, next(t, two)).Status)
		require.ErrorIs(t, one.Commit("w-1", fromElsewhere(t, p), 0), journal.ErrFenced)
		require.ErrorIs(t, one.Renew("w-1", p.Key, 1, p.Nonce), journal.ErrFenced)
	})
}

// TestAWorkerRenewsUntilItsHostIsClosed: a host that begins nothing more renews and takes results for
// as long as what comes before its end takes, and leaves the rest to the next one, which adopts it.
func TestAWorkerRenewsUntilItsHostIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(logtest.Server)
		p, q := nth(t, 1), nth(t, 2)
		a := own(t, server)
		one := newSharedOwner(a).open(t)
		start(one, p, q)
		require.Len(t, acquire(t, one, "w-1", 2), 2)
		require.NoError(t, one.Shut())
		for range 5 {
			time.Sleep(host.DefaultLease * 9 / 10)
			require.NoError(t, one.Renew("w-1", p.Key, 1, p.Nonce))
			require.NoError(t, one.Renew("w-1", q.Key, 1, q.Nonce))
		}
		synctest.Wait()
		require.NotEmpty(t, lives(t, a, p), "also in the table: this process may end at any time")
		require.NoError(t, one.Commit("w-1", fromElsewhere(t, q), 0))
		require.ErrorIs(t, one.Lose("w-1", p.Key, 1, p.Nonce, "?"), host.ErrClosed, "nobody would hear of it")
		require.NoError(t, one.Close())
		require.ErrorIs(t, one.Renew("w-1", p.Key, 1, p.Nonce), host.ErrClosed, "and not that it is not its own")
		require.ErrorIs(t, one.Commit("w-1", fromElsewhere(t, p), 0), host.ErrClosed)

		time.Sleep(host.DefaultLease * 3 / 2) // it is given up for two
		two := newSharedOwner(own(t, server)).open(t)
		two.Start(task(receipt.Recover, p))
		none(t, two)
		require.NoError(t, two.Renew("w-1", p.Key, 1, p.Nonce))
		require.Equal(t, receipt.StatusOK, decoded(t, recover1(t, two, q)).Status)
	})
}

// lives returns the worker that has an attempt in the table, and whose lease lives.
func lives(t *testing.T, a host.Attempts, p receipt.Permit) string {
	t.Helper()
	all, err := a.KeptAttempts(t.Context())
	require.NoError(t, err)
	for _, k := range all {
		if k.Key == p.Key && k.Lease > 0 {
			return k.Worker
		}
	}
	return ""
}

func TestAdoptedWorkerThatIsGoneLeavesItsAttemptInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(logtest.Server)
		p := nth(t, 1)
		one := newSharedOwner(own(t, server)).doomed(t)
		start(one, p)
		require.Len(t, acquire(t, one, "w-1", 1), 1)
		two := newSharedOwner(own(t, server)).doomed(t)
		two.Start(task(receipt.Recover, p))
		none(t, two)
		began := time.Now()
		require.Contains(t, next(t, two).Lost, "w-1")
		require.Less(t, time.Since(began), 3*host.DefaultLease)
		three := newSharedOwner(own(t, server)).open(t)
		require.Contains(t, recover1(t, three, p).Lost, "w-1", "its lease is over")
	})
}

// TestLeaseInTheTableOutlivesTheWorkers: nobody decides about an attempt while its worker
// believes that it has it.
func TestLeaseInTheTableOutlivesTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := own(t, new(logtest.Server))
		p := nth(t, 1)
		h := newSharedOwner(a).open(t)
		start(h, p)
		acquire(t, h, "w-1", 1)
		until := time.Now().Add(host.DefaultLease)
		for n := range 60 {
			time.Sleep(time.Duration(n%4) * host.DefaultLease / 10)
			if n%3 == 0 && h.Renew("w-1", p.Key, 1, p.Nonce) == nil {
				until = time.Now().Add(host.DefaultLease)
			}
			if time.Now().Before(until) {
				require.GreaterOrEqual(t, kept(t, a, p).Lease, time.Until(until))
			}
		}
	})
}

func TestOfferIsBegunBeforeItIsHandedOut(t *testing.T) {
	server := new(logtest.Server)
	one := own(t, server)
	h := newSharedOwner(one).doomed(t)
	start(h, nth(t, 1), nth(t, 2))
	require.Len(t, acquire(t, h, "w-1", 1), 1)
	k := kept(t, one, nth(t, 1))
	require.Equal(t, "w-1", k.Worker)
	require.Positive(t, k.Lease)
	require.Nil(t, kept(t, one, nth(t, 2)))
	own(t, server)
	_, err := h.Acquire(t.Context(), "w-1", nil, 1)
	require.ErrorIs(t, err, journal.ErrFenced)
}

// TestClosedHostLeavesInDoubtWhatWasBegun: and nothing else.
func TestClosedHostLeavesInDoubtWhatWasBegun(t *testing.T) {
	a := own(t, new(logtest.Server))
	began := make(chan struct{})
	s := newShared(a, func(ctx context.Context, _ host.Call) (host.Result, error) {
		close(began)
		<-ctx.Done()
		return host.Result{}, ctx.Err()
	})
	more := s.more
	s.more = func(cfg *host.Config) {
		more(cfg)
		cfg.Grace = 1
	}
	h := s.open(t)
	start(h, nth(t, 1))
	<-began
	require.NoError(t, h.Close())
	require.Equal(t, []receipt.Permit{nth(t, 1)}, h.Left([]receipt.Permit{nth(t, 1), nth(t, 2)}))
}

// TestForgottenAttemptsDoNotGather: one by one, and all of an earlier owner that nobody asks for.
func TestForgottenAttemptsDoNotGather(t *testing.T) {
	server := new(logtest.Server)
	a := own(t, server)
	h := newShared(a, ok).doomed(t)
	for n := range 300 {
		start(h, nth(t, n))
		next(t, h)
		if n >= 10 {
			h.Start(task(receipt.Forget, nth(t, n)))
		}
	}
	rows, err := a.KeptAttempts(t.Context())
	require.NoError(t, err)
	require.Less(t, len(rows), 10+5)
	b := own(t, server)
	h = newShared(b, ok).open(t)
	require.NotEmpty(t, recover1(t, h, nth(t, 3)).Receipt)
	start(h, nth(t, 1000))
	next(t, h)
	rows, err = b.KeptAttempts(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 2)
}

// TestAttemptIsInAGroupOnce: what is asked for twice is asked for in its order.
func TestAttemptIsInAGroupOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := own(t, new(logtest.Server))
		goOn := make(chan struct{})
		a.before = func(c *receipt.AttemptChanges) {
			if a.calls.Load() == 1 {
				<-goOn
			}
			for _, f := range c.Forget {
				require.False(t, slices.ContainsFunc(c.Begin, func(b receipt.KeptAttempt) bool { return b.Key == f.Key }))
			}
		}
		h := newShared(a, ok).open(t)
		start(h, nth(t, 1))
		synctest.Wait()
		start(h, nth(t, 2))
		synctest.Wait()
		h.Start(task(receipt.Forget, nth(t, 2))) // the journal has a result from elsewhere
		close(goOn)
		await(t, h, 2)
		require.NoError(t, h.Close())
	})
}

// TestAWorldWithoutLiveEffectsIsGivenUp where attempts would be in a table: there are none.
func TestAWorldWithoutLiveEffectsIsGivenUp(t *testing.T) {
	h, err := host.New(host.Config{
		World: "town", Manifest: &manifest.Manifest{}, Keys: worldtest.Keyring(t, "town"), Attempts: own(t, new(logtest.Server)),
	})
	require.NoError(t, err)
	require.NoError(t, h.Close())
}
