package host

import (
	"encoding/binary"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/worldkernel/worldkernel/receipt"
)

// Bounds of the wait before a next attempt.
const (
	maxBackoff    = 5 * time.Minute
	maxRetryAfter = time.Hour // the outside may ask for more, and does not get it
)

// backoffAfter returns how long to wait after an attempt has failed: initial,
// doubled with each attempt, and up to a quarter more, so that effects which
// failed together do not come back together. The same attempt always waits
// equally long.
func backoffAfter(initial time.Duration, key receipt.Key, attempt uint64) time.Duration {
	b := backoff.ExponentialBackOff{InitialInterval: initial, Multiplier: 2, MaxInterval: maxBackoff * 4 / 5}
	wait := min(b.NextBackOff(), b.MaxInterval)
	for range min(max(attempt, 1), 64) - 1 { // 64 times doubled is more than any limit
		wait = b.NextBackOff()
	}
	seed := binary.BigEndian.Uint64(key.Hash[:8]) ^ attempt*0x9e3779b97f4a7c15
	return wait + time.Duration(seed>>11%1024)*(wait/4)/1024
}
