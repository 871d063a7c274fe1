package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/world"
)

// maxPrev is how many older versions of a cell are stepped over before seeking
// past them: a seek costs about as much as that many steps.
const maxPrev = 8

// imageWriter is a checkpoint that is to be written.
type imageWriter struct {
	*world.Image

	done chan struct{}
}

// Checkpoint implements world.Journal, for the head of the last append. It returns at once; the image is written
// beside the appends that follow, and the records since the last checkpoint are
// indexed by cell with it. It is one batch and is not synced: it lies after its
// records in the log, so it is never durable before them, and a crash that
// loses it costs only time.
func (s *Store) Checkpoint(img *world.Image) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	if img.Head.ID != s.head.ID {
		return fmt.Errorf("store: checkpoint at #%d: the journal ends at #%d", img.Head.ID, s.head.ID)
	}
	if img.Head.Root != s.head.Root {
		return fmt.Errorf("store: checkpoint: %w", damagedRecord(img.Head.ID, errLink))
	}
	w := &imageWriter{Image: img, done: make(chan struct{})}
	s.imaged = w.done
	s.appended <- &pending{image: w}
	return nil
}

// writeImages writes checkpoints, in order.
func (s *Store) writeImages() {
	for w := range s.images {
		if s.failed() == nil {
			if err := s.writeImage(w.Image); err != nil {
				_ = s.fail(fmt.Errorf("store: checkpoint at #%d: %w", w.Head.ID, err))
			}
		}
		close(w.done)
	}
}

func (s *Store) writeImage(img *world.Image) error {
	last, err := s.imageHead()
	if err != nil {
		return err
	}
	batch, seal := s.db.NewBatch(), newSealer()
	if err := s.addPostings(batch, seal, last.ID, img.Head.ID); err != nil {
		return errors.Join(err, batch.Close())
	}
	var key []byte
	for _, c := range img.Cells {
		key = cellKey(key[:0], c.Cell, img.Head.ID)
		seal.set(batch, key, c.Bytes)
	}
	for _, in := range img.Intents {
		seal.set(batch, append(append(key[:0], ledgerPrefix), in.Key[:]...), in.Bytes)
	}
	seal.set(batch, []byte{imagePrefix}, appendImage(nil, img))
	return errors.Join(batch.Commit(pebble.NoSync), batch.Close())
}

// settleImages waits until the checkpoints that were asked for are written.
func (s *Store) settleImages() {
	s.mu.Lock()
	imaged := s.imaged
	s.mu.Unlock()
	if imaged != nil {
		<-imaged
	}
}

// Image implements world.History. A piece of it that is not what was written is
// a *DamageError.
func (s *Store) Image() (*world.Image, error) {
	s.settleImages()
	img, err := s.image()
	if err != nil {
		return nil, fmt.Errorf("store: image: %w", err)
	}
	return img, nil
}

func (s *Store) image() (*world.Image, error) {
	body, err := s.sealed([]byte{imagePrefix})
	if errors.Is(err, world.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	img, err := parseImage(body)
	if err != nil {
		return nil, err
	}
	if err := s.onChain(img.Head); err != nil {
		return nil, err
	}
	if img.Cells, err = s.cellVersions(img.Head.ID); err != nil {
		return nil, err
	}
	img.Intents, err = s.intentVersions()
	return img, err
}

// imageHead returns the head of the last checkpoint, up to which records are
// indexed by cell.
func (s *Store) imageHead() (world.Head, error) {
	body, err := s.sealed([]byte{imagePrefix})
	if errors.Is(err, world.ErrNotFound) {
		return world.Head{}, nil
	}
	if err != nil {
		return world.Head{}, err
	}
	img, err := parseImage(body)
	if err != nil {
		return world.Head{}, err
	}
	return img.Head, nil
}

func appendImage(b []byte, img *world.Image) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(img.Head.ID))
	b = append(b, img.Head.Root[:]...)
	return append(b, img.Core...)
}

func parseImage(body []byte) (*world.Image, error) {
	img := &world.Image{}
	if len(body) < idLen+len(img.Head.Root) {
		return nil, damaged([]byte{imagePrefix}, errShape)
	}
	img.Head.ID = world.Seq(binary.BigEndian.Uint64(body))
	copy(img.Head.Root[:], body[idLen:])
	img.Core = body[idLen+len(img.Head.Root):]
	return img, nil
}

// cellVersions returns the latest version, at or before a checkpoint, of every
// cell, sorted by cell. It reads backwards, so that the latest version of a
// cell comes first.
func (s *Store) cellVersions(at world.Seq) ([]world.CellVersion, error) {
	it, err := s.iterate([]byte{versionPrefix}, []byte{versionPrefix + 1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	var cells []world.CellVersion
	var kept arena
	seal := newSealer()
	var found, seek []byte
	older := 0
	for ok := it.Last(); ok; {
		cell, version, ok2 := splitCellKey(it.Key())
		switch {
		case !ok2:
			return nil, damaged(it.Key(), errShape)
		case version > at || bytes.Equal(cell, found):
			older++
			if older%maxPrev == 0 && bytes.Equal(cell, found) {
				seek = append(append(append(seek[:0], versionPrefix), cell...), 0)
				ok = it.SeekLT(seek)
				continue
			}
		default:
			body, err := openAt(seal, it)
			if err != nil {
				return nil, err
			}
			found, older = append(found[:0], cell...), 0
			cells = append(cells, world.CellVersion{Cell: string(cell), Bytes: kept.copy(body)})
		}
		ok = it.Prev()
	}
	if err := it.Error(); err != nil {
		return nil, &DamageError{What: "a cell version before " + string(found), Err: err}
	}
	slices.Reverse(cells)
	return cells, nil
}

func (s *Store) intentVersions() ([]world.IntentVersion, error) {
	it, err := s.iterate([]byte{ledgerPrefix}, []byte{ledgerPrefix + 1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	var intents []world.IntentVersion
	var kept arena
	seal := newSealer()
	for ok := it.First(); ok; ok = it.Next() {
		body, err := openAt(seal, it)
		if err != nil {
			return nil, err
		}
		if len(it.Key()) != 1+len(world.Hash{}) {
			return nil, damaged(it.Key(), errShape)
		}
		intents = append(intents, world.IntentVersion{Key: world.Hash(it.Key()[1:]), Bytes: kept.copy(body)})
	}
	if err := it.Error(); err != nil {
		return nil, &DamageError{What: fmt.Sprintf("the ledger after its entry %d", len(intents)), Err: err}
	}
	return intents, nil
}

// openAt returns the body at an iterator's place, valid until it moves.
func openAt(seal *sealer, it *pebble.Iterator) ([]byte, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return nil, damaged(it.Key(), err)
	}
	return seal.open(it.Key(), value)
}
