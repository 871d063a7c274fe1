package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/testrace"
)

func TestLatencyCountsEverySyncOnce(t *testing.T) {
	testrace.Here(t)
	var l latency
	longest := LatencyBound(latencyBuckets - 1)
	for _, d := range []time.Duration{0, LatencyBound(0), LatencyBound(0) + 1, longest, longest + 1} {
		l.noteDuration(d)
	}
	got := l.readLatency()
	want := Latency{Count: 5, Sum: 2*LatencyBound(0) + 1 + 2*longest + 1}
	want.Buckets[0], want.Buckets[1], want.Buckets[latencyBuckets-1] = 2, 1, 1
	require.Equal(t, want, got)
}
