package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"sort"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// The layout of an archive; see the package comment.
const (
	archiveMagic   = "wkarchv1"
	archivePlace   = 8 + idLen + sha256.Size // of a member in the index
	archiveFooter  = 8 + 8 + 2*idLen + 3*sha256.Size + len(archiveMagic)
	memberBytes    = 256 << 10 // how long the records of a member get
	memberMaxBytes = 1 << 20   // more is not read: a record is far shorter
)

var errCutOff = errors.New("it is not an archive, or it is cut off")

// place is where a member begins.
type place struct {
	offset uint64
	first  journal.Seq  // record
	before journal.Hash // the chain root before it
}

// contents are what an archive's footer says of it.
type contents struct {
	index   uint64 // offset
	members uint64
	first   journal.Seq
	last    journal.Seq
	before  journal.Hash // the chain root before the first record
	root    journal.Hash // with the last
	sum     journal.Hash // SHA-256 of all before it
}

// archiveWriter writes records, in order, to an archive.
type archiveWriter struct {
	to    io.Writer
	sum   hash.Hash
	size  uint64
	chain *canon.Chain
	c     contents

	index   []byte
	members []byte // the records of the one that is gathered
	begin   place
}

func newArchiveWriter(to io.Writer, before journal.Head) (*archiveWriter, error) {
	w := &archiveWriter{
		to: to, sum: sha256.New(), chain: canon.ResumeChain(before.Root),
		c: contents{first: before.ID + 1, last: before.ID, before: before.Root},
	}
	return w, w.write([]byte(archiveMagic))
}

func (w *archiveWriter) write(b []byte) error {
	w.sum.Write(b)
	w.size += uint64(len(b))
	_, err := w.to.Write(b)
	return err
}

func (w *archiveWriter) add(e entry) error {
	if len(w.members) == 0 {
		w.begin = place{offset: w.size, first: journal.Seq(e.ID), before: w.chain.Root()}
	}
	root := w.chain.Add(e.ID, e.Kind, e.record)
	if !bytes.Equal(root[:linkLen], e.link) {
		return damagedRecord(journal.Seq(e.ID), errLink)
	}
	r := journal.Stored{ID: journal.Seq(e.ID), Bytes: e.record, Root: root}
	at := len(w.members)
	w.members = append(w.members, make([]byte, frameBytes+len(r.Bytes))...)
	putFrame(w.members[at:], r)
	w.c.last = r.ID
	if len(w.members) < memberBytes {
		return nil
	}
	return w.endMember()
}

