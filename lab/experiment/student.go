package experiment

import "math"

// few is the number of degrees of freedom up to which Student's t is computed from its series.
const few = 200

// student returns t such that Student's t with nu degrees of freedom, at least 1, lies between -t and t
// with probability confidence. Sources: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3
// and 26.7.4, the probability for few degrees; 26.7.5, the expansion for many, whose error is below 1e-12.
func student(nu int) float64 {
	n := float64(nu)
	if nu <= few {
		low, high := 0.0, math.Pi/2
		for range 64 {
			if mid := (low + high) / 2; within(mid, nu) < confidence {
				low = mid
			} else {
				high = mid
			}
		}
		return math.Sqrt(n) * math.Tan(low)
	}
	z := math.Sqrt2 * math.Erfinv(confidence)
	y := z * z
	return z * (1 + (y+1)/(4*n) + ((5*y+16)*y+3)/(96*n*n) + (((3*y+19)*y+17)*y-15)/(384*n*n*n) +
		((((79*y+776)*y+1482)*y-1920)*y-945)/(92160*n*n*n*n))
}

// within is the probability that Student's t lies between -t and t, where t is sqrt(nu) tan(angle).
func within(angle float64, nu int) float64 {
	sin, cos := math.Sincos(angle)
	term, sum := 1.0, 0.0
	if nu%2 == 1 {
		term = cos
	}
	for power := nu % 2; power <= nu-2; power += 2 {
		sum += term
		term *= cos * cos * float64(power+1) / float64(power+2)
	}
	if nu%2 == 1 {
		return (angle + sin*sum) * 2 / math.Pi
	}
	return sin * sum
}
