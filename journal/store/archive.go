package store

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/journal"
)

// Why records are not archived.
var (
	ErrNothingToArchive = errors.New("no records are left there to archive")
	ErrNeededToOpen     = errors.New("opening the world needs these records")
)

// making is behind the name of a file that is being written.
const making = ".new"

// Archive moves the records that are left in the store up to one, but for record
// 1, to a new file of that absolute path. It is durable on return. A crash leaves
// either the store as it was, perhaps with that file beside, or the move complete. What
// is in the way is an *fs.PathError of fs.ErrExist: that file, or path.new of a crash.
// An image must lie after the records: opening never needs an archive.
func (s *Store) Archive(to journal.Seq, path string) (Archived, error) {
	a, err := s.archive(to, path)
	if err != nil {
		return Archived{}, fmt.Errorf("store: archive up to #%d: %w", to, err)
	}
	return a, nil
}

func (s *Store) archive(to journal.Seq, path string) (Archived, error) {
	if s.opts.Log != nil {
		return Archived{}, ErrInTheLog
	}
	s.settleImages()
	if err := s.settle(); err != nil {
		return Archived{}, err
	}
	before, err := s.archivable(to)
	if err != nil {
		return Archived{}, err
	}
	for _, file := range []string{path, path + making} {
		if _, err := s.opts.FS.Stat(file); err == nil {
			return Archived{}, &fs.PathError{Op: "write", Path: file, Err: fs.ErrExist}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return Archived{}, err
		}
	}
	if err := s.keepLeaves(before.ID+1, to); err != nil {
		return Archived{}, err
	}
	c, err := s.writeArchive(before, to, path)
	if err != nil {
		return Archived{}, err
	}
	a := Archived{File: path, First: before.ID + 1, Last: journal.Head{ID: c.Last, Root: c.Root}, Sum: c.Sum}
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
func (s *Store) archivable(to journal.Seq) (journal.Head, error) {
	v, err := s.look()
	if err != nil {
		return journal.Head{}, err
	}
	defer v.close()
	imaged, err := v.lastHead()
	if err != nil {
		return journal.Head{}, err
	}
	before := journal.Head{}
	if list := s.archives.all(); len(list) > 0 {
		before = list[len(list)-1].Last
	} else {
		for r, err := range s.scan(before) {
			if err != nil {
				return journal.Head{}, err
			}
			before = journal.Head{ID: r.ID, Root: r.Root}
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
func (s *Store) writeArchive(before journal.Head, to journal.Seq, path string) (contents, error) {
	files, making := s.opts.FS, path+making
	f, err := files.Create(making, vfs.WriteCategoryUnspecified)
	if err != nil {
		return contents{}, err
	}
	var c contents
	if own, ok := f.(interface{ Chmod(mode fs.FileMode) error }); ok { // a disk's
		err = own.Chmod(0o600)
	}
	if err == nil {
		c, err = s.fillArchive(f, before, to)
	}
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

func (s *Store) fillArchive(f vfs.File, before journal.Head, to journal.Seq) (contents, error) {
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
		if journal.Seq(e.ID) == to {
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
func (s *Store) segmentFrom(id journal.Seq) ([]byte, error) {
	it, err := s.iterate([]byte{recordPrefix}, recordKey(id+1))
	if err != nil {
		return nil, err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	if !it.Last() {
		return nil, damagedRecord(id, errors.Join(journal.ErrNotFound, it.Error()))
	}
	first, segment, err := segmentAt(it.Iterator)
	for at := first; err == nil && at < id; at++ {
		var ok bool
		if _, segment, ok = cutFrame(segment); !ok {
			err = errLost
		}
	}
	if err == nil && len(segment) == 0 {
		err = journal.ErrNotFound
	}
	if err != nil {
		return nil, damagedRecord(id, err)
	}
	return bytes.Clone(segment), nil
}
