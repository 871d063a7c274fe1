package fault

import (
	"math/rand/v2"
	"os"
	"testing"
)

// Stride returns how far apart the places are at which a test strikes: n, and 1 where NIGHTLY is set,
// as make nightly does. n is a prime, so that the places of one kind do not fall together.
func Stride(n int64) int64 {
	if os.Getenv("NIGHTLY") != "" {
		return 1
	}
	return n
}

// From returns one of the first of n places, for a test that strikes at each n-th from there on: over
// many runs it strikes at all. It says which to who reads why the test failed.
func From(t testing.TB, n int64) int64 {
	t.Helper()
	first := rand.Int64N(n)
	t.Logf("it strikes at every %d. place from place %d on", n, first)
	return first
}
