package store

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/world"
)

// Why records are not archived.
var (
	ErrNothingToArchive = errors.New("no records are left there to archive")
	ErrNeededToOpen     = errors.New("opening the world needs these records")
)

// Archived is a file that holds records which the store holds no more.
type Archived struct {
	File  string // its absolute path
	First world.Seq
	Last  world.Head
	Sum   world.Hash // SHA-256 of the file without its last 40 bytes, which it names
}

// archives knows what was archived, and the member that was read last.
type archives struct {
	list atomic.Pointer[[]Archived] // ascending, without gap

	mu   sync.Mutex // guards what follows, the member that was read last
	file string
	n    uint64

	first   world.Seq
	segment []byte
}

func (x *archives) all() []Archived {
	if list := x.list.Load(); list != nil {
		return *list
	}
	return nil
}

// of returns the archive that holds a record, nil where the store does.
func (x *archives) of(id world.Seq) *Archived {
	for _, a := range x.all() {
		if a.First <= id && id <= a.Last.ID {
			return &a
		}
	}
	return nil
}

// Archived returns the archives, from the first record on; with each other they
// hold those from the second record up to the last of them. Missing reports why one
// cannot be read.
func (s *Store) Archived() []Archived { return slices.Clone(s.archives.all()) }

// Missing returns why an archive's file cannot be read, a world.ErrArchived, or
// nil. It does not read all of it.
func (s *Store) Missing(a Archived) error {
	_, f, err := s.openArchived(a)
	if err != nil {
		return err
	}
	return f.Close()
}

func (s *Store) openArchived(a Archived) (*archiveFile, vfs.File, error) {
	file, f, err := openArchive(s.opts.FS, a.File)
	if err == nil && (file.first != a.First || file.last != a.Last.ID || file.sum != a.Sum) {
		err = errors.Join(errors.New("it is another archive"), f.Close())
	}
	if err != nil {
		return nil, nil, &world.ArchivedError{File: a.File, From: a.First, To: a.Last.ID, Err: err}
	}
	return file, f, nil
}

