package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/journal"
)

// Archived is a file that holds records which the store holds no more.
type Archived struct {
	File  string // the absolute path that it was given
	First journal.Seq
	Last  journal.Head
	Sum   journal.Hash // SHA-256 of the file
}

// archives knows what was archived.
type archives struct {
	list atomic.Pointer[[]Archived] // ascending, without gap
}

func (x *archives) allArchives() []Archived {
	if list := x.list.Load(); list != nil {
		return *list
	}
	return nil
}

// archiveOf returns the archive that holds a record, nil where the store does.
func (x *archives) archiveOf(id journal.Seq) *Archived {
	for _, a := range x.allArchives() {
		if a.First <= id && id <= a.Last.ID {
			return &a
		}
	}
	return nil
}

// Archived returns the archives, from the first record on; with each other they
// hold those from the second record up to the last of them. Missing reports why one
// cannot be read.
func (s *Store) Archived() []Archived { return slices.Clone(s.archives.allArchives()) }

// Missing returns why an archive's file cannot be read, a journal.ErrArchived, or
// nil. It does not read all of it.
func (s *Store) Missing(a Archived) error {
	it, err := s.openArchived(a)
	if err != nil {
		return err
	}
	return it.Close()
}

// archiveFile opens an archive's file. Where it is gone, the world may have been
// moved and have taken it along: one of its name in the world's directory serves.
func (s *Store) archiveFile(a Archived) (vfs.File, error) {
	files := s.opts.FS
	f, err := files.Open(a.File)
	if errors.Is(err, fs.ErrNotExist) {
		return files.Open(files.PathJoin(files.PathDir(s.dir), files.PathBase(a.File)))
	}
	return f, err
}

// openArchived opens an archive as the segments that it holds, the last of which has the
// record that the archive ends with.
func (s *Store) openArchived(a Archived) (*pebble.Iterator, error) {
	var it *pebble.Iterator
	f, err := s.archiveFile(a)
	if err == nil {
		opts := new(pebble.Options)
		opts.EnsureDefaults()
		it, err = pebble.NewExternalIter(opts, nil, [][]sstable.ReadableFile{{f}})
	}
	if err == nil {
		if err = checkEnds(it, a); err != nil {
			_ = it.Close() // its error is Error's
		}
	}
	if err != nil {
		return nil, archiveError(a, err)
	}
	return it, nil
}

// checkEnds returns an error where the first segment and the last record are not those of an
// archive.
func checkEnds(it *pebble.Iterator, a Archived) error {
	if it.First(); it.Error() != nil {
		return damagedRecord(a.First, it.Error())
	}
	begins := it.Valid() && bytes.Equal(it.Key(), recordKey(a.First))
	if it.Last(); it.Error() != nil {
		return damagedRecord(a.Last.ID, it.Error())
	}
	if begins {
		first, segment, err := segmentAt(it)
		if err != nil {
			return damagedRecord(a.Last.ID, err)
		}
		for e, err := range segmentEntries(first, segment, a.Last.ID) {
			if err != nil || bytes.Equal(e.link, a.Last.Root[:linkLen]) {
				return err
			}
		}
	}
	return errors.New("it is another archive")
}

func archiveError(a Archived, err error) error {
	return &journal.ArchivedError{File: a.File, From: a.First, To: a.Last.ID, Err: err}
}

// archivedEntries yields the records of an archive from one on.
func (s *Store) archivedEntries(a Archived, from journal.Seq) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		it, err := s.openArchived(a)
		if err != nil {
			yield(entry{}, err)
			return
		}
		defer func() { _ = it.Close() }() // its error is Error's
		for e, err := range storedEntries(it, from, a.Last.ID) {
			if err != nil {
				err = archiveError(a, err)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// checkArchive reads an archive. The error is fs.ErrNotExist where it is not there,
// which is no damage to the store, and else names the first record that cannot be read.
func (s *Store) checkArchive(a Archived) error {
	f, err := s.archiveFile(a)
	if err != nil {
		return archiveError(a, err)
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return archiveError(a, err)
	}
	if a.Sum == journal.Hash(sum.Sum(nil)) {
		return s.Missing(a)
	}
	for _, err := range s.archivedEntries(a, a.First) {
		if err != nil {
			return err
		}
	}
	return archiveError(a, errSum)
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
