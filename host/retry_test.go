package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

func TestBackoffDoublesWithinItsBounds(t *testing.T) {
	waits := make(map[time.Duration]bool)
	for n := range byte(100) {
		key := receipt.Key{Hash: canon.Sum([]byte{n})}
		base := time.Second
		for attempt := uint64(1); attempt <= 20; attempt++ {
			wait := backoffAfter(time.Second, key, attempt)
			require.Equal(t, wait, backoffAfter(time.Second, key, attempt), "the same attempt always waits equally long")
			require.GreaterOrEqual(t, wait, base, "attempt %d", attempt)
			require.LessOrEqual(t, wait, base+base/4, "attempt %d", attempt)
			require.LessOrEqual(t, wait, maxBackoff)
			base = min(2*base, maxBackoff*4/5)
		}
		waits[backoffAfter(time.Second, key, 1)] = true
	}
	require.Greater(t, len(waits), 50, "keys do not come back together")
}

func TestBackoffOfOddSettings(t *testing.T) {
	require.Zero(t, backoffAfter(0, receipt.Key{}, 3))
	require.LessOrEqual(t, backoffAfter(time.Hour, receipt.Key{}, 1), maxBackoff)
	require.LessOrEqual(t, backoffAfter(time.Second, receipt.Key{}, 1<<63), maxBackoff)
	require.GreaterOrEqual(t, backoffAfter(time.Second, receipt.Key{}, 0), time.Second)
}
