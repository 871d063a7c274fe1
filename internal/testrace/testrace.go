// Package testrace has the race detector look on where it can find something. With it tests take
// several times as long: those that do things side by side run under it as well (tools/raced).
package testrace

import (
	"os"
	"testing"
)

// Here says that a test does things side by side, where its code does not show it: it starts no
// goroutine itself.
func Here(testing.TB) {}

// Cases returns how many of n random cases a test tries: a quarter under the race detector, unless
// NIGHTLY is set. A race shows in any case that reaches it; all else is looked for without the detector.
func Cases(n int) int {
	if On && os.Getenv("NIGHTLY") == "" {
		return (n + 3) / 4
	}
	return n
}
