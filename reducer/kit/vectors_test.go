package kit_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/kit"
)

// step is the source of one step of a world.
type step struct{ *reducer.Rand }

func (s step) Random(n uint64) uint64 {
	v, err := s.Below(n)
	if err != nil {
		panic(err)
	}
	return v
}

func stepOf(seed uint64, cell string, n uint64) kit.Source {
	return step{reducer.Seed{World: seed, Cell: reducer.Cell{Reducer: "agent", Key: cell}, Step: n}.New()}
}

// draws are those that vectors.py makes, in its order.
type draws struct {
	Units          []float64 `json:"units"`
	Uniforms       []float64 `json:"uniforms"`
	Integers       []int64   `json:"integers"`
	Chances        []bool    `json:"chances"`
	Normals        []float64 `json:"normals"`
	Exponentials   []float64 `json:"exponentials"`
	Geometrics     []int64   `json:"geometrics"`
	Choices        []string  `json:"choices"`
	Weighted       []int     `json:"weighted"`
	WeightedFloats []int     `json:"weighted_floats"`
	Shuffle        []int     `json:"shuffle"`
	Sample         []int     `json:"sample"`
	SmallWorld     [][2]int  `json:"small_world"`
	RandomGraph    [][2]int  `json:"random_graph"`
	ScaleFree      [][2]int  `json:"scale_free"`
}

func some[T any](n int, draw func() T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = draw()
	}
	return out
}

func upTo(n int) []int {
	i := -1
	return some(n, func() int { i++; return i })
}

func drawn(s kit.Source) draws {
	d := draws{
		Units:          some(8, func() float64 { return kit.Unit(s) }),
		Uniforms:       some(8, func() float64 { return kit.Uniform(s, -3, 7.5) }),
		Integers:       some(8, func() int64 { return kit.Integer(s, -7, 13) }),
		Chances:        some(16, func() bool { return kit.Chance(s, 0.3) }),
		Normals:        some(500, func() float64 { return kit.Normal(s, 10, 2.5) }),
		Exponentials:   some(500, func() float64 { return kit.Exponential(s, 4) }),
		Geometrics:     some(16, func() int64 { return kit.Geometric(s, 0.05) }),
		Choices:        some(8, func() string { return kit.Choice(s, []string{"a", "b", "c", "d", "e"}) }),
		Weighted:       some(16, func() int { return kit.Weighted(s, []uint64{1, 0, 5, 94}) }),
		WeightedFloats: some(16, func() int { return kit.WeightedFloat(s, []float64{0.5, 0, 0.125, 2.75}) }),
		Shuffle:        upTo(20),
	}
	kit.Shuffle(s, d.Shuffle)
	d.Sample = kit.Sample(s, upTo(20), 5)
	d.SmallWorld = kit.SmallWorld(s, 20, 4, 0.3).Edges()
	d.RandomGraph = kit.RandomGraph(s, 15, 0.3).Edges()
	d.ScaleFree = kit.ScaleFree(s, 20, 2).Edges()
	return d
}

// at is a source of one number.
type at uint64

func (a at) Random(uint64) uint64 { return uint64(a) }

// TestDrawsAreThoseOfASecondImplementation holds every draw to the bit to what
// testdata/vectors.py makes, from a step's numbers and from a stream's.
func TestDrawsAreThoseOfASecondImplementation(t *testing.T) {
	var want struct {
		Ctx          draws     `json:"ctx"`
		Stream       draws     `json:"stream"`
		Places       []uint64  `json:"places"`
		Quantiles    []float64 `json:"quantiles"`
		Exponentials []float64 `json:"exponentials"`
	}
	text, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &want))
	require.Equal(t, want.Ctx, drawn(stepOf(42, "ann", 3)))
	require.Equal(t, want.Stream, drawn(kit.NewStream(-7)))
	for i, place := range want.Places { // the far ends, which nobody draws
		require.Equal(t, want.Quantiles[i], kit.Normal(at(place), 0, 1), place)      //nolint:testifylint // to the bit
		require.Equal(t, want.Exponentials[i], kit.Exponential(at(place), 1), place) //nolint:testifylint // likewise
	}
}
