//go:build race

package store

import "testing"

// everyNth crash or fault is tried. The race detector makes the store many times
// slower and finds no more of them; make test tries all without it.
const everyNth = 40

func slowUnderRace(t *testing.T) {
	t.Helper()
	t.Skip("make test runs it without the race detector")
}
