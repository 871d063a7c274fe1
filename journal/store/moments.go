package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/journal"
)

// mostMoments is how many images are kept for looks back at most.
const mostMoments = 32

// moments returns which of the images before a new one are kept for looks back, though the
// world does not need them: each so many records at least after the last one that stays, and
// farther apart where the journal has more than so many times mostMoments. None where apart
// is 0.
func moments(img *journal.Image, heads []journal.Seq, apart journal.Seq) (out []journal.Seq) {
	if apart == 0 {
		return nil
	}
	apart, old := thinned(apart, img.Head.ID)
	last := journal.Seq(0)
	for _, head := range heads {
		switch {
		case head >= img.Head.ID:
		case slices.Contains(img.Keep, head):
			last = head
		case head-last >= apart && (last >= old || head-last >= 2*apart):
			out, last = append(out, head), head
		}
	}
	return out
}

// thinned returns how far apart images are in a journal of so many records, and up to which record
// it is twice as far. That grows with the journal, so images go one by one, and not half of all
// when it has doubled.
func thinned(apart, head journal.Seq) (_, old journal.Seq) {
	for apart > 0 && head/apart >= 2*mostMoments {
		apart *= 2
	}
	if most := mostMoments * apart; apart > 0 && head > most {
		old = 2 * (head - most)
	}
	return apart, old
}

// mark marks the images that are kept for looks back, and no others.
func (k *keeper) mark() error {
	if err := k.batch.DeleteRange([]byte{momentPrefix}, []byte{momentPrefix + 1}, nil); err != nil {
		return err
	}
	for _, head := range k.marked {
		seal(k.batch, numberKey(momentPrefix, head), nil)
	}
	return nil
}

// marked returns the heads of the images that are kept for looks back, ascending.
func (v *view) marked() ([]journal.Seq, error) {
	return v.numbers(momentPrefix, "the marks of images for looks back")
}

// dropMoments lets go of the images that are kept for looks back.
func (s *Store) dropMoments() error {
	v, err := s.openView()
	if err != nil {
		return err
	}
	defer v.close()
	heads, err := v.heads()
	if err != nil {
		return err
	}
	marked, err := v.marked()
	if err != nil || len(marked) == 0 {
		return err
	}
	img := &journal.Image{Head: journal.Head{ID: journal.Last}}
	img.Keep = slices.DeleteFunc(slices.Clone(heads), func(head journal.Seq) bool { return slices.Contains(marked, head) })
	batch := s.db.NewBatch()
	k, err := newKeeper(batch, v, img, heads, 0)
	if err != nil {
		return errors.Join(err, batch.Close())
	}
	defer k.old.close()
	if err := errors.Join(k.leave(), k.mark()); err != nil {
		return errors.Join(err, batch.Close())
	}
	return errors.Join(batch.Commit(pebble.Sync), batch.Close())
}

// ImageHeads returns the heads of all images that are there, ascending.
func (s *Store) ImageHeads() (heads []journal.Seq, err error) {
	err = s.settled(func(v *view) error {
		heads, err = v.heads()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: images: %w", err)
	}
	return heads, nil
}
