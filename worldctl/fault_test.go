package worldctl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHintsWorkAsTheyStand names the world in the command that a hint tells a person
// to type, for every verb that takes one.
func TestHintsWorkAsTheyStand(t *testing.T) {
	c := &cli{world: "town"}
	for _, verb := range newRootCommand(&cli{}).Commands() {
		want := "worldctl -w town " + verb.Name() + " x"
		if worldless(verb.Name()) {
			want = "worldctl " + verb.Name() + " x"
		}
		require.Equal(t, want, c.inWorld("worldctl "+verb.Name()+" x"))
	}
	require.Equal(t, "type worldctl -w town backup --help", c.inWorld("type worldctl backup --help"))
}
