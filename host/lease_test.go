package host

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

func aClaim(n uint64) claim {
	c := claim{work: receipt.Perform}
	binary.BigEndian.PutUint64(c.key.Hash[:], n)
	return c
}

func TestOneOfTwoWorkersMayExecute(t *testing.T) {
	l, now := newLeases(time.Second), time.Unix(0, 0)
	for round := range uint64(10_000) {
		var got [2]receipt.Decision
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() { got[i] = l.acquire(aClaim(round), 1, new(job), now) })
		}
		all.Wait()
		require.ElementsMatch(t, []receipt.Decision{receipt.AllowExecute, receipt.WaitOtherWorker}, got[:])
	}
}

func TestAnAttemptIsAllowedOnce(t *testing.T) {
	l, c, now := newLeases(time.Second), aClaim(1), time.Unix(0, 0)
	first, second, third := new(job), &job{lost: true}, &job{effect: new(effect)}
	require.Equal(t, receipt.AllowExecute, l.acquire(c, 2, first, now))
	require.Equal(t, receipt.WaitOtherWorker, l.acquire(c, 2, second, now.Add(time.Hour)))
	require.Equal(t, receipt.Rejected, l.acquire(c, 1, second, now), "a stale attempt")
	require.True(t, l.release(c, first))
	require.False(t, l.release(c, first))
	require.Equal(t, receipt.Rejected, l.acquire(c, 2, second, now), "it was made")
	require.Equal(t, receipt.Rejected, l.acquire(c, 1, second, now))
	require.Equal(t, receipt.AllowExecute, l.acquire(c, 3, second, now))
	require.Equal(t, receipt.AllowExecute, l.acquire(c, 4, third, now), "the ledger has given up the one before")
	require.False(t, l.release(c, second))
	l.forget(c, 4)
	require.Equal(t, receipt.WaitOtherWorker, l.acquire(c, 4, first, now), "what is held is not forgotten")
	require.True(t, l.release(c, third))
	l.forget(c, 3)
	require.Equal(t, receipt.Rejected, l.acquire(c, 4, first, now))
	l.forget(c, 4)
	require.Empty(t, l.held)
	require.Zero(t, l.open)
}

func TestALeaseIsRenewedUntilItsDeadline(t *testing.T) {
	l, start := newLeases(10*time.Second), time.Unix(0, 0)
	slow := &job{deadline: start.Add(25 * time.Second)}
	quick := &job{deadline: start.Add(time.Hour)}
	require.Equal(t, receipt.AllowExecute, l.acquire(aClaim(1), 1, slow, start))
	require.Equal(t, receipt.AllowExecute, l.acquire(aClaim(2), 1, quick, start))
	for second := time.Duration(0); second < 34; second++ {
		now := start.Add(second * time.Second)
		l.renew(now)
		lost, others := l.expired(now)
		require.Empty(t, lost, "second %d", second)
		require.True(t, others)
	}
	end := start.Add(35 * time.Second)
	l.renew(end)
	lost, others := l.expired(end)
	require.Equal(t, []*job{slow}, lost)
	require.True(t, others)
	require.False(t, l.release(aClaim(1), slow), "it was taken away")
	require.Equal(t, receipt.Rejected, l.acquire(aClaim(1), 1, quick, end), "nobody can tell what it did")
	require.True(t, l.release(aClaim(2), quick))
	lost, others = l.expired(end.Add(time.Hour))
	require.Empty(t, lost)
	require.False(t, others)
}
