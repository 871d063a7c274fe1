package store

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// Image implements journal.History. A piece of it that is not what was written is
// a *DamageError.
func (s *Store) Image(at journal.Seq) (img *journal.Image, err error) {
	err = s.settled(func(v *view) error {
		img, err = v.image(at)
		if img == nil || err != nil {
			return err
		}
		if err = s.onChain(img.Head); err == nil {
			err = v.fill(img)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: image: %w", err)
	}
	return img, nil
}

// Part implements journal.History. It seeks the cells that are named, and reads no
// others.
func (s *Store) Part(at journal.Seq, cells []string) (img *journal.Image, err error) {
	err = s.settled(func(v *view) error {
		img, err = v.image(at)
		if err == nil && (img == nil || img.Head.ID != at) {
			err = fmt.Errorf("%s: %w", nameOf(imageKey(at)), journal.ErrNotFound)
		}
		if err != nil {
			return err
		}
		if err = s.onChain(img.Head); err == nil {
			err = v.fillPart(img, cells)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: image: %w", err)
	}
	return img, nil
}

// Core implements journal.Versions.
func (s *Store) Core(at journal.Seq) (img *journal.Image, err error) {
	err = s.settled(func(v *view) error {
		if img, err = v.image(at); img == nil || err != nil {
			return err
		}
		return s.onChain(img.Head)
	})
	if err != nil {
		return nil, fmt.Errorf("store: image: %w", err)
	}
	return img, nil
}

// CellVersion implements journal.Versions.
func (s *Store) CellVersion(cell string, at journal.Seq) (*journal.CellVersion, error) {
	written, body, err := s.version(cellName(nil, cell), at)
	if err != nil {
		return nil, fmt.Errorf("store: cell %s at #%d: %w", cell, at, err)
	}
	if len(body) == 0 {
		return nil, nil
	}
	return &journal.CellVersion{Cell: cell, At: written, Bytes: body}, nil
}

// version returns the last version of a name at or before a record, and where it was written.
func (s *Store) version(name []byte, at journal.Seq) (written journal.Seq, body []byte, err error) {
	s.settleImages()
	s.newest.mu.Lock()
	defer s.newest.mu.Unlock()
	if s.newest.versions == nil {
		v, err := s.openView()
		if err != nil {
			return 0, nil, err
		}
		x, err := v.versions(versionPrefix, ledgerPrefix)
		if err != nil {
			v.close()
			return 0, nil, err
		}
		s.newest.view, s.newest.versions = v, x
	}
	written, body, err = s.newest.versions.readVersion(name, at)
	return written, body, s.suspect(err)
}

// newest is the images as they were when one was last written: a world that is larger than
// memory asks for many single versions of them.
type newest struct {
	mu       sync.Mutex // guards what follows
	view     *view
	versions *versions // nil: nobody has asked since
}

// letGo has them read anew. What is deleted stays on the disk for as long as they are held.
func (n *newest) letGo() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.versions != nil {
		n.versions.close()
		n.view.close()
		n.versions, n.view = nil, nil
	}
}

// CellVersions implements journal.Versions.
func (s *Store) CellVersions(prefix string, at journal.Seq) iter.Seq2[journal.CellVersion, error] {
	return versionsOf(s, "cells", append([]byte{versionPrefix}, prefix...), at, func(name []byte, written journal.Seq, body []byte) (journal.CellVersion, bool) {
		return journal.CellVersion{Cell: string(name[1 : len(name)-1]), At: written, Bytes: body}, len(body) > 0
	})
}

// versionsOf yields what is made of the last versions at or before a record; there is false: it is gone.
func versionsOf[V any](s *Store, what string, prefix []byte, at journal.Seq, made func(name []byte, written journal.Seq, body []byte) (v V, there bool)) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		err := s.settled(func(v *view) error {
			return v.eachVersion(prefix, at, func(name []byte, written journal.Seq, body []byte) bool {
				version, there := made(name, written, body)
				return !there || yield(version, nil)
			})
		})
		if err != nil {
			yield(*new(V), fmt.Errorf("store: %s: %w", what, err))
		}
	}
}

// IntentVersions implements journal.Versions.
func (s *Store) IntentVersions(at journal.Seq) iter.Seq2[journal.IntentVersion, error] {
	return versionsOf(s, "intents", []byte{ledgerPrefix}, at, func(name []byte, _ journal.Seq, body []byte) (journal.IntentVersion, bool) {
		return journal.IntentVersion{Key: journal.Hash(name[1:]), Bytes: body}, true
	})
}

// IntentVersion implements journal.Versions: what changed the entry after the image, but
// before the record, may be in no image that is kept.
func (s *Store) IntentVersion(key journal.Hash, at journal.Seq) (*journal.IntentVersion, error) {
	_, body, err := s.version(intentName(nil, key), at)
	if err != nil {
		return nil, fmt.Errorf("store: intent %s at #%d: %w", key, at, err)
	}
	if body == nil {
		return nil, nil
	}
	return &journal.IntentVersion{Key: key, Bytes: body}, nil
}

// CountVersion implements journal.Versions.
func (s *Store) CountVersion(key journal.CountKey, at journal.Seq) (*journal.CountVersion, error) {
	_, body, err := s.version(countName(nil, &key), at)
	if err != nil {
		return nil, fmt.Errorf("store: count of cell %s at #%d: %w", key.Cell, at, err)
	}
	if body == nil {
		return nil, nil
	}
	return &journal.CountVersion{CountKey: key, Bytes: body}, nil
}

// CountVersions implements journal.Versions.
func (s *Store) CountVersions(at journal.Seq) iter.Seq2[journal.CountVersion, error] {
	return versionsOf(s, "counts", []byte{countPrefix}, at, func(name []byte, _ journal.Seq, body []byte) (journal.CountVersion, bool) {
		return journal.CountVersion{CountKey: countKeyOf(name), Bytes: body}, true
	})
}

// view is the images, what belongs to them and the index, at one moment: a later
// checkpoint may let go of any of it meanwhile. It is for one goroutine.
type view struct {
	snapshot *pebble.Snapshot
	of       *reading
}

// openView returns a view of this moment, which the caller closes.
func (s *Store) openView() (*view, error) {
	if err := s.reading.beginRead(); err != nil {
		return nil, err
	}
	return &view{snapshot: s.db.NewSnapshot(), of: &s.reading}, nil
}

// close needs no error: that of a snapshot is always nil.
func (v *view) close() {
	_ = v.snapshot.Close()
	v.of.endRead()
}

// settled lets read look at all that was asked for.
func (s *Store) settled(read func(*view) error) error {
	s.settleImages()
	v, err := s.openView()
	if err != nil {
		return err
	}
	defer v.close()
	return s.suspect(read(v))
}

func (v *view) iterate(lower, upper []byte) (*pebble.Iterator, error) {
	return v.snapshot.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
}

// walk yields an iterator at each key from one up to another, ascending. An error ends it.
func (v *view) walk(lower, upper []byte) iter.Seq2[*pebble.Iterator, error] {
	return func(yield func(*pebble.Iterator, error) bool) {
		it, err := v.iterate(lower, upper)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = it.Close() }() // its error is Error's
		for ok := it.First(); ok; ok = it.Next() {
			if !yield(it, nil) {
				return
			}
		}
		if err := it.Error(); err != nil {
			yield(nil, err)
		}
	}
}

