package canon

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// base64Pairs has the two characters of each 12 bits, the first in the low byte.
var base64Pairs = newBase64Pairs() //nolint:gochecknoglobals // an immutable table

func newBase64Pairs() (pairs [1 << 12]uint16) {
	var digits [64]byte
	for i := range digits {
		digits[i] = base64.StdEncoding.EncodeToString([]byte{byte(i << 2)})[0]
	}
	for i := range pairs {
		pairs[i] = uint16(digits[i>>6]) | uint16(digits[i&63])<<8
	}
	return pairs
}

// appendBase64 appends b in standard base64. The chain takes it of every record, so it
// encodes six bytes at a time; the library does what is left.
func appendBase64(to, b []byte) []byte {
	n := base64.StdEncoding.EncodedLen(len(b))
	to = slices.Grow(to, n)
	out := to[len(to) : len(to)+n]
	for len(b) >= 8 {
		bits := binary.BigEndian.Uint64(b)
		binary.LittleEndian.PutUint64(out, uint64(base64Pairs[bits>>52])|uint64(base64Pairs[bits>>40&0xfff])<<16|
			uint64(base64Pairs[bits>>28&0xfff])<<32|uint64(base64Pairs[bits>>16&0xfff])<<48)
		b, out = b[6:], out[8:]
	}
	base64.StdEncoding.Encode(out, b)
	return to[:len(to)+n]
}
