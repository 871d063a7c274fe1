// Package testrace has the race detector look on where it can find something. With it tests take
// several times as long: of a package that calls Only, those run under it that say Here, and all
// of them without it.
package testrace

import "testing"

// Here says that a test does things side by side, which the race detector is to look on.
func Here(testing.TB) {}
