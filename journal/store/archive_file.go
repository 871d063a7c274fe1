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
	archivePlace   = 8 + idLen + sha256.Size // a place
	archiveFooter  = archiveFacts + len(archiveMagic)
	archiveFacts   = 8 + 8 + 2*idLen + 3*sha256.Size // contents
	memberBytes    = 256 << 10                       // how long the records of a member get
	memberMaxBytes = 1 << 20                         // more is not read: a record is far shorter
)

var errCutOff = errors.New("it is not an archive, or it is cut off")

// place is where a member begins. It stands in the index field by field.
type place struct {
	Offset uint64
	First  journal.Seq  // record
	Before journal.Hash // the chain root before it
}

// contents are what an archive's footer says of it. They stand there field by field.
type contents struct {
	Index   uint64 // offset
	Members uint64
	First   journal.Seq
	Last    journal.Seq
	Before  journal.Hash // the chain root before the first record
	Root    journal.Hash // with the last
	Sum     journal.Hash // SHA-256 of all before it
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
		c: contents{First: before.ID + 1, Last: before.ID, Before: before.Root},
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
		w.begin = place{Offset: w.size, First: journal.Seq(e.ID), Before: w.chain.Root()}
	}
	root := w.chain.Add(e.ID, e.Kind, e.record)
	if !bytes.Equal(root[:linkLen], e.link) {
		return damagedRecord(journal.Seq(e.ID), errLink)
	}
	r := journal.Stored{ID: journal.Seq(e.ID), Bytes: e.record, Root: root}
	at := len(w.members)
	w.members = append(w.members, make([]byte, frameBytes+len(r.Bytes))...)
	putFrame(w.members[at:], r)
	w.c.Last = r.ID
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
	w.index = appendFields(w.index, w.begin)
	w.members, w.c.Members = w.members[:0], w.c.Members+1
	return w.write(packed.Bytes())
}

// end writes index and footer.
func (w *archiveWriter) end() (contents, error) {
	if err := w.endMember(); err != nil {
		return contents{}, err
	}
	w.c.Index, w.c.Root = w.size, w.chain.Root()
	if err := w.write(w.index); err != nil {
		return contents{}, err
	}
	if err := w.write(appendFields(nil, w.c)[:archiveFacts-sha256.Size]); err != nil {
		return contents{}, err
	}
	w.sum.Sum(w.c.Sum[:0])
	_, err := w.to.Write(append(w.c.Sum[:], archiveMagic...))
	return w.c, err
}

// appendFields appends the fields of a place or of contents.
func appendFields(b []byte, of any) []byte {
	b, err := binary.Append(b, binary.BigEndian, of)
	if err != nil {
		panic(err) // all of them are of a fixed size
	}
	return b
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
	if _, err := binary.Decode(b, binary.BigEndian, &a.contents); err != nil {
		return nil, err
	}
	room := uint64(size) - uint64(archiveFooter)
	if a.Members == 0 || a.Members > room/archivePlace || a.Index != room-a.Members*archivePlace || a.First == 0 || a.Last < a.First {
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
func (a *archiveFile) place(n uint64) (p place, err error) {
	if n == a.Members {
		return place{Offset: a.Index, First: a.Last + 1, Before: a.Root}, nil
	}
	b := make([]byte, archivePlace)
	if err := readFull(a.from, b, int64(a.Index+n*archivePlace)); err != nil {
		return place{}, err
	}
	_, err = binary.Decode(b, binary.BigEndian, &p)
	return p, err
}

// memberOf returns the number of the member that holds a record.
func (a *archiveFile) memberOf(id journal.Seq) (uint64, error) {
	var failed error
	after := sort.Search(int(a.Members), func(n int) bool {
		p, err := a.place(uint64(n))
		failed = errors.Join(failed, err)
		return failed != nil || p.First > id
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
	if p.Offset < uint64(len(archiveMagic)) || next.Offset < p.Offset || next.Offset > a.Index {
		return p.First, nil, errShape
	}
	in := io.NewSectionReader(a.from, int64(p.Offset), int64(next.Offset-p.Offset))
	zip, err := gzip.NewReader(in)
	if err != nil {
		return p.First, nil, err
	}
	segment, err = io.ReadAll(io.LimitReader(zip, memberMaxBytes+1))
	if err == nil && len(segment) > memberMaxBytes {
		err = errShape
	}
	return p.First, segment, err
}

// check reads all of an archive and compares it with its chain and its sum. An
// error names the first member or record that is not what was written.
func (a *archiveFile) check() error {
	chain, next := canon.ResumeChain(a.Before), a.First
	for n := range a.Members {
		p, err := a.place(n)
		if err == nil && (p.First != next || p.Before != chain.Root()) {
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
	if next != a.Last+1 || chain.Root() != a.Root {
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
	if !bytes.Equal(sum.Sum(nil), a.Sum[:]) {
		return errSum
	}
	return nil
}

// entries yields the records from one on, each valid until the next.
func (a *archiveFile) entries(from journal.Seq, member func(n uint64) (journal.Seq, []byte, error)) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		n, err := a.memberOf(from)
		next := from
		for ; err == nil && n < a.Members; n++ {
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
		if err == nil && next != a.Last+1 {
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
