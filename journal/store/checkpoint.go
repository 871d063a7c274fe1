package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// errEarly says that an image is older than the one before it. It is the
// caller's fault.
var errEarly = errors.New("a later image is stored already")

// imageWriter is a checkpoint that is to be written.
type imageWriter struct {
	*journal.Image

	past     bool       // it is one of KeepPast
	gathered *gathering // of the records since the one before; of one of KeepPast nil
	done     chan struct{}
}

// Checkpoint implements journal.Journal, for any head from the last checkpoint's to
// the last append's. It returns at once; the image is written beside the appends
// that follow, and the records since the last checkpoint are indexed by cell with
// it. It is one batch and is not synced: it lies after its records in the log, so
// it is never durable before them, and a crash that loses it costs only time.
func (s *Store) Checkpoint(img *journal.Image) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	if err := s.checkImage(img.Head); err != nil {
		return fmt.Errorf("store: checkpoint at #%d: %w", img.Head.ID, err)
	}
	w := &imageWriter{Image: img, done: make(chan struct{})}
	s.imaged, s.imagedID = w.done, img.Head.ID
	s.appended <- &pending{image: w}
	return nil
}

// checkImage refuses a head that the journal does not have, as far as it can be
// told at once: the record of an older one may still be on its way to Pebble.
func (s *Store) checkImage(head journal.Head) error {
	last := s.imagedID
	if s.imaged == nil {
		var err error
		if last, err = s.lastImage(); err != nil {
			return err
		}
	}
	switch {
	case head.ID > s.head.ID:
		return fmt.Errorf("the journal ends at #%d", s.head.ID)
	case head.ID < last:
		return fmt.Errorf("%w: that of #%d", errEarly, last)
	case head.ID == s.head.ID && head.Root != s.head.Root:
		return damagedRecord(head.ID, errLink)
	case head.ID <= s.readable().ID:
		return s.onChain(head)
	}
	return nil
}

// writeImages writes checkpoints, in order.
func (s *Store) writeImages() {
	defer close(s.keep)
	for w := range s.images {
		if s.failed() == nil {
			if err := s.write(w); err != nil {
				_ = s.fail(fmt.Errorf("store: checkpoint at #%d: %w", w.Head.ID, err))
			}
		}
		s.newest.letGo()
		close(w.done)
		select {
		case s.keep <- struct{}{}:
		default: // it goes with the next
		}
	}
}

// write writes an image: the newest, or one of the past between others.
func (s *Store) write(img *imageWriter) error {
	if err := s.onChain(img.Head); err != nil {
		return err
	}
	before, err := s.openView()
	if err != nil {
		return err
	}
	defer before.close()
	if s.heads == nil {
		if s.heads, err = before.heads(); err != nil {
			return err
		}
	}
	if img.past {
		return s.writePast(before, img.Image)
	}
	return s.writeImage(before, img)
}

func (s *Store) writeImage(before *view, img *imageWriter) error {
	short, err := s.chunkCells(img.Image)
	if err != nil {
		return err
	}
	img = &imageWriter{Image: short, gathered: img.gathered}
	batch := s.db.NewBatch()
	k, err := s.fillImage(batch, before, img)
	if err != nil {
		return errors.Join(err, batch.Close())
	}
	s.heads = append(k.kept, img.Head.ID)
	if err := errors.Join(batch.Commit(pebble.NoSync), batch.Close()); err != nil {
		return err
	}
	s.unkept.Store(true)
	return s.letGoChunks(k.lists)
}

// fillImage puts into a batch all that an image changes, and returns what was kept and
// what was not. The batch shows nothing of itself: what there was is
// asked of before alone.
func (s *Store) fillImage(batch *pebble.Batch, before *view, img *imageWriter) (*keeper, error) {
	last := journal.Seq(0)
	if len(s.heads) > 0 {
		last = s.heads[len(s.heads)-1]
	}
	if err := s.addPostings(batch, before, last, img); err != nil {
		return nil, err
	}
	k, err := newKeeper(batch, before, img.Image, s.heads, s.opts.Moments)
	if err != nil {
		return nil, err
	}
	defer k.old.close()
	k.lately = s.written
	if err := errors.Join(k.leave(), k.mark()); err != nil {
		return nil, err
	}
	if err := k.putAll(img.Image); err != nil {
		return nil, err
	}
	s.written = k.now.after(k.lately)
	seal(batch, imageKey(img.Head.ID), imageBody(img.Image))
	return k, nil
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
