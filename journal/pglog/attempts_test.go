package pglog

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal/pglog/pgtest"
	"github.com/worldkernel/worldkernel/receipt"
)

// TestBeginsOverABadWire has answers lost, requests torn, delayed and doubled: who begins an
// attempt is told so all the same, and nobody else is.
func TestBeginsOverABadWire(t *testing.T) {
	server := pgtest.Start(t)
	direct := server.URL(t)
	require.NoError(t, Init(t.Context(), direct))
	var bad atomic.Bool
	var seed atomic.Uint64
	proxy := server.Proxy(t, func([]byte) pgtest.Fault {
		r := rand.New(rand.NewPCG(seed.Add(1), 3))
		if !bad.Load() || r.IntN(5) > 0 {
			return pgtest.None
		}
		return pgtest.Fault(1 + r.IntN(pgtest.Faults-1))
	})
	s := open(t, proxy.URL(direct), Options{Patience: time.Minute})
	require.NoError(t, s.Create(t.Context(), "w", testKey))
	w := s.World("w", Claim{Key: testKey})
	_, err := w.Own(t.Context())
	require.NoError(t, err)
	bad.Store(true)
	attempts := many(t, "WIRE_FAULTS", 150) / 2
	for n := range attempts {
		k := receipt.KeptAttempt{Key: receipt.Key{Hash: receipt.Hash{byte(n), byte(n >> 8)}}, Attempt: 1, Run: [16]byte{1}}
		begun, err := w.ChangeAttempts(t.Context(), &receipt.AttemptChanges{Begin: []receipt.KeptAttempt{k}})
		require.NoError(t, err)
		require.Equal(t, []bool{true}, begun.Begun)
		k.Run = [16]byte{2}
		begun, err = w.ChangeAttempts(t.Context(), &receipt.AttemptChanges{Begin: []receipt.KeptAttempt{k}})
		require.NoError(t, err)
		require.Equal(t, []bool{false}, begun.Begun)
	}
	bad.Store(false)
	kept, err := w.KeptAttempts(t.Context())
	require.NoError(t, err)
	require.Len(t, kept, attempts)
	for _, k := range kept {
		require.Equal(t, [16]byte{1}, k.Run)
	}
}

// TestAnOwnerIsToldItsOwnLease, as the database has it: that by which the world is taken over.
func TestAnOwnerIsToldItsOwnLease(t *testing.T) {
	url := newURL(t)
	for _, lease := range []time.Duration{time.Hour, 2 * time.Hour} {
		s := open(t, url, Options{Lease: lease, Node: lease.String()})
		require.NoError(t, s.Create(t.Context(), lease.String(), testKey))
		w := s.World(lease.String(), Claim{Key: testKey})
		_, err := w.Own(t.Context())
		require.NoError(t, err)
		k := receipt.KeptAttempt{Key: receipt.Key{Hash: receipt.Hash{1}}, Attempt: 1, Run: [16]byte{1}}
		begin := &receipt.AttemptChanges{Begin: []receipt.KeptAttempt{k}}
		is, err := w.ChangeAttempts(t.Context(), begin)
		require.NoError(t, err)
		require.LessOrEqual(t, is.Lease, lease)
		require.Greater(t, is.Lease, lease/2)
		kept, err := w.KeptAttempts(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, kept[0].Lease, is.Lease)
		require.Greater(t, kept[0].Lease, lease/2)

		run(t, url, "UPDATE worldkernel.node SET lease_until = now() - interval '1 s'")
		is, err = w.ChangeAttempts(t.Context(), begin)
		require.NoError(t, err)
		require.Equal(t, []bool{true}, is.Begun, "nobody has taken the world")
		require.Negative(t, is.Lease)
		run(t, url, "DELETE FROM worldkernel.node")
		is, err = w.ChangeAttempts(t.Context(), begin)
		require.NoError(t, err)
		require.Zero(t, is.Lease)
	}
}
