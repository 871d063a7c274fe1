package canon

import (
	"encoding/binary"
	"math"
	"math/big"

	"github.com/x448/float16"
)

// Kind tells what an item is, for readers of items of any kind.
type Kind uint8

// The kinds of items. KindNone means that there is no item, or none that is canonical.
const (
	KindNone Kind = iota
	KindNull
	KindBool
	KindInt
	KindFloat
	KindBytes
	KindText
	KindArray
	KindMap
)

// Kind returns the kind of the next item without reading it.
func (r *Reader) Kind() Kind {
	if r.err != nil || r.off >= len(r.data) {
		return KindNone
	}
	head := r.data[r.off]
	switch head & 0xe0 {
	case majorUint, majorNint:
		return KindInt
	case majorBytes:
		return KindBytes
	case majorText:
		return KindText
	case majorArray:
		return KindArray
	case majorMap:
		return KindMap
	}
	switch head {
	case headBigPos, headBigNeg:
		return KindInt
	case headNull:
		return KindNull
	case headFalse, headTrue:
		return KindBool
	case headFloat16, headFloat32, headFloat64:
		return KindFloat
	}
	return KindNone
}

// Int reads an integer of any size. The second result is nil where 64 signed
// bits hold it; else it is the integer, and the first is 0.
func (r *Reader) Int() (int64, *big.Int) {
	start := r.off
	if r.Kind() != KindInt {
		r.fail(start, "want an integer")
		return 0, nil
	}
	head := r.data[start]
	if head == headBigPos || head == headBigNeg {
		r.skipBig()
		if r.err != nil {
			return 0, nil
		}
		digits := Reader{data: r.data[start+1 : r.off]}
		return 0, signed(new(big.Int).SetBytes(digits.Bytes()), head == headBigNeg)
	}
	major, n, ok := r.head()
	switch {
	case !ok:
		return 0, nil
	case n > math.MaxInt64:
		return 0, signed(new(big.Int).SetUint64(n), major == majorNint)
	case major == majorNint:
		return -1 - int64(n), nil
	}
	return int64(n), nil
}

// signed turns the argument of a negative integer into its value, -1 - n.
func signed(n *big.Int, negative bool) *big.Int {
	if negative {
		n.Not(n)
	}
	return n
}

// Float reads a float, which must be canonical.
func (r *Reader) Float() float64 {
	start := r.off
	if r.Kind() != KindFloat {
		r.fail(start, "want a float")
		return 0
	}
	r.skip(0)
	if r.err != nil {
		return 0
	}
	arg := r.data[start+1 : r.off]
	switch len(arg) {
	case 2:
		return float64(float16.Frombits(binary.BigEndian.Uint16(arg)).Float32())
	case 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(arg)))
	default:
		return math.Float64frombits(binary.BigEndian.Uint64(arg))
	}
}
