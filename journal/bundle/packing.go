package bundle

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
)

// The parts of the file around the deflated items, RFC 1952.
const (
	memberMagic  = "\x1f\x8b\x08"
	memberHeader = memberMagic + "\x00\x00\x00\x00\x00\x00\xff"
	trailerBytes = 8

	// The second member: a header with an extra field "wk" of 32 bytes, which is the
	// sum of the first member, and nothing that is packed. Deflated bytes can be
	// changed so that they unpack to the same; by the sum that shows.
	sumBefore = "\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff\x24\x00wk\x20\x00"
	sumAfter  = "\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

// A file may unpack to so much, and beyond that to so many times its own size.
// Records hold hashes and links, so they never come near.
const (
	freeBytes = 1 << 30
	maxRatio  = 200
)

// What is wrong with the packing.
var (
	errHeader   = errors.New("its gzip header is not the one of a bundle")
	errTrailer  = errors.New("the checksum or size of gzip is another: it was changed or cut off")
	errSum      = errors.New("its SHA-256 is not the one that was written behind it: it was changed or cut off")
	errFollowed = errors.New("something follows its end")
)

func errUnpacked(most int64) error {
	return fmt.Errorf("%w: it unpacks to more than %d bytes", ErrLimit, most)
}

// inRatio reports whether so many packed bytes may unpack to so many.
func inRatio(unpacked, packed int64) bool { return unpacked <= freeBytes+maxRatio*packed }

// sumMember returns the second member.
func sumMember(sum []byte) []byte { return []byte(sumBefore + string(sum) + sumAfter) }

// packer packs what is written to it.
type packer struct {
	*gzip.Writer

	to  io.Writer
	sum hash.Hash
	n   int64 // bytes that were written to to
}

func newPacker(to io.Writer) *packer {
	p := &packer{to: to, sum: sha256.New()}
	p.Writer = gzip.NewWriter(packedTo{p})
	return p
}

// packedTo takes the first member.
type packedTo struct{ *packer }

func (t packedTo) Write(b []byte) (int, error) {
	t.sum.Write(b)
	n, err := t.to.Write(b)
	t.n += int64(n)
	return n, err
}

// Close writes what is left, and the second member.
func (p *packer) Close() error {
	if err := p.Writer.Close(); err != nil {
		return err
	}
	_, err := p.to.Write(sumMember(p.sum.Sum(nil)))
	return err
}

// packed reads the file as it is. It counts and sums up what is taken of it, and
// takes no byte ahead, so that it is known where the deflated part ends.
type packed struct {
	from             io.Reader
	buf              []byte
	pos, end, summed int // in buf
	sum              hash.Hash
	n                int64
	failed           error // of from, but for its end
}

func newPacked(from io.Reader) *packed {
	return &packed{from: from, buf: make([]byte, readBytes), sum: sha256.New()}
}

func (p *packed) fill() error {
	if p.pos < p.end {
		return nil
	}
	p.sumUp()
	n, err := io.ReadAtLeast(p.from, p.buf, 1)
	p.pos, p.end, p.summed = 0, n, 0
	if n > 0 {
		return nil
	}
	if !errors.Is(err, io.EOF) {
		p.failed = err
	}
	return err
}

// sumUp adds to the sum what was taken.
func (p *packed) sumUp() {
	p.sum.Write(p.buf[p.summed:p.pos])
	p.summed = p.pos
}

// Read and ReadByte are what package flate takes bytes by.
func (p *packed) Read(b []byte) (int, error) {
	if err := p.fill(); err != nil {
		return 0, err
	}
	n := copy(b, p.buf[p.pos:p.end])
	p.pos += n
	p.n += int64(n)
	return n, nil
}

func (p *packed) ReadByte() (byte, error) {
	if err := p.fill(); err != nil {
		return 0, err
	}
	p.pos++
	p.n++
	return p.buf[p.pos-1], nil
}

// unpacker unpacks a file, and copies to a writer what it returns.
type unpacker struct {
	in      *packed
	inflate io.Reader
	to      io.Writer
	crc     uint32
	n, most int64
	ended   bool  // all that was packed is unpacked
	failed  error // of to
}

// newUnpacker reads the header of gzip. Where that has another form than bundles
// give it, it is taken for damaged, and odd says so.
func newUnpacker(from io.Reader, to io.Writer, most int64) (u *unpacker, odd, err error) {
	in := newPacked(from)
	var header [len(memberHeader)]byte
	n, err := io.ReadFull(in, header[:])
	if in.failed != nil {
		return nil, nil, in.failed
	}
	if err != nil || !bytes.HasPrefix(header[:n], []byte(memberMagic)) {
		return nil, nil, fmt.Errorf("%w: no gzip file", ErrNotBundle)
	}
	if string(header[:]) != memberHeader {
		odd = errHeader
	}
	return &unpacker{in: in, inflate: flate.NewReader(in), to: to, most: most}, odd, nil
}

// Read implements io.Reader. At the end of what was packed, an error other than
// io.EOF says what is wrong with the rest of the file.
func (u *unpacker) Read(b []byte) (int, error) {
	n, err := u.inflate.Read(b)
	if _, failed := u.to.Write(b[:n]); failed != nil {
		u.failed = failed
		return 0, failed
	}
	u.crc = crc32.Update(u.crc, crc32.IEEETable, b[:n])
	u.n += int64(n)
	switch {
	case u.n > u.most:
		err = ErrSize
	case !inRatio(u.n, u.in.n):
		err = errUnpacked(freeBytes + maxRatio*u.in.n)
	case errors.Is(err, io.EOF):
		u.ended = true
		if wrong := u.readTrailer(); wrong != nil {
			err = wrong
		}
	}
	return n, err
}

// readTrailer reads what follows the deflated part.
func (u *unpacker) readTrailer() error {
	var trailer, want [trailerBytes]byte
	binary.LittleEndian.PutUint32(want[:], u.crc)
	binary.LittleEndian.PutUint32(want[4:], uint32(u.n)) // modulo 2^32, as RFC 1952 says
	if _, err := io.ReadFull(u.in, trailer[:]); err != nil || trailer != want {
		return errTrailer
	}
	u.in.sumUp()
	member := sumMember(u.in.sum.Sum(nil))
	have := make([]byte, len(member))
	if _, err := io.ReadFull(u.in, have); err != nil || !bytes.Equal(have, member) {
		return errSum
	}
	if u.in.fill() == nil {
		return errFollowed
	}
	return nil
}
