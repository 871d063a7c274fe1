package fault

import "os"

// Stride returns how far apart the places are at which a test strikes: n, and 1 where NIGHTLY is set,
// as make nightly does. n is a prime, so that the places of one kind do not fall together.
func Stride(n int64) int64 {
	if os.Getenv("NIGHTLY") != "" {
		return 1
	}
	return n
}
