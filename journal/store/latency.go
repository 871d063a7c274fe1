package store

import (
	"sync/atomic"
	"time"
)

// latencyBuckets is how many bounds LatencyBound has.
const latencyBuckets = 16

// LatencyBound returns the greatest latency that counts in a bucket: 125 µs, and
// twice that in each that follows.
func LatencyBound(bucket int) time.Duration { return 125 * time.Microsecond << bucket }

// Latency counts how long syncs took.
type Latency struct {
	Buckets [latencyBuckets]uint64 // no longer than LatencyBound, and longer than that of the bucket before
	Count   uint64                 // also those that were longer than any bound
	Sum     time.Duration
}

// latency is a Latency that is being counted.
type latency struct {
	buckets    [latencyBuckets]atomic.Uint64
	count, sum atomic.Uint64
}

func (l *latency) noteDuration(d time.Duration) {
	l.count.Add(1)
	l.sum.Add(uint64(d))
	for i := range l.buckets {
		if d <= LatencyBound(i) {
			l.buckets[i].Add(1)
			return
		}
	}
}

func (l *latency) readLatency() Latency {
	out := Latency{Sum: time.Duration(l.sum.Load())}
	for i := range l.buckets {
		out.Buckets[i] = l.buckets[i].Load()
	}
	out.Count = l.count.Load() // after them: it counts no fewer
	return out
}
