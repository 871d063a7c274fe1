package local_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
)

// killed is a log whose owner is killed before it has forgotten the results that the journal has.
type killed struct {
	journal.Log
	host.Attempts
}

func (k killed) ChangeAttempts(ctx context.Context, c *receipt.AttemptChanges) (receipt.AttemptsChanged, error) {
	c.Forget = nil
	return k.Attempts.ChangeAttempts(ctx, c)
}

// TestResultThatWasRedactedIsNotKeptForTheJournal: the process that performed an effect was killed
// when the journal had the result, and its own store had it still.
func TestResultThatWasRedactedIsNotKeptForTheJournal(t *testing.T) {
	what := strings.Repeat("t", journal.MaxInlineBytes) + "ea"
	redact := func(w *local.World, opts local.Options) {
		record := journal.Seq(0)
		for s, err := range w.Scan(0) {
			require.NoError(t, err)
			if s.Record.Kind == journal.KindFinished {
				record = s.ID
			}
		}
		require.NoError(t, w.Close())
		_, err := local.Redact(t.Context(), w.Dir(), opts, local.Payload{Record: record}, "asked for", "ada")
		require.NoError(t, err)
	}
	t.Run("in a directory", func(t *testing.T) {
		testlog.Skip(t, "results are in its tables, and in no file")
		p := new(till)
		w := paying(t, p)
		pay(t, w, "ada", what)
		require.NoError(t, w.Run(t.Context()))
		name := filepath.Join(w.Dir(), ".world", "effects")
		left, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Contains(t, string(left), what)
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile(name, left, 0o600))
		redact(openPaying(t, w.Dir(), p.options()), p.options())
		now, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotContains(t, string(now), what)
	})
	t.Run("in a log", func(t *testing.T) {
		p, server := new(till), new(logtest.Server)
		w := shopInALog(t, p, server, make(chan<- struct{}, 8))
		require.NoError(t, w.Close())
		opts := p.options()
		opts.Log = func([]byte) (journal.Log, error) {
			log := server.Log()
			return killed{log, log.(host.Attempts)}, nil
		}
		w = openPaying(t, w.Dir(), opts)
		pay(t, w, "ada", what)
		require.NoError(t, w.Run(t.Context()))
		require.NoError(t, w.Close())
		require.Contains(t, keptIn(t, server), what)
		opts.Log = func([]byte) (journal.Log, error) { return server.Log(), nil }
		redact(openPaying(t, w.Dir(), opts), opts)
		require.NotContains(t, keptIn(t, server), what)
	})
}

// keptIn are the results that a log keeps.
func keptIn(t *testing.T, server *logtest.Server) (all string) {
	t.Helper()
	log := server.Log()
	_, err := log.Own(t.Context())
	require.NoError(t, err)
	left, err := log.(host.Attempts).KeptAttempts(t.Context())
	require.NoError(t, err)
	for i := range left {
		all += string(left[i].Receipt)
	}
	return all
}
