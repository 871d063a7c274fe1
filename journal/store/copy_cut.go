package store

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// cutBytes is how much a batch gathers of what is to go.
const cutBytes = 4 << 20

// cut removes from a store that is being made what is younger than a record.
// Image, versions and index go back to the last image at or before it: what is
// left is what there was when that had just been written, but for images that
// were let go since. A note under that image, or a later one, is about a version
// that was followed after it, and so by one that goes: it is void.
func (s *Store) cut(at journal.Seq) error {
	v, err := s.openView()
	if err != nil {
		return err
	}
	defer v.close()
	img, err := v.image(at)
	if err != nil {
		return err
	}
	var noted, young journal.Seq // where no image is left, all goes
	if img != nil {
		noted, young = img.Head.ID, img.Head.ID+1
	}
	if err := s.cutVersions(v, young); err != nil {
		return err
	}
	batch := s.db.NewBatch()
	for _, from := range [][]byte{
		recordKey(at + 1), imageKey(young), numberKey(notePrefix, noted), numberKey(postingPrefix, young), signedKey(at + 1),
		numberKey(momentPrefix, young),
	} {
		if err := batch.DeleteRange(from, []byte{from[0] + 1}, nil); err != nil {
			return err
		}
	}
	if err := v.cutSegment(batch, at); err != nil {
		return err
	}
	if err := s.cutTiles(batch, uint64(at)); err != nil {
		return err
	}
	return errors.Join(batch.Commit(pebble.Sync), batch.Close())
}

// cutTiles leaves the tiles of so many records, and of those in which they end what
// is of them: the records may be in an archive.
func (s *Store) cutTiles(batch *pebble.Batch, size uint64) error {
	t := s.tree()
	for level := range tileLevels {
		count := size >> (tileHeight * level)
		n := count / tileHashes
		hashes, err := t.tile(level, n)
		if err != nil {
			return err
		}
		if err := batch.DeleteRange(tileKey(level, n), tileKey(level+1, 0), nil); err != nil {
			return err
		}
		if left := min(uint64(len(hashes)), count%tileHashes); left > 0 {
			t.put(batch, level, n, hashes[:left])
		}
	}
	return nil
}

// cutSegment ends the segment that holds a record with that.
func (v *view) cutSegment(batch *pebble.Batch, at journal.Seq) error {
	it, err := v.iterate([]byte{recordPrefix}, []byte{recordPrefix + 1})
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	if !it.SeekLT(recordKey(at + 1)) {
		return damagedRecord(at, errors.Join(journal.ErrNotFound, it.Error()))
	}
	id, segment, err := segmentAt(it)
	if err != nil {
		return damagedRecord(at, err)
	}
	rest := segment
	for ; id <= at; id++ {
		var ok bool
		if _, rest, ok = cutFrame(rest); !ok {
			return damagedRecord(id, errShape)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return batch.Set(it.Key(), segment[:len(segment)-len(rest)], nil)
}

// cutVersions removes the versions that were written with an image at a head or
// after it.
func (s *Store) cutVersions(v *view, young journal.Seq) error {
	d := deleter{db: s.db, batch: s.db.NewBatch()}
	for _, prefix := range []byte{versionPrefix, countPrefix, ledgerPrefix} {
		for it, err := range v.walk([]byte{prefix}, []byte{prefix + 1}) {
			if err != nil {
				return err
			}
			_, at, whole := splitVersion(it.Key())
			switch {
			case !whole:
				err = damaged(it.Key(), errShape)
			case at >= young:
				err = d.delete(it.Key())
			}
			if err != nil {
				return err
			}
		}
	}
	return errors.Join(d.batch.Commit(pebble.NoSync), d.batch.Close())
}
