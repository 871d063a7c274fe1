package kit_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer/kit"
)

// Each test draws what a seed gives: it passes or fails for good. A bound is so far out
// that of a thousand seeds fewer than one would exceed it.

// sources are one of each kind.
func sources() map[string]kit.Source {
	return map[string]kit.Source{"step": stepOf(7, "bob", 1), "stream": kit.NewStream(7)}
}

// far is four standard errors of a mean.
func far(variance float64, n int) float64 { return 4 * math.Sqrt(variance/float64(n)) }

// chiSquare returns the statistic of counts against what each is expected to be.
func chiSquare(counts []int, expected []float64) float64 {
	sum := 0.0
	for i, n := range counts {
		d := float64(n) - expected[i]
		sum += d * d / expected[i]
	}
	return sum
}

// requireFit requires counts that a chi-square test of 0.1% lets pass (Wilson, Hilferty 1931).
func requireFit(t *testing.T, counts []int, expected []float64) {
	t.Helper()
	free := float64(len(counts) - 1)
	most := free * math.Pow(1-2/(9*free)+3.09*math.Sqrt(2/(9*free)), 3)
	require.Less(t, chiSquare(counts, expected), most, "%d expected %v", counts, expected)
}

// equally is as many of each.
func equally(n, kinds int) []float64 {
	out := make([]float64, kinds)
	for i := range out {
		out[i] = float64(n) / float64(kinds)
	}
	return out
}

func TestFloatsAreDistributedAsTheySay(t *testing.T) {
	const n, bins = 40_000, 50
	for kind, s := range sources() {
		for name, x := range map[string]struct {
			draw           func() float64
			mean, variance float64
			below          func(x float64) float64 // the distribution function
		}{
			"unit":        {func() float64 { return kit.Unit(s) }, 0.5, 1.0 / 12, func(x float64) float64 { return x }},
			"uniform":     {func() float64 { return kit.Uniform(s, -1, 3) }, 1, 16.0 / 12, func(x float64) float64 { return (x + 1) / 4 }},
			"normal":      {func() float64 { return kit.Normal(s, 3, 2) }, 3, 4, func(x float64) float64 { return math.Erfc((3-x)/2/math.Sqrt2) / 2 }},
			"exponential": {func() float64 { return kit.Exponential(s, 5) }, 5, 25, func(x float64) float64 { return 1 - math.Exp(-x/5) }},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				sum, squares, counts := 0.0, 0.0, make([]int, bins)
				for range n {
					v := x.draw()
					sum += v
					squares += (v - x.mean) * (v - x.mean)
					counts[int(x.below(v)*bins)]++
				}
				require.InDelta(t, x.mean, sum/n, far(x.variance, n))
				require.InEpsilon(t, x.variance, squares/n, 0.06)
				requireFit(t, counts, equally(n, bins))
			})
		}
	}
}

func TestIntegersAreAsLikelyAsTheySay(t *testing.T) {
	const n = 20_000
	for kind, s := range sources() {
		count := func(kinds int, draw func() int) []int {
			out := make([]int, kinds)
			for range n {
				out[draw()]++
			}
			return out
		}
		t.Run(kind, func(t *testing.T) {
			requireFit(t, count(7, func() int { return int(kit.Integer(s, -3, 3)) + 3 }), equally(n, 7))
			requireFit(t, count(5, func() int { return kit.Choice(s, []int{0, 1, 2, 3, 4}) }), equally(n, 5))
			weights := []float64{0.05 * n, 0.25 * n, 0.7 * n}
			requireFit(t, count(3, func() int { return kit.Weighted(s, []uint64{1, 5, 14}) }), weights)
			requireFit(t, count(3, func() int { return kit.WeightedFloat(s, []float64{0.125, 0.625, 1.75}) }), weights)
			requireFit(t, count(2, func() int {
				if kit.Chance(s, 0.3) {
					return 1
				}
				return 0
			}), []float64{0.7 * n, 0.3 * n})
			p := []float64{0.4 * n, 0.24 * n, 0.144 * n, 0.216 * n}
			requireFit(t, count(4, func() int { return int(min(kit.Geometric(s, 0.4), 3)) }), p)
		})
	}
}

// TestEveryOrderIsAsLikely counts all orders of four, and all pairs out of them.
func TestEveryOrderIsAsLikely(t *testing.T) {
	const n = 24_000
	s := kit.NewStream(3)
	orders, pairs := make(map[[4]int]int), make(map[[2]int]int)
	for range n {
		items := upTo(4)
		kit.Shuffle(s, items)
		orders[[4]int(items)]++
		pairs[[2]int(kit.Sample(s, upTo(4), 2))]++
	}
	var counts []int
	for _, k := range orders {
		counts = append(counts, k)
	}
	require.Len(t, counts, 24)
	requireFit(t, counts, equally(n, 24))
	counts = nil
	for pair, k := range pairs {
		require.NotEqual(t, pair[0], pair[1])
		counts = append(counts, k)
	}
	require.Len(t, counts, 12)
	requireFit(t, counts, equally(n, 12))
}

