package worker_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/worker"
	"github.com/worldkernel/worldkernel/world/local"
)

// lines passes on what is written, a line at a time.
type lines chan []byte

func (l lines) Write(line []byte) (int, error) {
	l <- bytes.Clone(line)
	return len(line), nil
}

func TestWorkerThatIsToldNothingTrustsNobody(t *testing.T) {
	s, o := serve(t, local.Options{}), newOutside()
	said := make(lines, 100)
	stop := s.works(t.TempDir(), o, func(cfg *worker.Config) {
		cfg.Trust, cfg.Log = nil, slog.New(slog.NewTextHandler(said, nil))
	})
	s.want(0, 3)
	for line := []byte{}; !bytes.Contains(line, []byte("it is not trusted")); line = <-said {
		t.Logf("%s", line)
	}
	require.NoError(t, stop())
	require.Zero(t, o.total(t), "its effects need a secret")
	require.Empty(t, o.secret)
	require.Zero(t, s.Status().Intents[receipt.StateCommitted])

	stop = s.works(t.TempDir(), o)
	s.until(receipt.StateCommitted, 3)
	require.NoError(t, stop())
}
