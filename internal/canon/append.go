package canon

import (
	"encoding/binary"
	"math"
)

// CBOR major types, RFC 8949 section 3.1, in the high three bits of a head.
const (
	majorUint  = 0 << 5
	majorNint  = 1 << 5
	majorBytes = 2 << 5
	majorText  = 3 << 5
	majorArray = 4 << 5
	majorMap   = 5 << 5
	majorTag   = 6 << 5
	majorOther = 7 << 5
)

// Heads of single-byte items and of floats.
const (
	headFalse   = majorOther | 20
	headTrue    = majorOther | 21
	headNull    = majorOther | 22
	headFloat16 = majorOther | 25
	headFloat32 = majorOther | 26
	headFloat64 = majorOther | 27
	headBigPos  = majorTag | 2
	headBigNeg  = majorTag | 3
)

func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n <= math.MaxUint8:
		return append(b, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, major|27), n)
	}
}

// AppendUint appends an unsigned integer.
func AppendUint(b []byte, n uint64) []byte { return appendHead(b, majorUint, n) }

// AppendInt appends a signed integer.
func AppendInt(b []byte, n int64) []byte {
	if n < 0 {
		return appendHead(b, majorNint, uint64(-(n + 1)))
	}
	return appendHead(b, majorUint, uint64(n))
}

// AppendBytes appends a byte string.
func AppendBytes(b, data []byte) []byte {
	return append(appendHead(b, majorBytes, uint64(len(data))), data...)
}

// AppendText appends a text string, which must be valid UTF-8.
func AppendText(b []byte, s string) []byte {
	return append(appendHead(b, majorText, uint64(len(s))), s...)
}

// AppendTexts appends an array of text strings.
func AppendTexts(b []byte, texts []string) []byte {
	b = AppendArray(b, len(texts))
	for _, s := range texts {
		b = AppendText(b, s)
	}
	return b
}

// AppendArray appends the head of an array; n items must follow.
func AppendArray(b []byte, n int) []byte { return appendHead(b, majorArray, uint64(n)) }

// AppendMap appends the head of a map; n pairs must follow, sorted by the
// bytes of their encoded keys.
func AppendMap(b []byte, n int) []byte { return appendHead(b, majorMap, uint64(n)) }

// AppendBool appends false or true.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, headTrue)
	}
	return append(b, headFalse)
}

// AppendNull appends null.
func AppendNull(b []byte) []byte { return append(b, headNull) }

// AppendRaw appends an item that is canonical already, or null for an empty one.
func AppendRaw(b []byte, r Raw) []byte {
	if len(r) == 0 {
		return AppendNull(b)
	}
	return append(b, r...)
}
