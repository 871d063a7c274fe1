package store

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/journal"
)

// Archived is a file that holds records which the store holds no more.
type Archived struct {
	File  string // the absolute path that it was given
	First journal.Seq
	Last  journal.Head
	Sum   journal.Hash // SHA-256 of the file without its last 40 bytes, which it names
}

// archives knows what was archived, and the member that was read last.
type archives struct {
	list atomic.Pointer[[]Archived] // ascending, without gap

	mu   sync.Mutex // guards what follows, the member that was read last
	file string
	n    uint64

	first   journal.Seq
	segment []byte
}

func (x *archives) all() []Archived {
	if list := x.list.Load(); list != nil {
		return *list
	}
	return nil
}

// of returns the archive that holds a record, nil where the store does.
func (x *archives) of(id journal.Seq) *Archived {
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

// Missing returns why an archive's file cannot be read, a journal.ErrArchived, or
// nil. It does not read all of it.
func (s *Store) Missing(a Archived) error {
	_, f, err := s.openArchived(a)
	if err != nil {
		return err
	}
	return f.Close()
}

// openArchived opens an archive's file. Where it is gone, the world may have been
// moved and have taken it along: one of its name in the world's directory serves.
func (s *Store) openArchived(a Archived) (*archiveFile, vfs.File, error) {
	files := s.opts.FS
	file, f, err := openArchive(files, a.File)
	if errors.Is(err, fs.ErrNotExist) {
		file, f, err = openArchive(files, files.PathJoin(files.PathDir(s.dir), files.PathBase(a.File)))
	}
	if err == nil && (file.First != a.First || file.Last != a.Last.ID || file.Sum != a.Sum) {
		err = errors.Join(errors.New("it is another archive"), f.Close())
	}
	if err != nil {
		return nil, nil, &journal.ArchivedError{File: a.File, From: a.First, To: a.Last.ID, Err: err}
	}
	return file, f, nil
}

// archivedEntries yields the records of an archive from one on.
func (s *Store) archivedEntries(a Archived, from journal.Seq) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		file, f, err := s.openArchived(a)
		if err != nil {
			yield(entry{}, err)
			return
		}
		defer f.Close() //nolint:errcheck // only read
		for e, err := range file.entries(from, func(n uint64) (journal.Seq, []byte, error) { return s.archives.member(file, a.File, n) }) {
			if err != nil {
				err = &journal.ArchivedError{File: a.File, From: a.First, To: a.Last.ID, Err: err}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// member is archiveFile.member that remembers the last one. Nobody changes what
// it returns.
func (x *archives) member(file *archiveFile, path string, n uint64) (journal.Seq, []byte, error) {
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

func parseArchived(key, body []byte) (Archived, error) {
	const sums = 2 * len(journal.Hash{})
	if !hasNumber(key) || len(body) <= idLen+sums {
		return Archived{}, damaged(key, errShape)
	}
	a := Archived{First: journal.Seq(binary.BigEndian.Uint64(body)), Last: journal.Head{ID: recordID(key)}, File: string(body[idLen+sums:])}
	copy(a.Last.Root[:], body[idLen:])
	copy(a.Sum[:], body[idLen+len(a.Sum):])
	if a.First < 2 || a.First > a.Last.ID {
		return Archived{}, damaged(key, errShape)
	}
	return a, nil
}

// loadArchives reads which records are archived.
func (s *Store) loadArchives() (err error) {
	var list []Archived
	s.eachSealed(archivePrefix, func(key, body []byte) error {
		a, err := parseArchived(key, body)
		list = append(list, a)
		return err
	}, firstInto(&err))
	s.archives.list.Store(&list)
	return err
}
