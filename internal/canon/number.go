package canon

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"

	"github.com/x448/float16"
)

// ErrNotFinite says that a float is NaN or an infinity, which have no
// canonical form.
var ErrNotFinite = errors.New("canon: a float that is NaN or infinite has no canonical form")

// AppendFloat appends f in the shortest of 16, 32 and 64 bits that keeps its
// value; negative zero becomes zero. NaN and infinities are ErrNotFinite.
func AppendFloat(b []byte, f float64) ([]byte, error) {
	if !finite(f) {
		return nil, ErrNotFinite
	}
	if f == 0 { // negative zero too
		return append(b, headFloat16, 0, 0), nil
	}
	f32 := float32(f)
	if float64(f32) != f {
		return binary.BigEndian.AppendUint64(append(b, headFloat64), math.Float64bits(f)), nil
	}
	if f16 := float16.Fromfloat32(f32); f16.Float32() == f32 {
		return binary.BigEndian.AppendUint16(append(b, headFloat16), f16.Bits()), nil
	}
	return binary.BigEndian.AppendUint32(append(b, headFloat32), math.Float32bits(f32)), nil
}

// AppendBig appends an integer of any size: as a plain integer where 64 bits
// suffice, else as a bignum (RFC 8949 section 3.4.3).
func AppendBig(b []byte, n *big.Int) []byte {
	if n.IsInt64() {
		return AppendInt(b, n.Int64())
	}
	if n.Sign() > 0 {
		if n.IsUint64() {
			return AppendUint(b, n.Uint64())
		}
		return AppendBytes(append(b, headBigPos), n.Bytes())
	}
	m := new(big.Int).Not(n) // -1 - n, the argument of a negative integer
	if m.IsUint64() {
		return appendHead(b, majorNint, m.Uint64())
	}
	return AppendBytes(append(b, headBigNeg), m.Bytes())
}

// digitsAtOnce is how many digits math/big is given at once: it takes the square of
// their number.
const digitsAtOnce = 1024

// parseDigits returns the integer that decimal digits write down. It halves them,
// and so costs what multiplying halves costs.
func parseDigits(s string) *big.Int {
	var powers []*big.Int // of 10, of digitsAtOnce<<i
	for n := digitsAtOnce; n < len(s); n *= 2 {
		if len(powers) == 0 {
			powers = append(powers, new(big.Int).Exp(big.NewInt(10), big.NewInt(digitsAtOnce), nil))
			continue
		}
		half := powers[len(powers)-1]
		powers = append(powers, new(big.Int).Mul(half, half))
	}
	return parseHalves(s, powers)
}

func parseHalves(s string, powers []*big.Int) *big.Int {
	if len(powers) == 0 {
		n, ok := new(big.Int).SetString(s, 10)
		if !ok {
			panic("canon: not digits: " + s) // JSON's grammar lets nothing else stand here
		}
		return n
	}
	last := len(powers) - 1
	low := digitsAtOnce << last
	if low >= len(s) {
		return parseHalves(s, powers[:last])
	}
	n := parseHalves(s[:len(s)-low], powers[:last])
	return n.Add(n.Mul(n, powers[last]), parseHalves(s[len(s)-low:], powers[:last]))
}
