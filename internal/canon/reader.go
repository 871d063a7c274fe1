package canon

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/x448/float16"
)

// SyntaxError says where bytes stop being canonical.
type SyntaxError struct {
	Offset int // bytes from the start of the input
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("canon: offset %d: %s", e.Offset, e.Reason)
}

// Reader takes canonical items off a byte slice, in order. The first error
// sticks: read all that is expected, then ask Close. The slices and strings it
// returns are parts of the input (Bytes, TextBytes, Raw) or copies of it (Text).
type Reader struct {
	data      []byte
	off       int
	err       error
	normalize bool // negative zero is overwritten by zero instead of refused
}

// NewReader returns a Reader at the start of data.
func NewReader(data []byte) *Reader { return &Reader{data: data} }

// Offset returns how many bytes have been read.
func (r *Reader) Offset() int { return r.off }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Close returns the first error, or an error when bytes are left over.
func (r *Reader) Close() error {
	if r.err == nil && r.off != len(r.data) {
		r.fail(r.off, fmt.Sprintf("%d bytes follow the item", len(r.data)-r.off))
	}
	return r.err
}

func (r *Reader) fail(at int, reason string) {
	if r.err == nil {
		r.err = &SyntaxError{Offset: at, Reason: reason}
	}
}

// head reads one head and returns its major type and argument.
func (r *Reader) head() (major byte, n uint64, ok bool) {
	if r.err != nil {
		return 0, 0, false
	}
	start := r.off
	if start >= len(r.data) {
		r.fail(start, "unexpected end")
		return 0, 0, false
	}
	first := r.data[start]
	major, info := first&0xe0, first&0x1f
	if info < 24 {
		r.off++
		return major, uint64(info), true
	}
	if info > 27 {
		r.fail(start, "indefinite length or reserved head")
		return 0, 0, false
	}
	size := 1 << (info - 24)
	if len(r.data)-start-1 < size {
		r.fail(start, "unexpected end")
		return 0, 0, false
	}
	arg := r.data[start+1:]
	var least uint64
	switch size {
	case 1:
		n, least = uint64(arg[0]), 24
	case 2:
		n, least = uint64(binary.BigEndian.Uint16(arg)), 1<<8
	case 4:
		n, least = uint64(binary.BigEndian.Uint32(arg)), 1<<16
	default:
		n, least = binary.BigEndian.Uint64(arg), 1<<32
	}
	if n < least && major != majorOther {
		r.fail(start, "not the shortest form")
		return 0, 0, false
	}
	r.off += 1 + size
	return major, n, true
}

// expect reads a head of the given major type and returns its argument, 0 after an
// error.
func (r *Reader) expect(major byte, want string) uint64 {
	start := r.off
	got, n, ok := r.head()
	if ok && got != major {
		r.off, n = start, 0
		r.fail(start, "want "+want)
	}
	return n
}

// takeBytes returns the next n bytes, none after an error.
func (r *Reader) takeBytes(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.data)-r.off) {
		r.fail(r.off, "unexpected end")
		return nil
	}
	b := r.data[r.off : r.off+int(n) : r.off+int(n)]
	r.off += int(n)
	return b
}

// Uint reads an unsigned integer.
func (r *Reader) Uint() uint64 { return r.expect(majorUint, "an unsigned integer") }

// Bytes reads a byte string. The result is part of the input.
func (r *Reader) Bytes() []byte { return r.takeBytes(r.expect(majorBytes, "a byte string")) }

// Text reads a text string.
func (r *Reader) Text() string { return string(r.TextBytes()) }

// TextBytes is Text without the copy: the result is part of the input.
func (r *Reader) TextBytes() []byte {
	start := r.off
	b := r.takeBytes(r.expect(majorText, "a text string"))
	if !utf8.Valid(b) {
		r.fail(start, "text is not UTF-8")
		return nil
	}
	return b
}

// Bool reads false or true.
func (r *Reader) Bool() bool {
	if r.err != nil {
		return false
	}
	if r.off < len(r.data) {
		switch r.data[r.off] {
		case headFalse, headTrue:
			r.off++
			return r.data[r.off-1] == headTrue
		}
	}
	r.fail(r.off, "want a boolean")
	return false
}

// Array reads the head of an array and returns its length, which is never
// more than the bytes that are left.
func (r *Reader) Array() int { return r.container(majorArray, "an array") }

// Map reads the head of a map and returns the number of its pairs.
func (r *Reader) Map() int { return r.container(majorMap, "a map") }

func (r *Reader) container(major byte, want string) int {
	start := r.off
	n := r.expect(major, want)
	if n > uint64(len(r.data)-r.off) {
		r.fail(start, "more items than bytes")
		return 0
	}
	return int(n)
}

// ArrayOf reads the head of an array that must have n items.
func (r *Reader) ArrayOf(n int) {
	start := r.off
	if got := r.Array(); r.err == nil && got != n {
		r.fail(start, fmt.Sprintf("want an array of %d items, not %d", n, got))
	}
}

// Null reports whether the next item is null, and reads it if so.
func (r *Reader) Null() bool {
	if r.err == nil && r.off < len(r.data) && r.data[r.off] == headNull {
		r.off++
		return true
	}
	return false
}

// Raw reads one item of any kind, checked to be canonical. The result is part
// of the input.
func (r *Reader) Raw() Raw {
	start := r.off
	r.skip(MaxDepth)
	if r.err != nil {
		return nil
	}
	return Raw(r.data[start:r.off:r.off])
}

// Rest returns everything that has not been read, as part of the input and
// unchecked: for input that is known to be canonical.
func (r *Reader) Rest() Raw {
	if r.err != nil {
		return nil
	}
	rest := Raw(r.data[r.off:])
	r.off = len(r.data)
	return rest
}

// ErrNotFound says that a path leads nowhere.
var ErrNotFound = errors.New("canon: no such field")

// Lookup returns the item at path below the map in data, as part of data. Data
// must be canonical; only the way to the item is read.
func Lookup(data Raw, path ...string) (Raw, error) {
	for _, name := range path {
		r := Reader{data: data}
		found := false
		if len(data) == 0 || data[0]&0xe0 != majorMap {
			return nil, ErrNotFound
		}
		for n := r.Map(); n > 0 && !found && r.err == nil; n-- {
			key, value := r.TextBytes(), r.Raw()
			if r.err == nil && string(key) == name {
				data, found = value, true
			}
		}
		if r.err != nil {
			return nil, r.err
		}
		if !found {
			return nil, ErrNotFound
		}
	}
	return data, nil
}

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
