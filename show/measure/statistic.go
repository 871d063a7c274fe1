package measure

import (
	"errors"
	"math"
	"math/big"
	"slices"
)

// sample is what a measure has seen of the values of a tick. Each statistic is computed
// exactly and rounded once, so that no order of the cells, and no machine, shows in it.
type sample struct {
	n        int64
	sum      exact
	squares  exact // kept where spread is
	least    float64
	greatest float64
	values   []float64 // kept where ranked is

	spread, ranked bool
	full           bool // no more values are kept
}

func (x *sample) reset() {
	*x = sample{values: x.values[:0], spread: x.spread, ranked: x.ranked}
}

// add adds a value, which is a number exactly and about.
func (x *sample) add(n number, about float64) {
	if x.n == 0 || about < x.least {
		x.least = about
	}
	if x.n == 0 || about > x.greatest {
		x.greatest = about
	}
	x.n++
	x.sum.add(n)
	if x.spread {
		x.squares.addProduct(n, n)
	}
	if x.ranked && !x.full {
		x.values = append(x.values, about)
	}
}

var errInfinite = errors.New("it is too large for a float")

// statistic returns one of the words of take, nil where there is none: of no values, a
// variance of one, a Gini coefficient of values whose sum is 0.
func (x *sample) statistic(word string) (any, error) {
	if p, ok := percent(word); ok {
		return x.percentile(p)
	}
	n := new(big.Rat).SetInt64(x.n)
	switch {
	case word == "count":
		return x.n, nil
	case word == "sum":
		return rounded(x.sum.rat())
	case x.n == 0:
		return nil, nil
	}
	switch word {
	case "mean":
		return rounded(new(big.Rat).Quo(x.sum.rat(), n))
	case "min":
		return x.least, nil
	case "max":
		return x.greatest, nil
	case "gini":
		return x.gini()
	}
	if x.n < 2 {
		return nil, nil
	}
	v, err := rounded(x.variance())
	if f, ok := v.(float64); ok && word == "sd" {
		return math.Sqrt(f), err
	}
	return v, err
}

// variance returns the unbiased variance of a sample: (n Σx² - (Σx)²) / (n (n-1)).
func (x *sample) variance() *big.Rat {
	n := new(big.Rat).SetInt64(x.n)
	sum := x.sum.rat()
	v := new(big.Rat).Mul(n, x.squares.rat())
	v.Sub(v, sum.Mul(sum, sum))
	return v.Quo(v, n.Mul(n, new(big.Rat).SetInt64(x.n-1)))
}

// percentile interpolates linearly between the two values around it, as R's type 7 and
// numpy's default.
func (x *sample) percentile(percent int) (any, error) {
	if x.n == 0 {
		return nil, nil
	}
	slices.Sort(x.values)
	at := (len(x.values) - 1) * percent
	i, rest := at/100, int64(at%100)
	if rest == 0 {
		return x.values[i], nil
	}
	var sum exact
	sum.addProduct(ofFloat(x.values[i]), ofInt(100-rest))
	sum.addProduct(ofFloat(x.values[i+1]), ofInt(rest))
	return rounded(new(big.Rat).Quo(sum.rat(), big.NewRat(100, 1)))
}

var errNegative = errors.New("a Gini coefficient is of values from 0 on")

// gini returns the Gini coefficient: with the values in their order and i from 1,
// (2 Σ i xᵢ - (n+1) Σx) / (n Σx).
func (x *sample) gini() (any, error) {
	if x.least < 0 {
		return nil, errNegative
	}
	slices.Sort(x.values)
	var ranked exact
	sum := new(exact) // of the values as they are ranked, which integers beyond 2^53 are not exactly
	for i, v := range x.values {
		n := ofFloat(v)
		ranked.addProduct(n, ofInt(int64(i)+1))
		sum.add(n)
	}
	total := sum.rat()
	if total.Sign() == 0 {
		return nil, nil
	}
	g := ranked.rat()
	g.Mul(g, big.NewRat(2, 1))
	g.Sub(g, new(big.Rat).Mul(total, new(big.Rat).SetInt64(x.n+1)))
	return rounded(g.Quo(g, total.Mul(total, new(big.Rat).SetInt64(x.n))))
}

// rounded returns the float that is nearest.
func rounded(x *big.Rat) (any, error) {
	f, _ := x.Float64()
	if math.IsInf(f, 0) {
		return nil, errInfinite
	}
	return f, nil
}

// edges returns the bounds of the bins, one more than there are bins.
func (h *Hist) edges() []float64 {
	from, to := new(big.Rat).SetFloat64(h.From), new(big.Rat).SetFloat64(h.To)
	width := new(big.Rat).Quo(to.Sub(to, from), big.NewRat(int64(h.Bins), 1))
	out := make([]float64, h.Bins+1)
	for i := range out {
		at := new(big.Rat).Mul(width, big.NewRat(int64(i), 1))
		out[i], _ = at.Add(at, from).Float64()
	}
	return out
}
