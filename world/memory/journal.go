package memory

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/journal"
)

// Journal is a journal.Journal in memory with all that it holds: what is appended is
// durable at once. The zero value is empty; it is not safe for concurrent use.
type Journal struct {
	journal.Images // implement Image, Part and journal.Versions

	records []journal.Stored
	blobs   map[journal.Hash][]byte
}

// Head returns where the journal ends.
func (j *Journal) Head() journal.Head {
	if len(j.records) == 0 {
		return journal.Head{}
	}
	last := j.records[len(j.records)-1]
	return journal.Head{ID: last.ID, Root: last.Root}
}

// Append implements journal.Journal. The error is journal.ErrFenced.
func (j *Journal) Append(b journal.Batch) (journal.Pending, error) {
	if head := j.Head(); b.After != head {
		return nil, fmt.Errorf("memory: append after #%d to a journal that ends at #%d: %w", b.After.ID, head.ID, journal.ErrFenced)
	}
	for _, s := range b.Records {
		s.Bytes = bytes.Clone(s.Bytes)
		j.records = append(j.records, s)
	}
	if j.blobs == nil {
		j.blobs = make(map[journal.Hash][]byte)
	}
	for _, x := range b.Blobs {
		j.blobs[x.Hash] = x.Bytes
	}
	return durable{}, nil
}

// durable is an append to memory.
type durable struct{}

// Wait implements journal.Pending.
func (durable) Wait() error { return nil }

// Done implements journal.Pending.
func (durable) Done() bool { return true }

// Checkpoint implements journal.Journal.
func (j *Journal) Checkpoint(img *journal.Image) error {
	j.Add(img)
	return nil
}

// Notify implements journal.Journal: no append is ever pending.
func (j *Journal) Notify(func()) {}

// Clone returns a copy, as another journal.
func (j *Journal) Clone() *Journal {
	return &Journal{Images: j.Images.Clone(), records: slices.Clone(j.records), blobs: maps.Clone(j.blobs)}
}

// Truncate returns a copy that ends with record n, without images.
func (j *Journal) Truncate(n journal.Seq) *Journal {
	return &Journal{records: slices.Clone(j.records[:n]), blobs: maps.Clone(j.blobs)}
}

// Destroy loses the payloads of records of a kind that are blobs, as redaction does.
func (j *Journal) Destroy(kind journal.Kind) {
	for _, s := range j.records {
		if rec, err := journal.DecodeRecord(s.Bytes); err == nil && rec.Kind == kind {
			delete(j.blobs, rec.Blob)
		}
	}
}

// Records returns all records. The caller must not change them.
func (j *Journal) Records() []journal.Stored { return j.records }

// Scan implements journal.History.
func (j *Journal) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		for _, s := range j.records[min(int(after), len(j.records)):] {
			if !yield(journal.NewScanned(s.ID, s.Bytes, s.Root[:]), nil) {
				return
			}
		}
	}
}

// Record implements journal.History.
func (j *Journal) Record(id journal.Seq) ([]byte, error) {
	if id == 0 || int(id) > len(j.records) {
		return nil, fmt.Errorf("record #%d: %w", id, journal.ErrNotFound)
	}
	return j.records[id-1].Bytes, nil
}

// Blob implements journal.Blobs.
func (j *Journal) Blob(h journal.Hash) ([]byte, error) {
	b, ok := j.blobs[h]
	if !ok {
		return nil, fmt.Errorf("blob %s: %w", h, journal.ErrNotFound)
	}
	return b, nil
}
