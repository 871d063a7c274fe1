package measure

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestExactSumsAreThoseOfFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sum, products exact
		want, wantProducts := new(big.Rat), new(big.Rat)
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
			if math.IsInf(f, 0) || math.IsNaN(f) {
				f = rapid.SampledFrom([]float64{0, 5e-324, -5e-324, math.MaxFloat64, -math.MaxFloat64}).Draw(t, "f")
			}
			n := rapid.Int64().Draw(t, "int")
			sum.add(ofFloat(f))
			sum.add(ofInt(n))
			products.addProduct(ofFloat(f), ofFloat(f))
			products.addProduct(ofFloat(f), ofInt(n))
			x, y := new(big.Rat).SetFloat64(f), new(big.Rat).SetInt64(n)
			want.Add(want, x).Add(want, y)
			wantProducts.Add(wantProducts, new(big.Rat).Mul(x, x)).Add(wantProducts, new(big.Rat).Mul(x, y))
			if rapid.Bool().Draw(t, "carry") {
				sum.carry()
				products.carry()
			}
		}
		require.Zero(t, want.Cmp(sum.rat()))
		require.Zero(t, wantProducts.Cmp(products.rat()))
	})
}
