package governance

import (
	"math"
	"math/big"
	"reflect"

	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// great is an integer that does not fit in 64 bits with a sign. To an expression it is
// an int like any other: it is compared with all numbers, exactly. Only arithmetic
// with it is what arithmetic beyond 64 bits is of any int, an overflow.
type great struct{ *big.Int }

// maxGreatBits is more than an integer of canon.MaxDigits has.
const maxGreatBits = canon.MaxDigits * 10 / 3

func (n *great) ConvertToNative(reflect.Type) (any, error) { return nil, errContainer }
func (n *great) ConvertToType(ref.Type) ref.Val            { return noOverload() }
func (n *great) Equal(other ref.Val) ref.Val {
	c, ok := compareNumbers(n, other)
	return types.Bool(ok && c == 0)
}
func (n *great) Type() ref.Type { return types.IntType }
func (n *great) Value() any     { return shortened(n.String()) }

// integerOf reads an integer of any size.
func integerOf(r *canon.Reader) ref.Val {
	n, wide := r.Int()
	if wide == nil {
		return types.Int(n)
	}
	if wide.BitLen() > maxGreatBits {
		return types.NewErr("an integer of more than %d digits", canon.MaxDigits)
	}
	return &great{wide}
}

// unsigned returns an integer from 0.
func unsigned(n uint64) ref.Val {
	if n > math.MaxInt64 {
		return &great{new(big.Int).SetUint64(n)}
	}
	return types.Int(n)
}

// convert evaluates a conversion of n; nil: there is none.
func (n *great) convert(name string) ref.Val {
	switch name {
	case overloads.TypeConvertInt:
		return n
	case overloads.TypeConvertUint:
		if !n.IsUint64() {
			return types.NewErr("unsigned integer overflow")
		}
		return types.Uint(n.Uint64())
	case overloads.TypeConvertDouble:
		f, _ := new(big.Float).SetInt(n.Int).Float64()
		return types.Double(f)
	case overloads.TypeConvertString:
		return types.String(n.String())
	}
	return noOverload()
}

func isGreat(v ref.Val) bool {
	_, ok := v.(*great)
	return ok
}

func isInteger(v ref.Val) bool {
	_, ok := v.(types.Int)
	return ok || isGreat(v)
}

// compareNumbers compares two numbers by what they stand for; false: they have no
// order.
func compareNumbers(a, b ref.Val) (int, bool) {
	x, signX := exact(a)
	y, signY := exact(b)
	switch {
	case x == nil && signX == 0 || y == nil && signY == 0:
		return 0, false
	case x == nil || y == nil: // an infinity beyond all others
		return signX - signY, true
	}
	return x.Cmp(y), true
}

// exact returns the value of a number as a fraction. Infinities have none but a sign;
// what is no number has neither.
func exact(v ref.Val) (value *big.Rat, sign int) {
	switch v := v.(type) {
	case types.Int:
		return new(big.Rat).SetInt64(int64(v)), 0
	case types.Uint:
		return new(big.Rat).SetUint64(uint64(v)), 0
	case *great:
		return new(big.Rat).SetInt(v.Int), 0
	case types.Double:
		if math.IsInf(float64(v), 1) {
			return nil, 1
		}
		if math.IsInf(float64(v), -1) {
			return nil, -1
		}
		return new(big.Rat).SetFloat64(float64(v)), 0 // nil of NaN
	}
	return nil, 0
}
