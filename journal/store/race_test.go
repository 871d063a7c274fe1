//go:build race

package store

import (
	"flag"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// everyNth crash, fault or byte is tried. The race detector makes the store many
// times slower and finds no more of them; make test tries all without it.
const everyNth = 40

func slowUnderRace(t *testing.T) {
	t.Helper()
	t.Skip("make test runs it without the race detector")
}

// checkInTurn holds a property of what one goroutine asks a store, one thing after
// the other, to a tenth of the draws.
func checkInTurn(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	all := checks.Value.String()
	n, err := strconv.Atoi(all)
	require.NoError(t, err)
	require.NoError(t, checks.Value.Set(strconv.Itoa(max(1, n/10))))
	defer func() { require.NoError(t, checks.Value.Set(all)) }()
	rapid.Check(t, property)
}
