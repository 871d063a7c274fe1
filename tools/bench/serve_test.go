package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestManyClientsLoseAndDoubleNothing has clients submit over HTTP and in process,
// while the world is driven and followed. The benchmark itself holds cells, journal and
// stream to what was accepted.
func TestManyClientsLoseAndDoubleNothing(t *testing.T) {
	b := serveBench{clients: 16, events: 25, scope: scope{rounds: 1, dir: t.TempDir(), note: func(string, ...any) {}}}
	figures, err := b.measure(t.Context(), b.run)
	require.NoError(t, err)
	require.NotEmpty(t, figures)
}
