package kit

import "math"

const (
	unitBits = 52
	unitOdds = 1 << 53 // what 52 bits with a last one behind them are parts of
)

// Unit returns a float between 0 and 1, neither of which it is: an odd multiple of 2^-53.
func Unit(s Source) float64 {
	return float64(2*s.Random(1<<unitBits)+1) / unitOdds
}

// Uniform returns a float between low and high. Where high is below low, or their distance is
// no number that a float holds, there is nothing to draw from.
func Uniform(s Source, low, high float64) float64 {
	if !(0 <= high-low && high-low <= math.MaxFloat64) {
		return float64(s.Random(0))
	}
	return low + float64((high-low)*Unit(s))
}

// Integer returns an integer from low to high, both of which it may be. Where high is
// below low there is nothing to draw from, and where they are all that there is neither.
func Integer(s Source, low, high int64) int64 {
	if high < low {
		return low + int64(s.Random(0))
	}
	return low + int64(s.Random(uint64(high-low)+1))
}

// Chance reports whether what happens with probability p does.
func Chance(s Source, p float64) bool { return Unit(s) < p }

// Normal returns a float of a normal distribution. Where the mean is not finite, or sd is
// neither 0 nor above and finite, there is nothing to draw from.
func Normal(s Source, mean, sd float64) float64 {
	if !(-math.MaxFloat64 <= mean && mean <= math.MaxFloat64 && 0 <= sd && sd <= math.MaxFloat64) {
		return float64(s.Random(0))
	}
	return mean + float64(sd*quantile(Unit(s)))
}

// Exponential returns a float of an exponential distribution. Where the mean is neither 0 nor
// above and finite, there is nothing to draw from.
func Exponential(s Source, mean float64) float64 {
	if !(0 <= mean && mean <= math.MaxFloat64) {
		return float64(s.Random(0))
	}
	return float64(mean * -ln(1-Unit(s)))
}

// Geometric returns how often what happens with probability p does not, before it does.
// Where p is below 2^-53 it never does, and there is nothing to draw from.
func Geometric(s Source, p float64) int64 {
	if p >= 1 {
		return 0
	}
	if !(1-p < 1) {
		return int64(s.Random(0))
	}
	return int64(Exponential(s, 1) / -ln(1-p))
}

// Choice returns a random item.
func Choice[T any](s Source, items []T) T {
	i := s.Random(uint64(len(items)))
	if len(items) == 0 {
		var none T
		return none
	}
	return items[i]
}

// Weighted returns an index of weights, each as likely as its weight says, exactly. The
// sum of them is above 0 and below 2^64; else there is nothing to draw from.
func Weighted(s Source, weights []uint64) int {
	total := uint64(0)
	for _, w := range weights {
		if total+w < total {
			return int(s.Random(0))
		}
		total += w
	}
	at := s.Random(total)
	for i, w := range weights {
		if at < w {
			return i
		}
		at -= w
	}
	return 0
}

// WeightedFloat is Weighted where weights are floats, of which none is below 0 and one is above.
func WeightedFloat(s Source, weights []float64) int {
	total := 0.0
	for _, w := range weights {
		if !(w >= 0) {
			return int(s.Random(0))
		}
		total += w
	}
	if total == 0 || total > math.MaxFloat64 {
		return int(s.Random(0))
	}
	at := float64(Unit(s) * total)
	last := 0
	for i, w := range weights {
		if at < w {
			return i
		}
		at -= w
		if w > 0 {
			last = i
		}
	}
	return last // the sum was rounded
}

// Shuffle puts items in any order, each as likely.
func Shuffle[T any](s Source, items []T) { mix(s, items, len(items)-1) }

// Sample returns n of items, no place of it twice, in any order. Where there are fewer,
// there is nothing to draw from.
func Sample[T any](s Source, items []T, n int) []T {
	if n < 0 || n > len(items) {
		s.Random(0)
		return nil
	}
	mixed := append([]T(nil), items...)
	mix(s, mixed, n)
	return mixed[:n:n]
}

// mix draws the first n places of items, each from all that are left.
func mix[T any](s Source, items []T, n int) {
	for i := range n {
		j := i + int(s.Random(uint64(len(items)-i)))
		items[i], items[j] = items[j], items[i]
	}
}