// archivedEntries yields the records of an archive from one on.
func (s *Store) archivedEntries(a Archived, from world.Seq) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		file, f, err := s.openArchived(a)
		if err != nil {
			yield(entry{}, err)
			return
		}
		defer f.Close() //nolint:errcheck // only read
		for e, err := range file.entries(from, func(n uint64) (world.Seq, []byte, error) { return s.archives.member(file, a.File, n) }) {
			if err != nil {
				err = &world.ArchivedError{File: a.File, From: a.First, To: a.Last.ID, Err: err}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// member is archiveFile.member that remembers the last one. Nobody changes what
// it returns.
func (x *archives) member(file *archiveFile, path string, n uint64) (world.Seq, []byte, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.segment != nil && x.file == path && x.n == n {
		return x.first, x.segment, nil
	}
	first, segment, err := file.member(n)
	if err != nil {
		return first, nil, err
	}
	x.file, x.n, x.first, x.segment = path, n, first, segment
	return first, segment, nil
}

// Archive moves the records that are left in the store up to one, but for record
// 1, to a new file of that absolute path. It is durable on return. A crash leaves
// either the store as it was, perhaps with that file beside, or the move complete.
// An image must lie after the records: opening never needs an archive.
func (s *Store) Archive(to world.Seq, path string) (Archived, error) {
	a, err := s.archive(to, path)
	if err != nil {
		return Archived{}, fmt.Errorf("store: archive up to #%d: %w", to, err)
	}
	return a, nil
}

func (s *Store) archive(to world.Seq, path string) (Archived, error) {
	s.settleImages()
	before, err := s.archivable(to)
	if err != nil {
		return Archived{}, err
	}
	if _, err := s.opts.FS.Stat(path); err == nil {
		return Archived{}, fmt.Errorf("%s: %w", path, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Archived{}, err
	}
	c, err := s.writeArchive(before, to, path)
	if err != nil {
		return Archived{}, err
	}
	a := Archived{File: path, First: before.ID + 1, Last: world.Head{ID: c.last, Root: c.root}, Sum: c.sum}
	b, err := s.moved(a)
	if err != nil {
		return Archived{}, err
	}
	// Readers know where the records are before these go.
	list := append(s.Archived(), a)
	s.archives.list.Store(&list)
	if err := s.commit(b); err != nil {
		return Archived{}, s.fail(err)
	}
	return a, s.compact(recordKey(1), recordKey(to+1))
}

// archivable returns the head before the first record that is to be archived.
func (s *Store) archivable(to world.Seq) (world.Head, error) {
	v, err := s.look()
	if err != nil {
		return world.Head{}, err
	}
	defer v.close()
	imaged, err := v.lastHead()
	if err != nil {
		return world.Head{}, err
	}
	before := world.Head{}
	if list := s.archives.all(); len(list) > 0 {
		before = list[len(list)-1].Last
	} else {
		for r, err := range s.scan(before) {
			if err != nil {
				return world.Head{}, err
			}
			before = world.Head{ID: r.ID, Root: r.Root}
			break
		}
	}
	switch {
	case to <= before.ID:
		return before, fmt.Errorf("%w: they begin with #%d", ErrNothingToArchive, before.ID+1)
	case to >= imaged:
		return before, fmt.Errorf("%w: the last image is of #%d", ErrNeededToOpen, imaged)
	}
	return before, nil
}

// writeArchive writes an archive, reads it back, and gives it its name: all of
// that is durable on return.
func (s *Store) writeArchive(before world.Head, to world.Seq, path string) (contents, error) {
	files, making := s.opts.FS, path+".new"
	f, err := files.Create(making, vfs.WriteCategoryUnspecified)
	if err != nil {
		return contents{}, err
	}
	c, err := s.fillArchive(f, before, to)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = checkArchive(files, making, c)
	}
	if err == nil {
		err = files.Rename(making, path)
	}
	if err != nil {
		return contents{}, errors.Join(err, files.Remove(making))
	}
	return c, syncDir(files, files.PathDir(path))
}

func (s *Store) fillArchive(f vfs.File, before world.Head, to world.Seq) (contents, error) {
	out := bufio.NewWriterSize(f, 64<<10)
	w, err := newArchiveWriter(out, before)
	if err != nil {
		return contents{}, err
	}
	for e, err := range s.entries(before.ID + 1) {
		if err != nil {
			return contents{}, err
		}
		if err := w.add(e); err != nil {
			return contents{}, err
		}
		if world.Seq(e.ID) == to {
			break
		}
	}
	c, err := w.end()
	return c, errors.Join(err, out.Flush())
}

// checkArchive reads a file that was written and compares it with what it is to
// hold.
func checkArchive(files vfs.FS, path string, want contents) error {
	a, f, err := openArchive(files, path)
	if err != nil {
		return err
	}
	err = a.check()
	if err == nil && a.contents != want {
		err = errShape
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s was not written right: %w", path, err)
	}
	return nil
}

// moved returns the batch that takes archived records out of the store. Records
// that stay may share a segment with some that go.
func (s *Store) moved(a Archived) (*pebble.Batch, error) {
	b := s.db.NewBatch()
	if a.First == 2 {
		segment, err := s.segmentFrom(1)
		if err != nil {
			return nil, err
		}
		first, _, ok := cutFrame(segment)
		if !ok {
			return nil, damagedRecord(1, errShape)
		}
		if err := b.Set(recordKey(1), first, nil); err != nil {
			return nil, err
		}
	}
	rest, err := s.segmentFrom(a.Last.ID + 1)
	if err != nil {
		return nil, err
	}
	if err := b.Set(recordKey(a.Last.ID+1), rest, nil); err != nil {
		return nil, err
	}
	if err := b.DeleteRange(recordKey(a.First), recordKey(a.Last.ID+1), nil); err != nil {
		return nil, err
	}
	body := binary.BigEndian.AppendUint64(nil, uint64(a.First))
	body = append(append(append(body, a.Last.Root[:]...), a.Sum[:]...), a.File...)
	newSealer().set(b, numberKey(archivePrefix, a.Last.ID), body)
	return b, nil
}

// segmentFrom returns the records of a segment from one on.
func (s *Store) segmentFrom(id world.Seq) ([]byte, error) {
	it, err := s.iterate([]byte{recordPrefix}, recordKey(id+1))
	if err != nil {
		return nil, err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	if !it.Last() {
		return nil, damagedRecord(id, errors.Join(world.ErrNotFound, it.Error()))
	}
	first, segment, err := segmentAt(it)
	for at := first; err == nil && at < id; at++ {
		var ok bool
		if _, segment, ok = cutFrame(segment); !ok {
			err = errLost
		}
	}
	if err == nil && len(segment) == 0 {
		err = world.ErrNotFound
	}
	if err != nil {
		return nil, damagedRecord(id, err)
	}
	return bytes.Clone(segment), nil
}

func parseArchived(key, body []byte) (Archived, error) {
	const sums = 2 * len(world.Hash{})
	if !hasNumber(key) || len(body) <= idLen+sums {
		return Archived{}, damaged(key, errShape)
	}
	a := Archived{First: world.Seq(binary.BigEndian.Uint64(body)), Last: world.Head{ID: recordID(key)}, File: string(body[idLen+sums:])}
	copy(a.Last.Root[:], body[idLen:])
	copy(a.Sum[:], body[idLen+len(a.Sum):])
	if a.First < 2 || a.First > a.Last.ID {
		return Archived{}, damaged(key, errShape)
	}
	return a, nil
}

// loadArchives reads which records are archived.
func (s *Store) loadArchives() error {
	it, err := s.iterate([]byte{archivePrefix}, []byte{archivePrefix + 1})
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	var list []Archived
	seal := newSealer()
	for ok := it.First(); ok; ok = it.Next() {
		body, err := openAt(seal, it)
		if err != nil {
			return err
		}
		a, err := parseArchived(bytes.Clone(it.Key()), body)
		if err != nil {
			return err
		}
		list = append(list, a)
	}
	s.archives.list.Store(&list)
	return it.Error()
}
