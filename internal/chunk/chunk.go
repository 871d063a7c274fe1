// Package chunk cuts contents into pieces by what they hold, so that contents that
// have long parts in common have most of their pieces in common, wherever these
// parts stand: equal pieces need to be kept once.
//
// Where [Cut] ends a piece depends on the 64 bytes before, so an insertion changes the
// pieces around it and no others. It is FastCDC (Xia et al., USENIX ATC 2016, section
// 4): a gear hash, h = h<<1 + gear[byte], and a piece ends where the highest bits of h
// are zero, 11 of them up to 1024 bytes and 9 beyond. Gear[b] is the first 8 bytes,
// big-endian, of SHA-256 of the byte b. No piece but the last of a part is shorter than
// 512 bytes, and none is longer than 8192, or 63 bytes more at the end of a part.
//
// [Build] cuts each part of a content by itself: a string of CBOR of more than 8192 bytes begins one. So a request that
// is data of an event and then params of an intent has the same pieces in both, whatever stands before it.
//
// # Lists
//
// A content in pieces is a list: of its pieces, which whoever keeps them has numbered,
// or, where they are many, of pieces that are lists themselves.
//
//	list = uvarint(level) ‖ entry …
//	entry = uvarint(number) ‖ uvarint(bytes)
//
// Bytes are those of the content that an entry stands for. At level 0 the pieces are the
// content's, one after the other; at a level above each is a list of the level below. A
// list of up to 24 entries stands for itself. A longer one is cut into lists of the same
// level, after an entry whose piece has a SHA-256 that begins with a byte below 4, but
// not before 16 entries or after 256; and these are listed on the level above.
//
// Uvarints are those of encoding/binary, in their shortest form. Readers take any list
// that is within their bounds, however it was cut: no level above 4; at least 64 bytes
// for every piece of a content but its last.
package chunk

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
)

// Sum is the SHA-256 of a piece.
type Sum = [sha256.Size]byte

// The lengths of pieces in bytes, and how many bits of the hash have to be zero where
// one ends. They are chosen by measurement: docs/adr/0029-long-contents-in-pieces.md.
const (
	shortest = 512
	normal   = 1024
	longest  = 8192

	bitsBefore = 11 // up to normal
	bitsAfter  = 9
)

const (
	maskBefore = (1<<bitsBefore - 1) << (64 - bitsBefore)
	maskAfter  = (1<<bitsAfter - 1) << (64 - bitsAfter)
)

//nolint:gochecknoglobals // an immutable table
var gear = func() (g [256]uint64) {
	for i := range g {
		sum := sha256.Sum256([]byte{byte(i)})
		g[i] = binary.BigEndian.Uint64(sum[:])
	}
	return g
}()

// Cut returns how many bytes of data are its first piece: all of them where that is
// the last.
func Cut(data []byte) int {
	n := min(len(data), longest)
	if n <= shortest {
		return n
	}
	g, h, i := &gear, uint64(0), shortest
	for end := min(n, normal); i < end; i++ {
		if h = h<<1 + g[data[i]]; h&maskBefore == 0 {
			return i + 1
		}
	}
	for ; i < n; i++ {
		if h = h<<1 + g[data[i]]; h&maskAfter == 0 {
			return i + 1
		}
	}
	return n
}

// parts yields where the parts of a content end, each of at least leastBytes: a string of CBOR (RFC 8949, section 3) begins one if it is
// longer than the longest piece. So what stands before it does not show in its pieces.
func parts(content []byte) iter.Seq[int] {
	return func(yield func(end int) bool) {
		from := 0
		for at := range longStrings(content) {
			if at-from < leastBytes {
				continue
			}
			if !yield(at) {
				return
			}
			from = at
		}
		if from < len(content) {
			yield(len(content))
		}
	}
}

// longStrings yields where strings of CBOR begin, texts and bytes, that are longer than the longest piece, as far as the content is CBOR.
func longStrings(content []byte) iter.Seq[int] {
	return func(yield func(at int) bool) {
		for at := 0; at < len(content); {
			major, n := content[at]>>5, uint64(content[at]&0x1f)
			at++
			if n >= 24 {
				size := 1 << (n - 24)
				if n > 27 || len(content)-at < size {
					return
				}
				n = 0
				for _, b := range content[at : at+size] {
					n = n<<8 | uint64(b)
				}
				at += size
			}
			if major != majorBytes && major != majorText {
				continue // what is in an array or a map, or behind a tag, comes next
			}
			if n > uint64(len(content)-at) || n > longest && !yield(at) {
				return
			}
			at += int(n)
		}
	}
}

// Types of CBOR's items.
const (
	majorBytes = 2
	majorText  = 3
)
