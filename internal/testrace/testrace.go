// Package testrace has the race detector look on where it can find something. With it tests take
// several times as long: those that do things side by side run under it as well (tools/raced).
package testrace

import (
	"os"
	"testing"
)

// Here marks a test for the race detector: its code runs side by side, but has no go statement.
func Here(testing.TB) {}

// Also is Here for a test that does less under the race detector than without: it runs without it as well.
func Also(testing.TB) {}

// Cases returns how many of n random cases a test tries: a quarter under the race detector, unless
// NIGHTLY is set. A race shows in any case that reaches it; all else is looked for without the detector.
func Cases(n int) int {
	if On && os.Getenv("NIGHTLY") == "" {
		return (n + 3) / 4
	}
	return n
}
