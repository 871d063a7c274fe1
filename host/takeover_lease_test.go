package host_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/receipt"
)

// apart is a lease by which worlds are taken over, another one of their hosts, and a begin whose answer
// comes late.
type apart struct {
	store, host, held time.Duration
	early             time.Duration // before the store's lease is over the world is taken, by who is told to
}

func eachApart(t *testing.T, each func(t *testing.T, x apart)) {
	t.Helper()
	for _, store := range []time.Duration{1, 2, 3, 10} {
		for _, own := range []time.Duration{1, 3, 10, 60} {
			for held := 500 * time.Millisecond; held <= 5*time.Second; held += 500 * time.Millisecond {
				for _, early := range []time.Duration{0, 4} {
					x := apart{store * time.Second, own * time.Second, held, early * store * time.Second / 5}
					t.Run(fmt.Sprintf("store %v host %v held %v early %v", x.store, x.host, x.held, x.early), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { each(t, x) })
					})
				}
			}
		}
	}
}

// TestWhoDecidesDecidesWhenNobodyPerformsAnyMore: an owner's begin is durable, and the answer comes late. The
// next owner, and who asks for its word, find that nothing has happened, and it is performed once more. By
// then the first one performs nothing, whatever the leases of hosts are.
func TestWhoDecidesDecidesWhenNobodyPerformsAnyMore(t *testing.T) {
	performed := 0 // by first owners
	eachApart(t, func(t *testing.T, x apart) {
		server := &logtest.Server{Lease: x.store}
		p := nth(t, 1)
		var made atomic.Int64
		begin := func(a host.Attempts) *host.Host {
			s := newShared(a, func(context.Context, host.Call) (host.Result, error) {
				made.Add(1)
				return host.Result{Status: receipt.StatusOK}, nil
			})
			more := s.more
			s.more = func(cfg *host.Config) {
				more(cfg)
				cfg.Lease = x.host
			}
			return s.doomed(t)
		}
		first := own(t, server)
		first.after = func(c *receipt.AttemptChanges) {
			if len(c.Begin) > 0 && first.calls.Load() == 1 {
				time.Sleep(x.held)
			}
		}
		start(begin(first), p)
		time.Sleep(x.store - x.early)

		second := begin(own(t, server))
		second.Start(task(receipt.Recover, p))
		got := next(t, second)
		require.NotEmpty(t, got.Lost+string(got.Receipt))
		seen := made.Load() // by who looks outside
		performed += int(seen)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, seen, made.Load(), "decided about, and performed after that")
	})
	require.NotZero(t, performed, "what is late by less is performed")
}

// TestAWorkerIsToldALeaseThatTheTableHas: an owner that was stopped, or whose table does not answer, promises
// a worker nothing that the next owner does not know.
func TestAWorkerIsToldALeaseThatTheTableHas(t *testing.T) {
	eachApart(t, func(t *testing.T, x apart) {
		server := &logtest.Server{Lease: x.store}
		p, a := nth(t, 1), own(t, server)
		s := newSharedOwner(a)
		more := s.more
		s.more = func(cfg *host.Config) {
			more(cfg)
			cfg.Lease = x.host
		}
		h := s.doomed(t)
		start(h, p)
		require.Len(t, acquire(t, h, "w-1", 1), 1)
		a.before = func(*receipt.AttemptChanges) { time.Sleep(x.held) } // each time
		for n := range 60 {
			time.Sleep(time.Duration(n%4) * x.host / 10)
			if h.Renew("w-1", p.Key, 1, p.Nonce) == nil {
				require.GreaterOrEqual(t, kept(t, a, p).Lease, x.host)
			}
		}
	})
}

// TestAnOwnerThatTheTableDoesNotAnswerRenewsNothing that its row does not: the next owner gives the attempt up
// when the lease in the table is over.
func TestAnOwnerThatTheTableDoesNotAnswerRenewsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &logtest.Server{Lease: time.Second}
		p, a, answers := nth(t, 1), own(t, server), make(chan struct{})
		one := newSharedOwner(a).doomed(t)
		start(one, p)
		require.Len(t, acquire(t, one, "w-1", 1), 1)
		a.before = func(*receipt.AttemptChanges) { <-answers }
		time.Sleep(host.DefaultLease * 9 / 10)
		require.NoError(t, one.Renew("w-1", p.Key, 1, p.Nonce), "the table has it for two leases")
		time.Sleep(host.DefaultLease * 9 / 10)
		renewed := make(chan error, 1)
		go func() { renewed <- one.Renew("w-1", p.Key, 1, p.Nonce) }()
		synctest.Wait()
		require.Empty(t, renewed, "nobody knows")

		two := newSharedOwner(own(t, server)).open(t)
		two.Start(task(receipt.Recover, p))
		require.Contains(t, next(t, two).Lost, "w-1")
		close(answers)
		require.ErrorIs(t, <-renewed, journal.ErrFenced)
	})
}
