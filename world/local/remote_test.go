package local_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// elsewhere are the options of a world whose effects are performed elsewhere.
func elsewhere(p *probes) local.Options {
	opts := p.options("probe")
	opts.Remote, opts.Grace = true, time.Millisecond
	return opts
}

// permitted runs a world until a worker has acquired an attempt.
func permitted(t *testing.T, w *local.World) (receipt.Permit, journal.Hash) {
	t.Helper()
	for {
		p, err := w.Next(t.Context())
		require.NoError(t, err)
		if p == world.Waiting {
			break
		}
	}
	require.NoError(t, w.Sync())
	offers, rules, err := w.AcquireEffects(t.Context(), "hand", nil, 1)
	require.NoError(t, err)
	return offers[0].Permit, rules
}

// made is a receipt of a worker.
func made(t *testing.T, p receipt.Permit) []byte {
	t.Helper()
	r := receipt.New("changing", p, receipt.StatusOK, receipt.Data(canon.AppendText(nil, "made elsewhere")))
	keys, err := receipt.DecodeKeyring(ring(t, "changing", 9))
	require.NoError(t, err)
	data, err := keys.Sign(&r)
	require.NoError(t, err)
	return data
}

func TestAWorldThatPerformsItsEffectsHandsOutNone(t *testing.T) {
	p := newProbes()
	w := openWith(t, changing(t, p), p.options("probe"))
	_, _, err := w.AcquireEffects(t.Context(), "hand", nil, 1)
	require.ErrorIs(t, err, local.ErrNotRemote)
	require.NoError(t, w.Close())
	_, _, err = w.AcquireEffects(t.Context(), "hand", nil, 1)
	require.ErrorIs(t, err, local.ErrNotRemote)
}

func TestWhatAWorkerCommitsIsTheWorldsAnswer(t *testing.T) {
	p := newProbes()
	w := openWith(t, changing(t, p), elsewhere(p))
	ask(t, w, "x", "tool.a", 1)
	permit, rules := permitted(t, w)
	require.Equal(t, w.Status().Manifest, rules)
	_, is := w.InForce()
	require.Equal(t, rules, is)
	require.NoError(t, w.RenewEffect("hand", permit.Key, permit.Attempt, permit.Nonce))
	require.ErrorIs(t, w.RenewEffect("other", permit.Key, permit.Attempt, permit.Nonce), host.ErrNotHeld)
	require.NoError(t, w.CommitEffect("hand", made(t, permit), 0))
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, []any{"made elsewhere"}, heard(t, w, "x"))
	require.ErrorIs(t, w.CommitEffect("hand", made(t, permit), 0), receipt.ErrDuplicate)
	require.Empty(t, p.performed)
	requireSound(t, w)
	require.NoError(t, w.Close())
}

// TestAResultIsTakenByTheNextProcess: durable before CommitEffect returns.
func TestAResultIsTakenByTheNextProcess(t *testing.T) {
	p := newProbes()
	dir := changing(t, p)
	w := openWith(t, dir, elsewhere(p))
	ask(t, w, "x", "tool.a", 1)
	permit, _ := permitted(t, w)
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.CommitEffect("hand", made(t, permit), 0), host.ErrClosed)

	w = openWith(t, dir, elsewhere(p))
	if !testlog.On() { // there it is the worker's still, by its lease
		require.NoError(t, w.Run(t.Context()))
		require.Equal(t, 1, w.Status().Intents[receipt.StateInDoubt])
	}
	require.NoError(t, w.CommitEffect("hand", made(t, permit), 0))
	if testlog.On() {
		require.NoError(t, w.Run(t.Context()))
	}
	require.Equal(t, 1, w.Status().Intents[receipt.StateCommitted])
	require.Equal(t, w.Status().Head, w.Head(), "it is in the journal")
	require.NoError(t, w.Run(t.Context()))
	require.Equal(t, []any{"made elsewhere"}, heard(t, w, "x"))
	requireSound(t, w)
	require.NoError(t, w.Close())
}

// TestApplyLetsWorkersEnd: it waits until nothing is in flight, and a worker must be
// able to commit meanwhile.
func TestApplyLetsWorkersEnd(t *testing.T) {
	p := newProbes()
	w := openWith(t, changing(t, p), elsewhere(p))
	n := approve(t, w, performedBy(t, w, "probe", "second", "tool.a"))
	ask(t, w, "x", "tool.a", 1)
	permit, before := permitted(t, w)
	polled := make(chan journal.Hash, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, rules, err := w.AcquireEffects(ctx, "hand", nil, 1)
		if err == nil {
			polled <- rules
		}
		close(polled)
	}()
	applied := make(chan error, 1)
	go func() { applied <- worldtest.ErrorOf(w.Apply(t.Context(), n, "ann")) }()
	require.NoError(t, w.RenewEffect("hand", permit.Key, permit.Attempt, permit.Nonce))
	require.NoError(t, w.CommitEffect("hand", made(t, permit), 0))
	require.NoError(t, <-applied)
	ask(t, w, "x", "tool.a", 2)
	go func() { _ = w.Run(t.Context()) }()
	rules := <-polled
	require.NotEqual(t, before, rules, "whoever waited waits for the next host")
	require.Equal(t, w.Status().Manifest, rules)
}
