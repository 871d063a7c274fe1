package kit

import "math"

// quantile returns where the distribution function of the standard normal distribution
// is u, which is above 0 and below 1.
//
// Wichura, M. J. (1988). Algorithm AS 241: the percentage points of the normal
// distribution. Applied Statistics 37 (3), 477-484.
func quantile(u float64) float64 {
	q := u - 0.5
	if -0.425 <= q && q <= 0.425 {
		return float64(q * ratio(0.180625-float64(q*q), []float64{
			2509.0809287301227, 33430.57558358813, 67265.7709270087, 45921.95393154987,
			13731.69376550946, 1971.5909503065513, 133.14166789178438, 3.3871328727963665,
		}, []float64{
			5226.495278852854, 28729.085735721943, 39307.89580009271, 21213.794301586597,
			5394.196021424751, 687.1870074920579, 42.31333070160091, 1.0,
		}))
	}
	tail := u
	if q >= 0 {
		tail = 1 - u
	}
	r := math.Sqrt(-ln(tail))
	var x float64
	if r <= 5 {
		x = ratio(r-1.6, []float64{
			0.0007745450142783414, 0.022723844989269184, 0.2417807251774506, 1.2704582524523684,
			3.6478483247632045, 5.769497221460691, 4.630337846156546, 1.4234371107496835,
		}, []float64{
			1.0507500716444169e-09, 0.0005475938084995345, 0.015198666563616457, 0.14810397642748008,
			0.6897673349851, 1.6763848301838038, 2.053191626637759, 1.0,
		})
	} else {
		x = ratio(r-5, []float64{
			2.0103343992922881e-07, 2.7115555687434876e-05, 0.0012426609473880784, 0.026532189526576124,
			0.29656057182850487, 1.7848265399172913, 5.463784911164114, 6.657904643501103,
		}, []float64{
			2.0442631033899397e-15, 1.421511758316446e-07, 1.8463183175100548e-05, 0.0007868691311456133,
			0.014875361290850615, 0.1369298809227358, 0.599832206555888, 1.0,
		})
	}
	if q < 0 {
		return -x
	}
	return x
}

// ratio returns what one polynomial at x is of another.
func ratio(x float64, above, below []float64) float64 { return series(x, above) / series(x, below) }

// ln returns the natural logarithm of x, which is above 0 and at most 1: twice the
// inverse hyperbolic tangent of (x-1)/(x+1).
func ln(x float64) float64 {
	halvings := 0.0
	for x < 0.7071067811865476 { // half of the root of 2
		x = float64(x * 2)
		halvings++
	}
	t := (x - 1) / (x + 1)
	sum := series(float64(t*t), []float64{ // up to where the next is below what a float holds
		1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1,
	})
	return float64(float64(2*t)*sum) - float64(halvings*0.6931471805599453)
}

// series returns the value of a polynomial at x; the factor of its greatest power is first.
func series(x float64, factors []float64) float64 {
	sum := 0.0
	for _, c := range factors {
		sum = float64(sum*x) + c
	}
	return sum
}
