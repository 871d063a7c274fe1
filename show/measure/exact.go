package measure

import (
	"math"
	"math/big"
	"math/bits"
)

// exact is a sum of numbers, and of products of two of them, without rounding: a number in
// fixed point. So it is the same whatever the order, and on every machine. The zero value
// is 0.
type exact struct {
	limbs  [limbs]int64 // of 32 bits each, and what was not carried yet
	lo, hi int          // the limbs from lo to before hi are in use
	adds   uint32       // since the last carry
}

const (
	limbBits = 32
	unitBits = 2176 // the unit is 2^-unitBits, less than the least product of two floats
	limbs    = (unitBits + 2048 + 128) / limbBits
	mostAdds = 1 << 30 // before carries overflow a limb
)

// number is a number as exact takes it: ±mant × 2^exp.
type number struct {
	mant uint64
	exp  int
	neg  bool
}

func ofInt(n int64) number {
	if n < 0 {
		return number{mant: -uint64(n), neg: true}
	}
	return number{mant: uint64(n)}
}

// ofFloat returns a float that is finite.
func ofFloat(f float64) number {
	b := math.Float64bits(f)
	mant, exp := b&(1<<52-1), int(b>>52&0x7ff)
	if exp == 0 {
		exp = 1
	} else {
		mant |= 1 << 52
	}
	return number{mant: mant, exp: exp - 1075, neg: b>>63 != 0}
}

// add adds a number.
func (x *exact) add(n number) { x.addWide(0, n.mant, n.exp, n.neg) }

// addProduct adds the product of two.
func (x *exact) addProduct(a, b number) {
	hi, lo := bits.Mul64(a.mant, b.mant)
	x.addWide(hi, lo, a.exp+b.exp, a.neg != b.neg)
}

func (x *exact) addWide(hi, lo uint64, exp int, neg bool) {
	if hi|lo == 0 {
		return
	}
	if x.adds++; x.adds == mostAdds {
		x.carry()
	}
	at := exp + unitBits
	i, shift := at/limbBits, uint(at%limbBits)
	// The 128 bits, shifted by less than 32, are five limbs.
	parts := [5]int64{
		int64(uint32(lo << shift)),
		int64(uint32(lo << shift >> 32)),
		int64(uint32(lo>>(64-shift)) | uint32(hi<<shift)),
		int64(uint32(hi << shift >> 32)),
		int64(uint32(hi >> (64 - shift))),
	}
	if x.hi == 0 || i < x.lo {
		x.lo = i
	}
	x.hi = max(x.hi, i+len(parts))
	for k, p := range parts {
		if neg {
			p = -p
		}
		x.limbs[i+k] += p
	}
}

// carry leaves in each limb but the last what belongs there.
func (x *exact) carry() {
	x.adds = 0
	x.hi = min(x.hi+1, limbs)
	for i := x.lo; i < x.hi-1; i++ {
		over := x.limbs[i] >> limbBits // towards minus infinity
		x.limbs[i] -= over << limbBits
		x.limbs[i+1] += over
	}
}

// rat returns the sum.
func (x *exact) rat() *big.Rat {
	sum, limb := new(big.Int), new(big.Int)
	for i := x.hi - 1; i >= x.lo && x.hi > 0; i-- {
		sum.Lsh(sum, limbBits)
		sum.Add(sum, limb.SetInt64(x.limbs[i]))
	}
	shift := x.lo*limbBits - unitBits
	if shift >= 0 {
		return new(big.Rat).SetInt(sum.Lsh(sum, uint(shift)))
	}
	zeros := min(sum.TrailingZeroBits(), uint(-shift)) // without which the fraction need not be reduced
	return new(big.Rat).SetFrac(sum.Rsh(sum, zeros), new(big.Int).Lsh(big.NewInt(1), uint(-shift)-zeros))
}
