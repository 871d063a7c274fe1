package kit_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/reducer/kit"
)

// TestPlacesAroundAreThoseSoFarAway compares both kinds of neighbours with all places of
// the grid and how far they are.
func TestPlacesAroundAreThoseSoFarAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := kit.Grid{
			Width: rapid.IntRange(1, 9).Draw(t, "width"), Height: rapid.IntRange(1, 9).Draw(t, "height"),
			Torus: rapid.Bool().Draw(t, "torus"),
		}
		at := g.Place(rapid.IntRange(0, g.Width*g.Height-1).Draw(t, "at"))
		radius := rapid.IntRange(0, 10).Draw(t, "radius")
		var moore, neumann []kit.Place
		for i := range g.Width * g.Height {
			to := g.Place(i)
			require.Equal(t, i, g.Index(to))
			dx, dy := g.Offset(at, to)
			require.Equal(t, to, g.Move(at, dx, dy))
			dx, dy = max(dx, -dx), max(dy, -dy)
			if g.Torus {
				require.True(t, 2*dx <= g.Width && 2*dy <= g.Height, "the shortest way")
			}
			if to != at && dx <= radius && dy <= radius {
				moore = append(moore, to)
			}
			if to != at && dx+dy <= radius {
				neumann = append(neumann, to)
			}
		}
		require.ElementsMatch(t, moore, g.Moore(at, radius))
		require.ElementsMatch(t, neumann, g.VonNeumann(at, radius))
	})
}

func TestEdgesOfAGrid(t *testing.T) {
	board, torus := kit.Grid{Width: 4, Height: 3}, kit.Grid{Width: 4, Height: 3, Torus: true}
	corner := kit.Place{X: 0, Y: 2}
	require.Equal(t, []kit.Place{{0, 1}, {1, 1}, {1, 2}}, board.Moore(corner, 1))
	require.Equal(t, []kit.Place{{0, 1}, {3, 2}, {1, 2}, {0, 0}}, torus.VonNeumann(corner, 1))
	require.Len(t, torus.Moore(corner, 1), 8)
	require.Equal(t, kit.Place{X: 0, Y: 2}, board.Move(corner, -1, 5))
	require.Equal(t, kit.Place{X: 3, Y: 1}, torus.Move(corner, -1, 5))
}
