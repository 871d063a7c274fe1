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

// sample is what was measured in some runs, in the order of seeds. Its numbers have so many bits that
// integers beyond 2^53 keep what they differ by, and exponents that no square exceeds.
type sample []*big.Float

// precision is how many bits a number of a sample has.
const precision = 256

func zero() *big.Float { return new(big.Float).SetPrec(precision) }

// number returns a value as a sample has it; nil: it is none.
func number(v any) *big.Float {
	switch v := v.(type) {
	case int64:
		return zero().SetInt64(v)
	case float64:
		return zero().SetFloat64(v)
	case bool:
		if v {
			return zero().SetInt64(1)
		}
		return zero()
	}
	return nil
}

// sampleOf returns the numbers of a column that there are.
func sampleOf(values []any) (s sample) {
	for _, v := range values {
		if f := number(v); f != nil {
			s = append(s, f)
		}
	}
	return s
}

// differences returns a less b, seed by seed, where there are both.
func differences(a, b []any) (s sample) {
	for i := range a {
		if f, g := number(a[i]), number(b[i]); f != nil && g != nil {
			s = append(s, f.Sub(f, g))
		}
	}
	return s
}

// finite returns a number as JSON has it; nil: there is none, or no float is that large.
func finite(x *big.Float) *float64 {
	if x == nil {
		return nil
	}
	f, _ := x.Float64()
	if math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// moments computes them.
func (s sample) moments() Moments {
	m := Moments{N: len(s)}
	if m.N == 0 {
		return m
	}
	mean := zero()
	for _, x := range s {
		mean.Add(mean, x)
	}
	m.Mean = finite(mean.Quo(mean, big.NewFloat(float64(m.N))))
	if m.N == 1 {
		return m
	}
	squares, off := zero(), zero()
	for _, x := range s {
		off.Sub(x, mean)
		squares.Add(squares, off.Mul(off, off))
	}
	sd := zero().Sqrt(squares.Quo(squares, big.NewFloat(float64(m.N-1))))
	m.SD = finite(sd)
	half := zero().Mul(sd, big.NewFloat(student(m.N-1)/math.Sqrt(float64(m.N))))
	if m.Low, m.High = finite(zero().Sub(mean, half)), finite(zero().Add(mean, half)); m.Low == nil || m.High == nil {
		m.Low, m.High = nil, nil
	}
	return m
}

// median returns the middle of a sample, which it sorts; nil: there is none.
func (s sample) median() *float64 {
	if len(s) == 0 {
		return nil
	}
	slices.SortFunc(s, (*big.Float).Cmp)
	middle := s[len(s)/2]
	if len(s)%2 == 0 {
		sum := zero().Add(middle, s[len(s)/2-1])
		middle = sum.Quo(sum, big.NewFloat(2))
	}
	return finite(middle)
}

// Apart reports whether the interval does not hold 0.
func (m *Moments) Apart() bool { return m.Low != nil && (*m.Low > 0 || *m.High < 0) }
