package local

import (
	"errors"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/memory"
)

// Branches returns the records after which a fork can begin that is to have all up to one:
// the first that the kernel takes is the last of them. See Fork.
func (lw *World) Branches(at journal.Seq) ([]journal.Seq, error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	place, err := lw.boundary(at)
	if err != nil || place.before == 0 {
		return []journal.Seq{place.at}, err
	}
	return []journal.Seq{place.at, place.before}, nil
}

// InMemory returns a copy of what the world has recorded up to a record, with the image
// before it.
func (lw *World) InMemory(at journal.Seq) (*memory.Journal, error) {
	j, chain := new(memory.Journal), new(canon.Chain)
	for s, err := range lw.Scan(0) {
		if err = errors.Join(err, s.Err); err != nil {
			return nil, err
		}
		rec := s.Record
		if err := rec.Load(lw); err != nil {
			return nil, err
		}
		blobs, err := blobsOf(lw.store, &rec)
		if err != nil {
			return nil, err
		}
		b := journal.Batch{After: j.Head(), Records: []journal.Stored{{ID: s.ID, Bytes: s.Bytes, Root: chain.Add(uint64(s.ID), string(rec.Kind), s.Bytes)}}, Blobs: blobs}
		b.Head = journal.Head{ID: s.ID, Root: b.Records[0].Root}
		if _, err := j.Append(b); err != nil {
			return nil, err
		}
		if s.ID == at {
			break
		}
	}
	img, err := lw.Image(at)
	if err != nil || img == nil {
		return j, err
	}
	return j, j.Checkpoint(img)
}
