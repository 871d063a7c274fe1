// Package testrace lets tests do less under the race detector, with which they take several times as long.
package testrace

import "os"

// Cases returns how many of n random cases a test tries: a quarter under the race detector, unless
// NIGHTLY is set. A race shows in any case that reaches it; all else is looked for without the detector.
func Cases(n int) int {
	if On && os.Getenv("NIGHTLY") == "" {
		return (n + 3) / 4
	}
	return n
}
