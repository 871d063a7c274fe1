package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/worldkernel/worldkernel/journal"
)

// partBytes is how long a part of an image in the log is. In all parts together stand, one after
// the other, the values of images, versions, notes and unfinished redactions, each
//
//	uvarint(len(key)) ‖ key ‖ uvarint(len(body)) ‖ body
//
// and a 0 at the end. A body is without its sum, and a version's without chunks.
const partBytes = 1 << 20

// smallImage is the length of an image in bytes that is put into the log whenever the store is
// closed, however little was appended.
const smallImage = 1 << 20

// keepImages puts images into the log beside the appends, and beside the images that follow: a log
// that takes long is given fewer.
func (s *Store) keepImages() {
	for range s.keep {
		if s.failed() != nil {
			continue
		}
		if err := s.keepImage(0); err != nil {
			_ = s.fail(fmt.Errorf("store: %w", err))
		}
	}
}

// keepImage puts the last image into the log if that has grown enough since the one before: then
// all that is written of images is at most as much as what is appended. Less is enough for a
// least length.
func (s *Store) keepImage(least uint64) error {
	if s.opts.Log == nil || s.looks() || !s.unkept.Load() {
		return nil
	}
	s.keeping.Lock()
	size := s.imageSize
	s.keeping.Unlock()
	if s.grown.Load() < size && size > least {
		return nil
	}
	return s.putImage()
}

// putImage puts the last image into the log, if there is one.
func (s *Store) putImage() error {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	s.unkept.Store(false)
	v, err := s.openView()
	if err != nil {
		return err
	}
	defer v.close()
	img, err := v.image(journal.Last)
	if err != nil || img == nil {
		return err
	}
	if img.Head.ID > s.owned.Head.ID {
		if err := s.Await(context.Background(), img.Head.ID-1); err != nil {
			return err
		}
	}
	tree, err := s.tipsAt(uint64(img.Head.ID))
	if err != nil {
		return err
	}
	grown, size := s.grown.Load(), uint64(0)
	err = s.opts.Log.PutImage(context.Background(), &journal.KeptImage{Head: img.Head, Tree: tree, Parts: v.parts(&size)})
	if err != nil {
		return fmt.Errorf("image at #%d: %w", img.Head.ID, err)
	}
	s.imageSize = size
	s.grown.Add(-grown)
	s.indexing.Lock()
	defer s.indexing.Unlock()
	unindexed, _, err := s.logState()
	if err != nil {
		return err
	}
	b := s.db.NewBatch()
	setLogState(b, unindexed, size)
	return errors.Join(b.Commit(pebble.NoSync), b.Close())
}

// Kept calls use with the last image as a log keeps it, whose parts are to be read before use
// returns; nil: there is none.
func (s *Store) Kept(use func(*journal.KeptImage) error) error {
	v, err := s.openView()
	if err != nil {
		return err
	}
	defer v.close()
	img, err := v.image(journal.Last)
	if err != nil {
		return err
	}
	if img == nil {
		return use(nil)
	}
	tree, err := s.tipsAt(uint64(img.Head.ID))
	if err != nil {
		return err
	}
	return use(&journal.KeptImage{Head: img.Head, Tree: tree, Parts: v.parts(new(uint64))})
}

// tipsAt returns the last tiles of all levels over so many records, as far as they are begun.
func (s *Store) tipsAt(size uint64) (hashes []byte, err error) {
	t := s.tree()
	t.size = size
	for level := range tileLevels {
		tip, err := t.tip(level)
		if err != nil {
			return nil, fmt.Errorf("tree: %w", err)
		}
		for _, h := range tip.hashes {
			hashes = append(hashes, h[:]...)
		}
	}
	return hashes, nil
}

// installTips puts what tipsAt has returned into a batch.
func (s *Store) installTips(b *pebble.Batch, size uint64, hashes []byte) error {
	t := s.storedTree()
	for level := range tileLevels {
		count := size >> (tileHeight * level)
		n := int(count % tileHashes)
		if len(hashes) < n*tlog.HashSize {
			return fmt.Errorf("tree: %w", errShape)
		}
		if n == 0 {
			continue
		}
		tile, err := parseTile(tileKey(level, count/tileHashes), hashes[:n*tlog.HashSize])
		if err != nil {
			return err
		}
		t.put(b, level, count/tileHashes, tile)
		hashes = hashes[n*tlog.HashSize:]
	}
	if len(hashes) > 0 {
		return fmt.Errorf("tree: %w", errShape)
	}
	return nil
}

