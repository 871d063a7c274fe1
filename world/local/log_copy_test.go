package local_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// ending is a log that tells of results that are kept in it.
type ending struct {
	journal.Log
	host.Attempts

	ended chan<- struct{}
}

func (e ending) ChangeAttempts(ctx context.Context, c *receipt.AttemptChanges) (receipt.AttemptsChanged, error) {
	begun, err := e.Attempts.ChangeAttempts(ctx, c)
	if err == nil && len(c.End) > 0 {
		e.ended <- struct{}{}
	}
	return begun, err
}

// shopInALog makes a world whose payments go to a till, and opens it.
func shopInALog(t *testing.T, p *till, s *logtest.Server, ended chan<- struct{}) *local.World {
	t.Helper()
	opts := p.options()
	opts.Log = func([]byte) (journal.Log, error) {
		log := s.Log()
		return ending{log, log.(host.Attempts), ended}, nil
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		local.ManifestFile: worldtest.Caller("shop", "outside.pay: {adapter: till, on_in_doubt: ask}"), "caller.star": payer,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, local.Create(dir, local.CreateOptions{ID: "shop"}, opts))
	return openPaying(t, dir, opts)
}

// TestBackupOfAWorldInALogHasItsResults: what was performed when the journal does not have its
// result yet is neither in doubt in the backup nor performed again.
func TestBackupOfAWorldInALogHasItsResults(t *testing.T) {
	p, ended := new(till), make(chan struct{}, 8)
	w := shopInALog(t, p, new(logtest.Server), ended)
	pay(t, w, "ada", "tea")
	for len(ended) == 0 {
		_, err := w.Next(t.Context())
		require.NoError(t, err)
		if w.Status().Intents[receipt.StateInFlight] > 0 {
			break
		}
	}
	require.NoError(t, w.Sync())
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it was not performed")
	}
	require.Equal(t, 1, w.Status().Intents[receipt.StateInFlight], "the journal has no result")
	to := filepath.Join(t.TempDir(), "backup")
	_, err := w.Backup(to)
	require.NoError(t, err)
	require.NoError(t, w.Close())

	b := openPaying(t, to, p.options())
	require.NoError(t, b.Run(t.Context()))
	require.Equal(t, `["paid tea"]`, toldOf(t, b, "ada"))
	require.NoError(t, b.Close())
	require.Len(t, p.paid, 1)
}

// TestWhatIfOfAWorldInALog finds out what would have been, with a copy of the world beside the one
// that runs and with none.
func TestWhatIfOfAWorldInALog(t *testing.T) {
	for _, copied := range []string{"", "past"} {
		for _, forgotten = range []bool{false, true} {
			shared = new(logtest.Server)
			defer func() { shared, forgotten = nil, false }()
			dir := create(t)
			w := open(t, dir)
			wander(t, w, rand.New(rand.NewPCG(1, 1)), 8)
			end := w.Status()
			require.NoError(t, w.Close())
			w = open(t, dir)
			scratch := t.TempDir()
			q := local.WhatIf{At: func(*local.World) (journal.Seq, error) { return end.Head.ID / 2, nil }, Dir: filepath.Join(scratch, "fork"), Actor: "ada"}
			if copied != "" {
				q.Copy = filepath.Join(scratch, copied)
			}
			x, err := w.Suppose(t.Context(), q)
			require.NoError(t, err)
			if copied == "" {
				require.NoError(t, w.Close())
			}
			require.NoError(t, x.Run(t.Context(), inLog(local.Options{})))
			require.Empty(t, x.Unanswered)
			require.Positive(t, x.Answered)
			d := differs(t, x.World, x.Fork)
			require.True(t, d.Same(), "%+v", d)
			require.NoError(t, x.Close())
			if copied != "" {
				live(t, w) // it goes on
				require.NoError(t, w.Close())
			}
		}
	}
}

// TestRecordedForkOfAWorldInALog needs no log: it has its parent with it, and so has a backup of it.
func TestRecordedForkOfAWorldInALog(t *testing.T) {
	for _, kinds := range []manifest.Live{nil, {"outside.pay"}} {
		p, scratch := new(till), t.TempDir()
		w := shopInALog(t, p, new(logtest.Server), make(chan struct{}, 8))
		before := w.Status().Head.ID
		pay(t, w, "ada", "tea")
		require.NoError(t, w.Run(t.Context()))
		fork, backup := filepath.Join(scratch, "fork"), filepath.Join(scratch, "backup")
		_, err := w.Fork(t.Context(), fork, local.ForkOptions{ID: "fork", At: before, Effects: journal.ForkRecorded, Live: kinds})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		f := openPaying(t, fork, p.options())
		_, err = f.Backup(backup)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		for _, dir := range []string{fork, backup} {
			f = openPaying(t, dir, p.options())
			pay(t, f, "ada", "tea")
			require.NoError(t, f.Run(t.Context()))
			require.Equal(t, `["paid tea"]`, toldOf(t, f, "ada"))
			require.NoError(t, f.Close())
		}
		require.Len(t, p.paid, 1)
	}
}
