package journal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What took longer than any bound is counted, and in no bucket.
func TestLatencyCountsEachOnce(t *testing.T) {
	var l Latency
	longest := LatencyBound(latencyBuckets - 1)
	for _, d := range []time.Duration{0, LatencyBound(0), LatencyBound(0) + 1, longest, longest + 1} {
		l.Note(d)
	}
	want := Latency{Count: 5, Sum: 2*LatencyBound(0) + 1 + 2*longest + 1}
	want.Buckets[0], want.Buckets[1], want.Buckets[latencyBuckets-1] = 2, 1, 1
	require.Equal(t, want, l)
	all := l.UpTo()
	require.Len(t, all, latencyBuckets)
	require.EqualValues(t, 2, all[LatencyBound(0).Seconds()])
	require.EqualValues(t, 3, all[LatencyBound(1).Seconds()])
	require.EqualValues(t, 4, all[longest.Seconds()], "one took longer")
}