// heads returns the heads of all images, ascending. It may have to read them all.
func (v *view) heads() ([]journal.Seq, error) { return v.numbers(imagePrefix, "the heads of images") }

// numbers returns the numbers of all keys under a prefix, ascending.
func (v *view) numbers(prefix byte, what string) (numbers []journal.Seq, err error) {
	for it, err := range v.walk([]byte{prefix}, []byte{prefix + 1}) {
		switch {
		case err != nil:
			return nil, &DamageError{What: what, Err: err}
		case !hasNumber(it.Key()):
			return nil, damaged(it.Key(), errShape)
		}
		numbers = append(numbers, recordID(it.Key()))
	}
	return numbers, nil
}

// lastHead returns the head of the last image, up to which records are indexed by
// cell.
func (v *view) lastHead() (journal.Seq, error) {
	it, err := v.iterate([]byte{imagePrefix}, []byte{imagePrefix + 1})
	if err != nil {
		return 0, err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	switch {
	case it.Last() && hasNumber(it.Key()):
		return recordID(it.Key()), nil
	case it.Valid():
		return 0, damaged(it.Key(), errShape)
	case it.Error() != nil:
		return 0, &DamageError{What: "the head of the last image", Err: it.Error()}
	}
	return 0, nil
}

// lastImage returns the head of the last image that is written; 0: there is none.
func (s *Store) lastImage() (journal.Seq, error) {
	v, err := s.openView()
	if err != nil {
		return 0, err
	}
	defer v.close()
	return v.lastHead()
}

// image returns the last image at or before a record, without cells, intents and
// counts, nil where there is none.
func (v *view) image(at journal.Seq) (*journal.Image, error) {
	it, err := v.iterate([]byte{imagePrefix}, []byte{imagePrefix + 1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	if !it.SeekLT(append(imageKey(at), 0)) {
		if err := it.Error(); err != nil {
			return nil, damaged(imageKey(at), err)
		}
		return nil, nil
	}
	body, err := openAt(it)
	if err != nil {
		return nil, err
	}
	return parseImage(it.Key(), bytes.Clone(body))
}

func imageBody(img *journal.Image) []byte { return append(bytes.Clone(img.Head.Root[:]), img.Core...) }

func parseImage(key, body []byte) (*journal.Image, error) {
	img := &journal.Image{}
	if !hasNumber(key) || len(body) < len(img.Head.Root) {
		return nil, damaged(key, errShape)
	}
	img.Head.ID = recordID(key)
	copy(img.Head.Root[:], body)
	img.Core = body[len(img.Head.Root):]
	return img, nil
}

// fill reads all cells, intents and counts of an image.
func (v *view) fill(img *journal.Image) error {
	var kept arena
	err := v.eachVersion([]byte{versionPrefix}, img.Head.ID, func(name []byte, at journal.Seq, body []byte) bool {
		if len(body) > 0 {
			cell := string(name[1 : len(name)-1])
			img.Cells = append(img.Cells, journal.CellVersion{Cell: cell, At: at, Bytes: kept.copy(body)})
		}
		return true
	})
	if err != nil {
		return err
	}
	slices.Reverse(img.Cells)
	err = v.eachVersion([]byte{ledgerPrefix}, img.Head.ID, func(name []byte, _ journal.Seq, body []byte) bool {
		img.Intents = append(img.Intents, journal.IntentVersion{Key: journal.Hash(name[1:]), Bytes: kept.copy(body)})
		return true
	})
	slices.Reverse(img.Intents)
	if err != nil {
		return err
	}
	err = v.eachVersion([]byte{countPrefix}, img.Head.ID, func(name []byte, _ journal.Seq, body []byte) bool {
		img.Counts = append(img.Counts, journal.CountVersion{CountKey: countKeyOf(name), Bytes: kept.copy(body)})
		return true
	})
	slices.Reverse(img.Counts)
	return err
}

func (v *view) fillPart(img *journal.Image, cells []string) error {
	cells = slices.Compact(slices.SortedFunc(slices.Values(cells), strings.Compare))
	x, err := v.versions(versionPrefix, versionPrefix)
	if err != nil {
		return err
	}
	defer x.close()
	for _, cell := range cells {
		at, body, err := x.readVersion(cellName(nil, cell), img.Head.ID)
		if err != nil {
			return err
		}
		if len(body) > 0 {
			img.Cells = append(img.Cells, journal.CellVersion{Cell: cell, At: at, Bytes: body})
		}
	}
	return nil
}