// parts returns the images, but for those that are kept for looks back alone, with all that they
// need, and counts how long they are.
func (v *view) parts(size *uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var part []byte
		add := func(key, body []byte) bool {
			part = append(binary.AppendUvarint(part, uint64(len(key))), key...)
			part = append(binary.AppendUvarint(part, uint64(len(body))), body...)
			for len(part) >= partBytes {
				if !yield(part[:partBytes], nil) {
					return false
				}
				*size += partBytes
				part = append(part[:0], part[partBytes:]...)
			}
			return true
		}
		err := v.eachKept(add)
		if errors.Is(err, errEnough) {
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		part = append(part, 0)
		*size += uint64(len(part))
		yield(part, nil)
	}
}

var errEnough = errors.New("no more is wanted")

// eachKept visits what parts is of.
func (v *view) eachKept(visit func(key, body []byte) bool) error {
	heads, err := v.heads()
	if err != nil {
		return err
	}
	marked, err := v.marked()
	if err != nil {
		return err
	}
	kept := keeper{kept: slices.DeleteFunc(heads, func(head journal.Seq) bool { return slices.Contains(marked, head) })}
	for _, head := range kept.kept {
		img, err := v.image(head)
		if err != nil {
			return err
		}
		if !visit(imageKey(head), imageBody(img)) {
			return errEnough
		}
	}
	for _, prefix := range []byte{versionPrefix, countPrefix, ledgerPrefix} {
		if err := v.eachKeptVersion(prefix, &kept, visit); err != nil {
			return err
		}
	}
	return v.eachUnfinished(visit)
}

// eachUnfinished visits the notes about redactions that are not brought to an end: who opens the
// world by the image does not see their records.
func (v *view) eachUnfinished(visit func(key, body []byte) bool) error {
	for it, err := range v.walk([]byte{redactionPrefix}, []byte{redactionPrefix + 1}) {
		if err != nil {
			return err
		}
		body, err := openAt(it)
		if err != nil {
			return err
		}
		r, err := parseRedaction(it.Key(), body)
		if err != nil {
			return err
		}
		if !r.done && !r.inLog && !visit(it.Key(), body) {
			return errEnough
		}
	}
	return nil
}

// eachKeptVersion visits the versions that some images need, with the notes about them. Which of
// them that is tells the version that follows: so each is opened when that is known, and those of
// images that are kept for looks back, most of all, are not.
func (v *view) eachKeptVersion(prefix byte, kept *keeper, visit func(key, body []byte) bool) error {
	x, err := v.versions(prefix, prefix)
	if err != nil {
		return err
	}
	defer x.close()
	var name, key, value []byte // of the version before
	var at journal.Seq
	first := true // of its name that is visited
	leave := func(next journal.Seq) error {
		head, needed := kept.neededBy(at, next)
		if len(key) == 0 || !needed {
			return nil
		}
		body, err := unseal(key, value)
		if err == nil && prefix == versionPrefix {
			body, err = x.chunks.version(key, body)
		}
		if err != nil || first && len(body) == 0 && prefix == versionPrefix {
			return err
		}
		first = false
		if !visit(key, body) || next != journal.Last && !visit(noteKey(nil, head, key), nil) {
			return errEnough
		}
		return nil
	}
	for ok := x.it.First(); ok; ok = x.it.Next() {
		nextName, nextAt, whole := splitVersion(x.it.Key())
		if !whole {
			return damaged(x.it.Key(), errShape)
		}
		if bytes.Equal(nextName, name) {
			err = leave(nextAt)
		} else {
			err = leave(journal.Last)
			name, first = append(name[:0], nextName...), true
		}
		if err != nil {
			return err
		}
		next, err := x.it.ValueAndErr()
		if err != nil {
			return damaged(x.it.Key(), err)
		}
		key, at, value = append(key[:0], x.it.Key()...), nextAt, append(value[:0], next...)
	}
	if err := x.it.Error(); err != nil {
		return &DamageError{What: fmt.Sprintf("what has keys from %q", prefix), Err: err}
	}
	return leave(journal.Last)
}

