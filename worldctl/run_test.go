package worldctl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

// TestProgressNamesTheEffectsUnderWay: the oldest, so many that a line holds them, and
// spelled out, as a terminal would act on what a cell's key holds.
func TestProgressNamesTheEffectsUnderWay(t *testing.T) {
	flight := func(cells ...string) (out []receipt.Permit) {
		for _, cell := range cells {
			out = append(out, receipt.Permit{Intent: receipt.Intent{Kind: "http.get", Cell: cell}})
		}
		return out
	}
	require.Equal(t, "ticks", underWay(nil))
	require.Equal(t, "ticks; under way: http.get of agent/a", underWay(flight("agent/a")))
	require.Equal(t, "ticks; under way: http.get of agent/a, http.get of agent/b", underWay(flight("agent/a", "agent/b")))
	require.Equal(t, "ticks; under way: http.get of agent/a, http.get of agent/b and 2 more", underWay(flight("agent/a", "agent/b", "agent/c", "agent/d")))
	hostile := underWay(flight("agent/\x1b[2J\n" + strings.Repeat("x", 300)))
	require.NotContains(t, hostile, "\x1b")
	require.NotContains(t, hostile, "\n")
	require.Less(t, len(hostile), 200)
}