// TestAFloatIsTheSameUnderOtherParameters holds what common random numbers rest on: one
// number for each float, and the larger number the larger float.
func TestAFloatIsTheSameUnderOtherParameters(t *testing.T) {
	a, b := kit.NewStream(1), kit.NewStream(1)
	for range 2000 {
		require.InDelta(t, kit.Normal(a, 0, 1), (kit.Normal(b, 10, 3)-10)/3, 1e-12)
		require.InEpsilon(t, kit.Exponential(a, 1), kit.Exponential(b, 4)/4, 1e-12)
	}
	places := some(2000, func() at { return at(a.Random(1 << 52)) })
	slices.Sort(places)
	for i, p := range places[1:] {
		require.Less(t, kit.Normal(places[i], 0, 1), kit.Normal(p, 0, 1))
		require.Less(t, kit.Exponential(places[i], 1), kit.Exponential(p, 1))
		require.LessOrEqual(t, kit.Geometric(p, 0.3), kit.Geometric(p, 0.2), "what is rarer comes later")
	}
}

// recorder says whether it was asked for a number where there is none.
type recorder struct{ none bool }

func (r *recorder) Random(n uint64) uint64 {
	r.none = r.none || n == 0
	return 0
}

func TestWhereThereIsNothingToDrawFrom(t *testing.T) {
	for name, draw := range map[string]func(kit.Source){
		"choice":              func(s kit.Source) { require.Empty(t, kit.Choice(s, []string{})) },
		"integer":             func(s kit.Source) { require.EqualValues(t, 2, kit.Integer(s, 2, 1)) },
		"all integers":        func(s kit.Source) { kit.Integer(s, math.MinInt64, math.MaxInt64) },
		"no weights":          func(s kit.Source) { require.Zero(t, kit.Weighted(s, nil)) },
		"no weight":           func(s kit.Source) { require.Zero(t, kit.Weighted(s, []uint64{0, 0})) },
		"weights overflow":    func(s kit.Source) { require.Zero(t, kit.Weighted(s, []uint64{math.MaxUint64, 1})) },
		"no floats":           func(s kit.Source) { require.Zero(t, kit.WeightedFloat(s, nil)) },
		"no float":            func(s kit.Source) { require.Zero(t, kit.WeightedFloat(s, []float64{0})) },
		"a float below 0":     func(s kit.Source) { require.Zero(t, kit.WeightedFloat(s, []float64{1, -0.5})) },
		"not a number":        func(s kit.Source) { require.Zero(t, kit.WeightedFloat(s, []float64{1, math.NaN()})) },
		"endless":             func(s kit.Source) { require.Zero(t, kit.WeightedFloat(s, []float64{1, math.Inf(1)})) },
		"sample":              func(s kit.Source) { require.Nil(t, kit.Sample(s, []int{1, 2}, 3)) },
		"sample of a debt":    func(s kit.Source) { require.Nil(t, kit.Sample(s, []int{1, 2}, -1)) },
		"geometric":           func(s kit.Source) { require.Zero(t, kit.Geometric(s, 0)) },
		"uniform backwards":   func(s kit.Source) { require.Zero(t, kit.Uniform(s, 2, 1)) },
		"uniform of nothing":  func(s kit.Source) { require.Zero(t, kit.Uniform(s, math.NaN(), 1)) },
		"uniform to the end":  func(s kit.Source) { require.Zero(t, kit.Uniform(s, 0, math.Inf(1))) },
		"uniform of all":      func(s kit.Source) { require.Zero(t, kit.Uniform(s, -1.7e308, 1.7e308)) },
		"uniform of the end":  func(s kit.Source) { require.Zero(t, kit.Uniform(s, math.Inf(1), math.Inf(1))) },
		"normal below 0":      func(s kit.Source) { require.Zero(t, kit.Normal(s, 0, -1)) },
		"normal of nothing":   func(s kit.Source) { require.Zero(t, kit.Normal(s, 0, math.NaN())) },
		"normal at the end":   func(s kit.Source) { require.Zero(t, kit.Normal(s, math.Inf(-1), 1)) },
		"normal everywhere":   func(s kit.Source) { require.Zero(t, kit.Normal(s, 0, math.Inf(1))) },
		"exponential below 0": func(s kit.Source) { require.Zero(t, kit.Exponential(s, -1)) },
		"exponential of NaN":  func(s kit.Source) { require.Zero(t, kit.Exponential(s, math.NaN())) },
		"endless exponential": func(s kit.Source) { require.Zero(t, kit.Exponential(s, math.Inf(1))) },
		"ring of odd degree":  func(s kit.Source) { require.Nil(t, kit.SmallWorld(s, 5, 3, 0)) },
		"links to themselves": func(s kit.Source) { require.Nil(t, kit.ScaleFree(s, 2, 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := new(recorder)
			draw(s)
			require.True(t, s.none, "the step fails")
		})
	}
	require.Zero(t, kit.NewStream(1).Random(0))
	require.Nil(t, kit.Ring(4, 4))
	require.EqualValues(t, math.MaxInt64, kit.Integer(at(math.MaxUint64-1), math.MinInt64+1, math.MaxInt64), "nearly all of them")
}
