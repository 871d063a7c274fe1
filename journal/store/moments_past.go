package store

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// Apart returns how many records lie between two images that are kept for looks back, at
// least; 0: none are kept.
func (s *Store) Apart() journal.Seq {
	apart, old := thinned(s.opts.Moments, s.Head().ID)
	if old > 0 {
		return 2 * apart
	}
	return apart
}

// KeepPast keeps a recomputed image of the past for later looks back. Its cells and intents are all
// that changed since the image before it that is there, or more. It returns at once. An image that
// is there already stays, and one after the last is not kept.
func (s *Store) KeepPast(img *journal.Image) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	w := &imageWriter{Image: img, past: true, done: make(chan struct{})}
	if s.imaged == nil {
		var err error
		if s.imagedID, err = s.lastImage(); err != nil {
			return err
		}
	}
	s.imaged = w.done
	s.appended <- &pending{image: w}
	return nil
}

func (s *Store) writePast(before *view, img *journal.Image) error {
	at, there := slices.BinarySearch(s.heads, img.Head.ID)
	if there || at == len(s.heads) {
		return nil
	}
	img, err := s.chunkCells(img)
	if err != nil {
		return err
	}
	old, err := before.versions(versionPrefix, ledgerPrefix)
	if err != nil {
		return err
	}
	defer old.close()
	batch := s.db.NewBatch()
	k := &keeper{batch: batch, view: before, old: old, head: img.Head.ID, kept: s.heads, lists: map[string][][]byte{}, anew: map[string]bool{}}
	err = k.insertAll(img)
	if err == nil && at > 0 {
		err = k.takeNotes(s.heads[at-1])
	}
	if err != nil {
		return errors.Join(err, batch.Close())
	}
	seal(batch, imageKey(img.Head.ID), imageBody(img))
	seal(batch, numberKey(momentPrefix, img.Head.ID), nil)
	if err := errors.Join(batch.Commit(pebble.NoSync), batch.Close()); err != nil {
		return err
	}
	s.heads = slices.Insert(slices.Clone(s.heads), at, img.Head.ID)
	s.written = nil // a cell may have a later version now
	return s.letGoChunks(k.lists)
}

// insertAll writes the versions of an image of the past.
func (k *keeper) insertAll(img *journal.Image) error {
	var name []byte
	for _, c := range img.Cells {
		name = cellName(name[:0], c.Cell)
		if err := k.insert(name, c.Bytes); err != nil {
			return err
		}
	}
	for _, in := range img.Intents {
		name = intentName(name[:0], in.Key)
		if err := k.insert(name, in.Bytes); err != nil {
			return err
		}
	}
	for i := range img.Counts {
		c := &img.Counts[i]
		name = countName(name[:0], &c.CountKey)
		if err := k.insert(name, c.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// insert writes a version between others, unless the one before it says the same, and has
// that and the new one be noted under the last images that need them.
func (k *keeper) insert(name, body []byte) error {
	next, followed, err := k.old.firstAfter(name, k.head)
	if err != nil {
		return err
	}
	v, ok, err := k.old.lastAt(name, k.head)
	if err != nil {
		return err
	}
	if ok {
		was, err := k.old.body()
		if err != nil || bytes.Equal(was, body) {
			return err
		}
	}
	if !ok && len(body) == 0 {
		return nil
	}
	seal(k.batch, versionKey(nil, name, k.head), body)
	k.anew[string(name)] = true
	if len(body) == 0 {
		left, err := k.left(name)
		if err != nil {
			return err
		}
		k.unmark(name, left, k.head)
	}
	if ok {
		version := versionKey(nil, name, v)
		if needs, noted := k.neededBy(v, next); followed && noted {
			if err := k.batch.Delete(noteKey(nil, needs, version), nil); err != nil {
				return err
			}
		}
		if needs, needed := k.neededBy(v, k.head); needed {
			k.noteVersion(needs, version, false)
		} else if err := k.delete(name, version); err != nil {
			return err
		}
	}
	if followed {
		needs, needed := k.neededBy(k.head, next)
		if !needed {
			needs = k.head
		}
		k.noteVersion(needs, versionKey(nil, name, k.head), false)
	}
	return nil
}

// takeNotes moves notes of the image before, of versions that the one of the past needs, too.
func (k *keeper) takeNotes(before journal.Seq) error {
	for it, err := range k.view.walk(numberKey(notePrefix, before), numberKey(notePrefix, before+1)) {
		if err != nil {
			return err
		}
		version, name, v, whole := splitNote(it.Key())
		if !whole {
			return damaged(it.Key(), errShape)
		}
		next, followed, err := k.old.firstAfter(name, v)
		if err != nil {
			return err
		}
		if k.anew[string(name)] || !followed || next <= k.head {
			continue
		}
		body, err := openAt(it)
		if err != nil {
			return err
		}
		k.noteVersion(k.head, version, len(body) > 0)
		if err := k.batch.Delete(bytes.Clone(it.Key()), nil); err != nil {
			return err
		}
	}
	return nil
}

// firstAfter returns the first version of a name after a head, if there is one.
func (x *versions) firstAfter(name []byte, head journal.Seq) (at journal.Seq, ok bool, err error) {
	x.seek = versionKey(x.seek[:0], name, head+1)
	if !x.it.SeekGE(x.seek) {
		if err := x.it.Error(); err != nil {
			return 0, false, damaged(versionKey(nil, name, head), err)
		}
		return 0, false, nil
	}
	got, at, ok := splitVersion(x.it.Key())
	return at, ok && bytes.Equal(got, name), nil
}