// installImage puts an image from the log into a copy that has nothing yet, with the record that
// it ends with: the journal goes on behind that.
func (s *Store) installImage(kept *journal.KeptImage) error {
	s.head = journal.Head{ID: kept.Head.ID}
	w := imageInstaller{store: s, batch: s.db.NewBatch()}
	var rest []byte
	done := false
	for part, err := range kept.Parts {
		if err != nil {
			return fmt.Errorf("%w: %w: image at #%d: %w", errLog, errParts, kept.Head.ID, err)
		}
		w.size += uint64(len(part))
		rest = append(rest, part...)
		if rest, done, err = w.takeFrames(rest); err != nil {
			return err
		}
	}
	if !done || len(rest) > 0 || w.last != kept.Head {
		return fmt.Errorf("%w: image at #%d: %w", errLog, kept.Head.ID, errShape)
	}
	if err := s.installTips(w.batch, uint64(kept.Head.ID), kept.Tree); err != nil {
		return err
	}
	setLogState(w.batch, kept.Head.ID, w.size)
	if err := errors.Join(w.batch.Commit(pebble.NoSync), w.batch.Close()); err != nil {
		return err
	}
	if kept.Head.ID == 0 {
		return nil
	}
	for e, err := range s.fetch(kept.Head.ID, kept.Head.ID, journal.ErrNotFound) {
		if err == nil && !bytes.Equal(e.link, kept.Head.Root[:linkLen]) {
			err = fmt.Errorf("%w: %w", errLog, damagedRecord(kept.Head.ID, errLink))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// imageInstaller puts the values of an image into a store.
type imageInstaller struct {
	store *Store
	batch *pebble.Batch
	size  uint64
	last  journal.Head // of the last image among them
}

// takeFrames puts what is whole at the beginning of b, and returns the rest. done: it was the end.
func (w *imageInstaller) takeFrames(b []byte) (rest []byte, done bool, err error) {
	for len(b) > 0 {
		key, rest, ok := cut(b)
		if ok && len(key) == 0 {
			return rest, true, nil
		}
		var body []byte
		if ok {
			body, rest, ok = cut(rest)
		}
		if !ok { // it goes on in the next part
			return b, false, nil
		}
		if err := w.put(key, body); err != nil {
			return nil, false, err
		}
		b = rest
	}
	return b, false, nil
}

func (w *imageInstaller) put(key, body []byte) error {
	if !slices.Contains([]byte{imagePrefix, versionPrefix, countPrefix, ledgerPrefix, notePrefix, redactionPrefix}, key[0]) {
		return fmt.Errorf("%w: %w", errLog, damaged(key, errShape))
	}
	if err := checkShape(key, body); err != nil {
		return fmt.Errorf("%w: %w", errLog, err)
	}
	if key[0] == imagePrefix {
		img, err := parseImage(key, body)
		if err != nil {
			return err
		}
		w.last = img.Head
	}
	if key[0] == versionPrefix {
		var err error
		if body, err = w.short(key, body); err != nil {
			return err
		}
	}
	seal(w.batch, key, body)
	if w.batch.Len() < cutBytes {
		return nil
	}
	err := errors.Join(w.batch.Commit(pebble.NoSync), w.batch.Close())
	w.batch = w.store.db.NewBatch()
	return err
}

// short returns the body of a cell version, in chunks where it is long.
func (w *imageInstaller) short(key, body []byte) ([]byte, error) {
	if len(body) < chunkFrom && !isInChunks(body) {
		return body, nil
	}
	s := w.store
	s.chunks.mu.Lock()
	defer s.chunks.mu.Unlock()
	name, _, _ := splitVersion(key)
	c := s.chunkWriter(w.batch)
	c.owner = ownerOf(string(name[1 : len(name)-1]))
	list, err := c.list(body)
	if err != nil {
		return nil, err
	}
	return append([]byte{inChunks}, list...), nil
}
