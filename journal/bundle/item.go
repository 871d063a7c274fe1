package bundle

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// CBOR major types, RFC 8949 section 3.1, in the high three bits of a head.
const (
	majorMask  = 0xe0
	majorBytes = 2 << 5
	majorText  = 3 << 5
	majorArray = 4 << 5
	majorMap   = 5 << 5
	majorTag   = 6 << 5
)

// What a record's item is around the record.
const (
	headOfPair = majorArray | 2
	headOfLink = majorBytes | journal.LinkBytes
)

var (
	errCutOff    = errors.New("it is cut off")
	errHeadForm  = errors.New("its length is longer than it has to be")
	errMalformed = errors.New("no item begins like this, and where the next one begins is unknown")
)

// items reads a CBOR sequence item by item. It looks for where an item ends, and
// at nothing else in it: what it is, and whether it is canonical, is judged by who
// reads it. So a fault within an item does not hide those after it. Of a blob, which
// may be large, it keeps the head alone.
type items struct {
	in      *bufio.Reader
	at      int64 // where the next item begins
	n       uint64
	buf     []byte
	named   bool    // contents of blobs get their names
	content content // of the item at hand, where that is a blob
}

// content is what is known of the bytes in a blob.
type content struct {
	name  journal.Hash // zero where items.named is not set
	bytes uint64
}

const (
	readBytes = 64 << 10 // at once, whatever length the file claims
	keptBytes = 1 << 20  // of a buffer, for the next item
)

func newItems(from io.Reader, at int64) *items {
	return &items{in: bufio.NewReaderSize(from, readBytes), at: at}
}

// next returns the next item, of a blob its head, valid until the one after it, and
// where it begins.
// io.EOF means that there is none; after any error there is no next.
func (x *items) next() (item []byte, at int64, err error) {
	at = x.at
	if cap(x.buf) > keptBytes {
		x.buf = nil
	}
	x.buf, x.content = x.buf[:0], content{}
	for left := uint64(1); left > 0; { // items within this one that have not begun
		take := x.takeBytes
		if len(x.buf) == 0 {
			take = x.takeFirst
		}
		major, n, err := x.head()
		if err != nil {
			return nil, at, x.broken(err)
		}
		left--
		switch major {
		case majorBytes, majorText:
			if err := take(n); err != nil {
				return nil, at, x.broken(err)
			}
		case majorArray:
			left += min(n, maxItemBytes)
		case majorMap:
			left += 2 * min(n, maxItemBytes)
		case majorTag:
			left++
		}
		if uint64(len(x.buf))+left > maxItemBytes {
			return nil, at, errItemSize()
		}
	}
	x.at += int64(len(x.buf)) + int64(x.content.bytes)
	x.n++
	return x.buf, at, nil
}

func errItemSize() error {
	return fmt.Errorf("%w: an item of more than %d bytes", ErrLimit, maxItemBytes)
}

// headOfBytes returns the head of a byte string of n bytes, in its only form.
func headOfBytes(n uint64) []byte {
	head := canon.AppendUint(nil, n)
	head[0] |= majorBytes
	return head
}

// broken tells the end of the sequence from an end within an item.
func (x *items) broken(err error) error {
	if errors.Is(err, io.EOF) && len(x.buf) > 0 || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCutOff
	}
	return err
}

// head reads a head, RFC 8949 section 3.
func (x *items) head() (major byte, n uint64, err error) {
	first, err := x.in.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	x.buf = append(x.buf, first)
	major, info := first&majorMask, first&^majorMask
	switch {
	case info < 24:
		return major, uint64(info), nil
	case info > 27: // of indefinite length, or reserved
		return 0, 0, errMalformed
	}
	var arg [8]byte
	part := arg[8-1<<(info-24):]
	if _, err := io.ReadFull(x.in, part); err != nil {
		return 0, 0, err
	}
	x.buf = append(x.buf, part...)
	return major, binary.BigEndian.Uint64(arg[:]), nil
}

// takeFirst reads the n bytes of an item that is a byte string or a text. Those of a
// byte string, which is a blob, are not kept.
func (x *items) takeFirst(n uint64) error {
	if x.buf[0]&majorMask != majorBytes {
		return x.takeBytes(n)
	}
	if n > maxItemBytes {
		return errItemSize()
	}
	sum := io.Discard
	hash := sha256.New()
	if x.named {
		sum = hash
	}
	if _, err := io.CopyN(sum, x.in, int64(n)); err != nil {
		return err
	}
	x.content.bytes = n
	if x.named {
		x.content.name = journal.Hash(hash.Sum(nil))
	}
	return nil
}

// takeBytes reads n bytes. It makes room for them as they come.
func (x *items) takeBytes(n uint64) error {
	if n > maxItemBytes {
		return errItemSize()
	}
	for n > 0 {
		some, start := int(min(n, readBytes)), len(x.buf)
		x.buf = slices.Grow(x.buf, some)[:start+some]
		if _, err := io.ReadFull(x.in, x.buf[start:]); err != nil {
			return err
		}
		n -= uint64(some)
	}
	return nil
}

// scanned decodes an item that has the shape of a record's; next is the id that it has
// if it does not say another itself. The result has the item's bytes. Whether that is a
// record, its Err says.
func scanned(item []byte, next journal.Seq) (s journal.Scanned, ok bool) {
	end := len(item) - 1 - journal.LinkBytes
	if end < 2 || item[0] != headOfPair || item[1]&majorMask != majorArray || item[end] != headOfLink {
		return s, false
	}
	if s = journal.NewScanned(next, item[1:end:end], item[end+1:]); s.Err == nil {
		s.ID = s.Record.ID
	}
	return s, true
}
