// Package testrace has the race detector look on where it can find something. With it tests take
// several times as long: those that do things side by side run under it as well (tools/raced).
package testrace

import "testing"

// Here says that a test does things side by side, where its code does not show it: it starts no
// goroutine itself.
func Here(testing.TB) {}
