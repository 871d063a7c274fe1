package canon

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/x448/float16"
)

// Valid reports, as a *SyntaxError with the offset, whether data is anything
// but exactly one canonical item.
func Valid(data []byte) error { return ValidInside(data, 0) }

// ValidInside is Valid for an item that will stand in so many arrays and maps.
func ValidInside(data []byte, containers int) error {
	r := Reader{data: data}
	r.skip(MaxDepth - containers)
	return r.Close()
}

// skip reads one item and checks that it is canonical; depth is how many
// containers may still be opened.
func (r *Reader) skip(depth int) {
	start := r.off
	major, n, ok := r.head()
	if !ok {
		return
	}
	switch major {
	case majorUint, majorNint:
	case majorBytes:
		r.takeBytes(n)
	case majorText:
		r.off = start
		r.TextBytes()
	case majorArray:
		if r.open(start, n, 1, depth) {
			for ; n > 0 && r.err == nil; n-- {
				r.skip(depth - 1)
			}
		}
	case majorMap:
		if r.open(start, n, 2, depth) {
			r.skipPairs(n, depth-1)
		}
	case majorTag:
		r.off = start
		r.skipBig()
	default:
		r.skipOther(start)
	}
}

// open checks that a container of n times width items can be read.
func (r *Reader) open(start int, n, width uint64, depth int) bool {
	if depth == 0 {
		r.fail(start, "nested too deep")
		return false
	}
	if n > uint64(len(r.data)-r.off)/width {
		r.fail(start, "more items than bytes")
		return false
	}
	return true
}

func (r *Reader) skipPairs(n uint64, depth int) {
	var last []byte
	for ; n > 0 && r.err == nil; n-- {
		start := r.off
		r.TextBytes()
		key := r.data[start:r.off]
		switch c := bytes.Compare(last, key); {
		case c == 0: // a fault before this one sticks
			r.fail(start, "duplicate map key")
		case c > 0:
			r.fail(start, "map keys out of order")
		}
		last = key
		r.skip(depth)
	}
}

// skipBig reads a bignum, RFC 8949 section 3.4.3: only where 64 bits do not
// suffice, and without leading zeros.
func (r *Reader) skipBig() {
	start := r.off
	head := r.data[start]
	if head != headBigPos && head != headBigNeg {
		r.fail(start, "a tag other than a bignum")
		return
	}
	r.off++
	b := r.Bytes()
	if r.err == nil && (len(b) <= 8 || b[0] == 0) {
		r.fail(start, "not the shortest form")
	}
}

func (r *Reader) skipOther(start int) {
	arg := r.data[start+1 : r.off]
	var ok bool
	switch r.data[start] {
	case headFalse, headTrue, headNull:
		ok = true
	case headFloat16:
		bits := float16.Frombits(binary.BigEndian.Uint16(arg))
		if bits == 0x8000 && r.normalize {
			arg[0], bits = 0, 0
		}
		ok = bits.IsFinite() && bits != 0x8000
	case headFloat32:
		f := math.Float32frombits(binary.BigEndian.Uint32(arg))
		ok = finite(float64(f)) && float16.Fromfloat32(f).Float32() != f
	case headFloat64:
		f := math.Float64frombits(binary.BigEndian.Uint64(arg))
		ok = finite(f) && float64(float32(f)) != f
	}
	if !ok {
		r.fail(start, "a float that is not finite or not in its shortest form, or a simple value")
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
