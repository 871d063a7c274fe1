//go:build !race

package store

import (
	"testing"

	"pgregory.net/rapid"
)

// everyNth crash, fault or byte is tried: all.
const everyNth = 1

func slowUnderRace(*testing.T) {}

func checkInTurn(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	rapid.Check(t, property)
}
