package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"iter"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// Why records are not archived.
var (
	ErrNothingToArchive = errors.New("no records are left there to archive")
	ErrNeededToOpen     = errors.New("opening the world needs these records")
)

// making is behind the name of a file that is being written.
const making = ".new"

// archiveBlockBytes is how much of an archive is packed, and read, at once.
const archiveBlockBytes = 64 << 10

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
	a, err := s.writeArchive(before, to, path)
	if err != nil {
		return Archived{}, err
	}
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
	imaged, err := s.lastImage()
	if err != nil {
		return journal.Head{}, err
	}
	before := journal.Head{}
	if list := s.archives.allArchives(); len(list) > 0 {
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
func (s *Store) writeArchive(before journal.Head, to journal.Seq, path string) (Archived, error) {
	files, making := s.opts.FS, path+making
	f, err := files.Create(making, vfs.WriteCategoryUnspecified)
	if err != nil {
		return Archived{}, err
	}
	if own, ok := f.(interface{ Chmod(mode fs.FileMode) error }); ok { // a disk's
		err = own.Chmod(0o600)
	}
	a := Archived{File: making, First: before.ID + 1}
	sum := summed{f, sha256.New()}
	last, failed := fillArchive(sum, before, s.entries(a.First), to)
	sum.hash.Sum(a.Sum[:0])
	a.Last = last
	if err = errors.Join(err, failed); err == nil {
		err = s.checkArchive(a)
	}
	if err == nil {
		err = files.Rename(making, path)
	}
	if err != nil {
		return Archived{}, errors.Join(err, files.Remove(making))
	}
	a.File = path
	return a, syncDir(files, files.PathDir(path))
}

// summed is a file of which the sum is known that was written.
type summed struct {
	vfs.File

	hash hash.Hash
}

// Write implements io.Writer.
func (f summed) Write(b []byte) (int, error) {
	f.hash.Write(b)
	return f.File.Write(b)
}

// fillArchive writes records up to one to an archive, syncs it and closes it.
func fillArchive(f vfs.File, before journal.Head, records iter.Seq2[entry, error], to journal.Seq) (last journal.Head, err error) {
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), sstable.WriterOptions{
		TableFormat: sstable.TableFormatPebblev7, BlockSize: archiveBlockBytes, Compression: sstable.ZstdCompression,
	})
	defer func() { err = errors.Join(err, w.Close()) }()
	chain := canon.ResumeChain(before.Root)
	begin := before.ID + 1
	var segment []byte
	for e, err := range records {
		if err != nil {
			return last, err
		}
		last = journal.Head{ID: journal.Seq(e.ID), Root: chain.Add(e.ID, e.Kind, e.record)}
		if !bytes.Equal(last.Root[:linkLen], e.link) {
			return last, damagedRecord(last.ID, errLink)
		}
		at := len(segment)
		segment = append(segment, make([]byte, frameBytes+len(e.record))...)
		putFrame(segment[at:], journal.Stored{ID: last.ID, Bytes: e.record, Root: last.Root})
		if len(segment) < segmentBytes && last.ID != to {
			continue
		}
		if err := w.Set(recordKey(begin), segment); err != nil {
			return last, err
		}
		begin, segment = last.ID+1, segment[:0]
		if last.ID == to {
			break
		}
	}
	return last, nil
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
	seal(b, numberKey(archivePrefix, a.Last.ID), body)
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
