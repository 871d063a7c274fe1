//go:build !race

package store

import "testing"

// everyNth crash or fault is tried: all.
const everyNth = 1

func slowUnderRace(*testing.T) {}
