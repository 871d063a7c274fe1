package experiment

import (
	"math"
	"math/big"
	"slices"
)

// confidence is that of intervals.
const confidence = 0.95

// Moments are the moments of a sample; nil: the sample is too small, or the result exceeds a float.
type Moments struct {
	N    int      `json:"n"`
	Mean *float64 `json:"mean"` // of one
	SD   *float64 `json:"sd"`   // of two: the unbiased variance's root
	Low  *float64 `json:"low"`  // of two: the ends of the interval that has the mean with 95%, by Student's t
	High *float64 `json:"high"`
}

// sample is what was measured in some runs.
type sample struct {
	base int64     // that all of x is less by: so integers beyond 2^53 keep what they differ by
	x    []float64 // in the order of seeds
}

// exactly is up to where each integer is a float.
const exactly = 1 << 53

// sampleOf returns the numbers of a column that there are.
func sampleOf(values []any) sample {
	var s sample
	for _, v := range values {
		if i, ok := v.(int64); ok && (i > exactly || i < -exactly) {
			s.base = i
			break
		}
	}
	for _, v := range values {
		if f, ok := less(v, s.base); ok {
			s.x = append(s.x, f)
		}
	}
	return s
}

// differences returns a less b, seed by seed, where there are both.
func differences(a, b []any) sample {
	var s sample
	for i := range a {
		if f, ok := less(a[i], b[i]); ok {
			s.x = append(s.x, f)
		}
	}
	return s
}

// less returns by how much a number is more than another, rounded once; false: one of them is
// none.
func less(a, b any) (float64, bool) {
	i, ok := a.(int64)
	k, both := b.(int64)
	if d := i - k; ok && both && (d > i) == (k < 0) { // it has not wrapped
		return float64(d), true
	}
	f, ok := number(a)
	g, both := number(b)
	return f - g, ok && both
}

// whole returns a figure of a sample without its base.
func (s sample) whole(f float64) *float64 {
	if s.base == 0 || finite(f) == nil {
		return finite(f)
	}
	sum := new(big.Float).SetPrec(2 * 64).SetInt64(s.base)
	f, _ = sum.Add(sum, big.NewFloat(f)).Float64()
	return finite(f)
}

// Values above large are made smaller by 2^shrink, so that no sum of squares overflows.
const (
	large  = 0x1p450
	shrink = 560
)

// moments computes them.
func (s sample) moments() Moments {
	x := s.x
	m := Moments{N: len(x)}
	if len(x) == 0 {
		return m
	}
	scale := 0
	if slices.ContainsFunc(x, func(f float64) bool { return math.Abs(f) > large }) {
		scale, x = shrink, slices.Clone(x)
		for i := range x {
			x[i] = math.Ldexp(x[i], -scale)
		}
	}
	full := func(f float64) *float64 { return s.whole(math.Ldexp(f, scale)) }
	n := float64(len(x))
	mean := sum(x) / n
	m.Mean = full(mean)
	if len(x) == 1 {
		return m
	}
	sd := deviation(x, mean)
	m.SD = finite(math.Ldexp(sd, scale))
	half := student(len(x)-1) * sd / math.Sqrt(n)
	if m.Low, m.High = full(mean-half), full(mean+half); m.Low == nil || m.High == nil {
		m.Low, m.High = nil, nil
	}
	return m
}

// median returns the middle of a sample, which it sorts; nil: there is none.
func (s sample) median() *float64 {
	x := s.x
	if len(x) == 0 {
		return nil
	}
	slices.Sort(x)
	median := x[len(x)/2]
	if len(x)%2 == 0 {
		median = (x[len(x)/2-1] + median) / 2
		if math.IsInf(median, 0) { // the sum is
			median = x[len(x)/2-1]/2 + x[len(x)/2]/2
		}
	}
	return s.whole(median)
}

// number returns a value as a float; false: there is none.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// Apart reports whether the interval does not hold 0.
func (m *Moments) Apart() bool { return m.Low != nil && (*m.Low > 0 || *m.High < 0) }

func sum(x []float64) (s float64) {
	for _, f := range x {
		s += f
	}
	return s
}

// deviation is the standard deviation of the population that x is a sample of, at least two. It is the corrected
// two-pass algorithm of Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance" (1983).
func deviation(x []float64, mean float64) float64 {
	var squares, rest float64
	for _, f := range x {
		squares += (f - mean) * (f - mean)
		rest += f - mean
	}
	n := float64(len(x))
	return math.Sqrt((squares - rest*rest/n) / (n - 1))
}