func (w *archiveWriter) endMember() error {
	if len(w.members) == 0 {
		return nil
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err := zip.Write(w.members)
	if err := errors.Join(err, zip.Close()); err != nil {
		return err
	}
	w.index = appendPlace(w.index, w.begin)
	w.members, w.c.members = w.members[:0], w.c.members+1
	return w.write(packed.Bytes())
}

// end writes index and footer.
func (w *archiveWriter) end() (contents, error) {
	if err := w.endMember(); err != nil {
		return contents{}, err
	}
	w.c.index, w.c.root = w.size, w.chain.Root()
	if err := w.write(w.index); err != nil {
		return contents{}, err
	}
	if err := w.write(w.c.appendFacts(nil)); err != nil {
		return contents{}, err
	}
	w.sum.Sum(w.c.sum[:0])
	_, err := w.to.Write(append(w.c.sum[:], archiveMagic...))
	return w.c, err
}

func appendPlace(b []byte, p place) []byte {
	b = binary.BigEndian.AppendUint64(b, p.offset)
	b = binary.BigEndian.AppendUint64(b, uint64(p.first))
	return append(b, p.before[:]...)
}

func parsePlace(b []byte) place {
	p := place{offset: binary.BigEndian.Uint64(b), first: journal.Seq(binary.BigEndian.Uint64(b[8:]))}
	copy(p.before[:], b[8+idLen:])
	return p
}

// appendFacts appends the footer up to the sum.
func (c *contents) appendFacts(b []byte) []byte {
	for _, n := range []uint64{c.index, c.members, uint64(c.first), uint64(c.last)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return append(append(b, c.before[:]...), c.root[:]...)
}

// archiveFile is an archive that is open for reading.
type archiveFile struct {
	contents

	from io.ReaderAt
	size int64
}

// readArchive reads the footer of an archive of so many bytes.
func readArchive(from io.ReaderAt, size int64) (*archiveFile, error) {
	b := make([]byte, archiveFooter)
	if size < int64(len(archiveMagic)+archiveFooter) {
		return nil, errCutOff
	}
	if err := readFull(from, b, size-int64(archiveFooter)); err != nil {
		return nil, err
	}
	if string(b[archiveFooter-len(archiveMagic):]) != archiveMagic {
		return nil, errCutOff
	}
	a := &archiveFile{from: from, size: size}
	number := func(at int) uint64 { return binary.BigEndian.Uint64(b[8*at:]) }
	a.index, a.members, a.first, a.last = number(0), number(1), journal.Seq(number(2)), journal.Seq(number(3))
	copy(a.before[:], b[32:])
	copy(a.root[:], b[64:])
	copy(a.sum[:], b[96:])
	room := uint64(size) - uint64(archiveFooter)
	if a.members == 0 || a.members > room/archivePlace || a.index != room-a.members*archivePlace || a.first == 0 || a.last < a.first {
		return nil, errShape
	}
	return a, nil
}

func readFull(from io.ReaderAt, b []byte, at int64) error {
	n, err := from.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return errCutOff
	}
	return err
}

// place returns where a member begins; that after the last is where they end.
func (a *archiveFile) place(n uint64) (place, error) {
	if n == a.members {
		return place{offset: a.index, first: a.last + 1, before: a.root}, nil
	}
	b := make([]byte, archivePlace)
	err := readFull(a.from, b, int64(a.index+n*archivePlace))
	return parsePlace(b), err
}

// memberOf returns the number of the member that holds a record.
func (a *archiveFile) memberOf(id journal.Seq) (uint64, error) {
	var failed error
	after := sort.Search(int(a.members), func(n int) bool {
		p, err := a.place(uint64(n))
		failed = errors.Join(failed, err)
		return failed != nil || p.first > id
	})
	if failed == nil && after == 0 {
		failed = errShape
	}
	return uint64(max(after, 1) - 1), failed
}

// member returns the records of a member as a segment holds them, and its first.
func (a *archiveFile) member(n uint64) (first journal.Seq, segment []byte, err error) {
	p, err := a.place(n)
	if err != nil {
		return 0, nil, err
	}
	next, err := a.place(n + 1)
	if err != nil {
		return 0, nil, err
	}
	if p.offset < uint64(len(archiveMagic)) || next.offset < p.offset || next.offset > a.index {
		return p.first, nil, errShape
	}
	in := io.NewSectionReader(a.from, int64(p.offset), int64(next.offset-p.offset))
	zip, err := gzip.NewReader(in)
	if err != nil {
		return p.first, nil, err
	}
	segment, err = io.ReadAll(io.LimitReader(zip, memberMaxBytes+1))
	if err == nil && len(segment) > memberMaxBytes {
		err = errShape
	}
	return p.first, segment, err
}

// check reads all of an archive and compares it with its chain and its sum. An
// error names the first member or record that is not what was written.
func (a *archiveFile) check() error {
	chain, next := canon.ResumeChain(a.before), a.first
	for n := range a.members {
		p, err := a.place(n)
		if err == nil && (p.first != next || p.before != chain.Root()) {
			err = errShape
		}
		if err != nil {
			return memberDamage(n, next, err)
		}
		first, segment, err := a.member(n)
		if err != nil {
			return memberDamage(n, next, err)
		}
		for e, err := range segmentEntries(first, segment, first) {
			if err != nil {
				return memberDamage(n, next, err)
			}
			root := chain.Add(e.ID, e.Kind, e.record)
			if !bytes.Equal(root[:linkLen], e.link) {
				return memberDamage(n, next, damagedRecord(next, errLink))
			}
			next++
		}
	}
	if next != a.last+1 || chain.Root() != a.root {
		return errShape
	}
	return a.checkSum()
}

func memberDamage(n uint64, id journal.Seq, err error) error {
	return &DamageError{What: fmt.Sprintf("member %d, from record #%d on,", n+1, id), ID: id, Err: err}
}

// checkSum finds what no record shows, such as a changed gzip header.
func (a *archiveFile) checkSum() error {
	sum := sha256.New()
	covered := a.size - int64(sha256.Size+len(archiveMagic))
	if _, err := io.Copy(sum, io.NewSectionReader(a.from, 0, covered)); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), a.sum[:]) {
		return errSum
	}
	return nil
}

// entries yields the records from one on, each valid until the next.
func (a *archiveFile) entries(from journal.Seq, member func(n uint64) (journal.Seq, []byte, error)) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		n, err := a.memberOf(from)
		next := from
		for ; err == nil && n < a.members; n++ {
			first, segment, failed := member(n)
			if err = failed; err != nil {
				break
			}
			for e, err := range segmentEntries(first, segment, next) {
				if !yield(e, err) || err != nil {
					return
				}
				next++
			}
		}
		if err == nil && next != a.last+1 {
			err = errShape
		}
		if err != nil {
			yield(entry{}, memberDamage(n, next, err))
		}
	}
}

// openArchive opens an archive file.
func openArchive(files vfs.FS, path string) (*archiveFile, vfs.File, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	var a *archiveFile
	if err == nil {
		a, err = readArchive(f, info.Size())
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return a, f, nil
}
