package store

import (
	"bytes"
	"crypto/sha256"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/internal/chunk"
)

// marks are the chunks that lists need: by their number, and apart as lists, for an
// equal piece may be a content's.
type marks struct {
	reader *chunkReader
	seen   map[mark]bool
}

type mark struct {
	number uint64
	list   bool
}

func (r *chunkReader) marks() *marks { return &marks{reader: r, seen: make(map[mark]bool)} }

// add marks what a list needs.
func (m *marks) add(list []byte) error {
	l, err := chunk.Parse(list, maxContentBytes)
	if err != nil {
		return err
	}
	return l.Each(m.reader.piece, func(number uint64, list bool) bool {
		at := mark{number, list}
		seen := m.seen[at]
		m.seen[at] = true
		return !seen
	})
}

func (m *marks) has(number uint64) bool {
	return m.seen[mark{number, false}] || m.seen[mark{number, true}]
}

// eachList visits the lists of all contents that are in chunks, with the keys under
// which they lie. An error ends it.
func (s *Store) eachList(visit func(key, list []byte) error) (err error) {
	more := s.eachSealed(listPrefix, visit, firstInto(&err))
	if !more {
		return err
	}
	s.eachSealed(versionPrefix, func(key, body []byte) error {
		if isInChunks(body) {
			return visit(key, body[1:])
		}
		return nil
	}, firstInto(&err))
	return err
}

// sweep deletes the chunks that no content needs, and counts them. All lists and numbers of chunks must be
// readable, since what cannot be read might need any chunk, else the error is a *DamageError.
func (s *Store) sweep(found *Garbage) error {
	s.chunks.mu.Lock()
	defer s.chunks.mu.Unlock()
	s.chunks.forget()
	needed := s.chunkReader().marks()
	err := s.eachList(func(key, list []byte) error {
		if err := needed.add(list); err != nil {
			return damaged(key, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	d := deleter{db: s.db, batch: s.db.NewBatch()}
	// First what leads to them, which a crash may leave without them.
	s.eachSealed(findPrefix, func(key, body []byte) error {
		k, err := parseKnown(key, body)
		if err != nil || needed.has(k.number) {
			return err
		}
		return d.delete(key)
	}, firstInto(&err))
	if err == nil {
		s.each(chunkPrefix, func(key, value []byte) error {
			if !hasNumber(key) {
				return damaged(key, errShape)
			}
			if needed.has(uint64(recordID(key))) {
				return nil
			}
			found.Chunks++
			found.ChunkBytes += uint64(max(0, len(value)-crcLen))
			return d.delete(key)
		}, firstInto(&err))
	}
	if err != nil {
		return errors.Join(err, d.batch.Close())
	}
	return s.commit(d.batch)
}

// deleter deletes in batches that do not grow too large.
type deleter struct {
	db    *pebble.DB
	batch *pebble.Batch
}

func (d *deleter) delete(key []byte) error {
	if err := d.batch.Delete(bytes.Clone(key), nil); err != nil || d.batch.Len() < cutBytes {
		return err
	}
	err := errors.Join(d.batch.Commit(pebble.NoSync), d.batch.Close())
	d.batch = d.db.NewBatch()
	return err
}

// letGoChunks deletes the chunks of cell versions that are gone, as far as they were
// these cells' alone and no other version of them needs them. What a crash or damage
// leaves is Collect's.
func (s *Store) letGoChunks(gone map[string][][]byte) error {
	for name, lists := range gone { // order cannot show: no chunk is two cells'
		numbers := s.unneeded([]byte(name), lists)
		if len(numbers) == 0 {
			continue
		}
		if err := s.deleteOwned(ownerOf(name[1:len(name)-1]), numbers); err != nil {
			return err
		}
	}
	return nil
}

// unneeded returns the chunks that lists need and no version of a cell does, none where
// that cannot be told.
func (s *Store) unneeded(name []byte, lists [][]byte) (numbers []uint64) {
	was, is := s.chunkReader().marks(), s.chunkReader().marks()
	for _, list := range lists {
		if was.add(list) != nil {
			return nil
		}
	}
	it, err := s.iterate(name, append(bytes.Clone(name), bytes.Repeat([]byte{0xff}, idLen+1)...))
	if err != nil {
		return nil
	}
	defer func() { _ = it.Close() }() // its error is Error's
	for ok := it.First(); ok; ok = it.Next() {
		body, err := openAt(it.Iterator)
		if err == nil && isInChunks(body) {
			err = is.add(body[1:])
		}
		if err != nil {
			return nil
		}
	}
	if it.Error() != nil {
		return nil
	}
	for at := range was.seen { // order cannot show: each is deleted
		if !is.has(at.number) {
			numbers = append(numbers, at.number)
		}
	}
	return numbers
}

// deleteOwned deletes those of some chunks that have still one owner.
func (s *Store) deleteOwned(of owner, numbers []uint64) error {
	s.chunks.mu.Lock()
	defer s.chunks.mu.Unlock()
	batch, reader := s.db.NewBatch(), s.chunkReader()
	for _, n := range numbers {
		piece, err := reader.piece(n)
		if err != nil {
			continue
		}
		sum := sha256.Sum256(piece)
		key := findKey(sum)
		body, err := s.sealed(key)
		if err != nil {
			continue
		}
		if k, err := parseKnown(key, body); err != nil || k != (known{n, of}) {
			continue
		}
		delete(s.chunks.now, sum)
		delete(s.chunks.was, sum)
		if err := errors.Join(batch.Delete(chunkKey(n), nil), batch.Delete(key, nil)); err != nil {
			return err
		}
	}
	return errors.Join(batch.Commit(pebble.NoSync), batch.Close())
}
