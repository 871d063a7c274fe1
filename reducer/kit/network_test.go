package kit_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/reducer/kit"
)

// requireNetwork requires neighbours that are sorted, mutual and nobody's own.
func requireNetwork(t require.TestingT, w kit.Network) {
	for i, linked := range w {
		for at, j := range linked {
			require.NotEqual(t, i, j)
			require.Contains(t, w[j], i)
			require.True(t, at == 0 || linked[at-1] < j, linked)
		}
	}
}

func TestNetworksAreWhatTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := kit.NewStream(rapid.Int64().Draw(t, "seed"))
		n := rapid.IntRange(1, 40).Draw(t, "nodes")
		k := 2 * rapid.IntRange(0, (n-1)/2).Draw(t, "pairs")
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		w := kit.SmallWorld(s, n, k, p)
		requireNetwork(t, w)
		require.Len(t, w, n)
		require.Len(t, w.Edges(), n*k/2, "links are moved, not made")
		require.Equal(t, kit.Ring(n, k), kit.SmallWorld(s, n, k, 0))
		require.Equal(t, w, kit.FromEdges(n, w.Edges()))
		w = kit.RandomGraph(s, n, p)
		requireNetwork(t, w)
		require.Len(t, kit.RandomGraph(s, n, 1).Edges(), n*(n-1)/2)
		require.Empty(t, kit.RandomGraph(s, n, 0).Edges())
		if n > 1 {
			m := rapid.IntRange(1, n-1).Draw(t, "links")
			w = kit.ScaleFree(s, n, m)
			requireNetwork(t, w)
			require.Len(t, w.Edges(), m*(m+1)/2+(n-m-1)*m)
		}
	})
}

// TestRandomGraphsLinkEachPairAsOften counts each pair over many graphs.
func TestRandomGraphsLinkEachPairAsOften(t *testing.T) {
	const graphs, n, p = 4000, 6, 0.2
	s, counts := kit.NewStream(11), make(map[[2]int]int)
	for range graphs {
		for _, e := range kit.RandomGraph(s, n, p).Edges() {
			counts[e]++
		}
	}
	require.Len(t, counts, n*(n-1)/2)
	for e, k := range counts {
		require.InDelta(t, p*graphs, k, 4*25.3, e) // the root of graphs*p*(1-p)
	}
}

// TestWhoHasLinksGetsMore compares the most that a node has with what a random graph of as
// many links gives.
func TestWhoHasLinksGetsMore(t *testing.T) {
	s := kit.NewStream(2)
	require.Greater(t, most(kit.ScaleFree(s, 2000, 2)), 50)
	require.Less(t, most(kit.RandomGraph(s, 2000, 4.0/2000)), 20)
}

func most(w kit.Network) int {
	out := 0
	for _, linked := range w {
		out = max(out, len(linked))
	}
	return out
}
