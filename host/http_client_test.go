package host_test

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
)

// gatedReader goes on when its gate opens.
type gatedReader struct {
	gate    chan struct{}
	reached *atomic.Int64
}

func (r gatedReader) Read([]byte) (int, error) {
	r.reached.Add(1)
	<-r.gate
	return 0, io.EOF
}

// Ten thousand answers that come at once fill no memory: few of the long ones are read.
func TestLongAnswersAreReadInTurns(t *testing.T) {
	const turns, all = 64, 100
	r := gatedReader{make(chan struct{}), new(atomic.Int64)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, all)
	for range all {
		go func() {
			_, err := host.ReadAnswer(ctx, io.MultiReader(bytes.NewReader(make([]byte, 32<<10)), r), 1<<20)
			failed <- err
		}()
	}
	require.Eventually(t, func() bool { return r.reached.Load() == turns }, time.Minute, time.Millisecond)
	cancel()
	for range all - turns {
		require.ErrorIs(t, <-failed, context.Canceled)
	}
	close(r.gate)
	for range turns {
		require.NoError(t, <-failed)
	}
	for size, limit := range map[int]int64{0: 10, 10: 10, 11: 10, 32 << 10: 1 << 20, 32<<10 + 1: 32 << 10, 99 << 10: 1 << 20} {
		body, err := host.ReadAnswer(t.Context(), bytes.NewReader(make([]byte, size)), limit)
		require.NoError(t, err)
		require.Len(t, body, int(min(int64(size), limit+1)))
	}
}
