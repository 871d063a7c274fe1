package journal

import "time"

// latencyBuckets is how many bounds LatencyBound has.
const latencyBuckets = 18

// LatencyBound returns the greatest latency that counts in a bucket: 125 µs, and
// twice that in each that follows.
func LatencyBound(bucket int) time.Duration { return 125 * time.Microsecond << bucket }

// Latency counts how long something took.
type Latency struct {
	Buckets [latencyBuckets]uint64 // no longer than LatencyBound, and longer than that of the bucket before
	Count   uint64                 // also those that were longer than any bound
	Sum     time.Duration
}

// Note counts a duration.
func (l *Latency) Note(took time.Duration) {
	l.Count++
	l.Sum += took
	for i := range l.Buckets {
		if took <= LatencyBound(i) {
			l.Buckets[i]++
			return
		}
	}
}

// UpTo returns how many took no longer than each bound, by the bound's seconds.
func (l *Latency) UpTo() map[float64]uint64 {
	out, sum := make(map[float64]uint64), uint64(0)
	for i, n := range l.Buckets {
		sum += n
		out[LatencyBound(i).Seconds()] = sum
	}
	return out
}
