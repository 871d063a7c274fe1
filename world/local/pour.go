package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// A batch of records that are poured becomes durable at once. It has so many, or so many
// bytes, or a few more.
const (
	pourRecords = 2048
	pourBytes   = 8 << 20
)

// pouring appends the records of one journal to another, which has none: many at a time,
// each with the contents that it is the first to need.
type pouring struct {
	from journal.History
	to   interface {
		Append(batch journal.Batch) (journal.Pending, error)
	}
	// redact destroys a content that from does not have, when the record is at hand that says so.
	redact   func(content journal.Hash) error
	progress func(done uint64) // nil: nobody asks

	chain   canon.Chain
	batch   journal.Batch
	bytes   int
	there   map[journal.Hash]bool        // contents that were brought
	missing map[journal.Hash]journal.Seq // payloads that did not come, and first records that have them
}

// pourAll returns when all records are durable. It refuses records that are no chain, and
// payloads that are missing and that no record says to be redacted.
func (p *pouring) pourAll(ctx context.Context) error {
	p.there, p.missing = make(map[journal.Hash]bool), make(map[journal.Hash]journal.Seq)
	for s, err := range p.from.Scan(0) {
		if err = errors.Join(err, s.Err, context.Cause(ctx)); err != nil {
			return err
		}
		if err := p.add(s); err != nil {
			return fmt.Errorf("record #%d: %w", s.ID, err)
		}
		if len(p.batch.Records) < pourRecords && p.bytes < pourBytes {
			continue
		}
		if err := p.flush(); err != nil {
			return err
		}
	}
	for blob, id := range p.missing { // order shows in which one is named first; any is true
		return fmt.Errorf("record #%d: payload %s is missing, and no record says that it was redacted", id, blob)
	}
	return p.flush()
}

var errNoChain = errors.New("records are missing, repeated, out of order, or changed")

func (p *pouring) add(s journal.Scanned) error {
	rec := s.Record
	root := p.chain.Add(uint64(s.ID), string(rec.Kind), s.Bytes)
	if s.ID != p.batch.Head.ID+1 || !bytes.Equal(s.Link[:], root[:journal.LinkBytes]) {
		return errNoChain
	}
	err := rec.Load(p.from)
	if errors.Is(err, journal.ErrRedacted) || errors.Is(err, journal.ErrNotFound) {
		if p.missing[rec.Blob] == 0 {
			p.missing[rec.Blob] = s.ID
		}
	} else if err != nil {
		return err
	}
	blobs, err := blobsOf(p.from, &rec)
	if err != nil {
		return err
	}
	p.batch.Records = append(p.batch.Records, journal.Stored{ID: s.ID, Bytes: s.Bytes, Root: root})
	p.batch.Head = journal.Head{ID: s.ID, Root: root}
	p.bytes += len(s.Bytes)
	for _, b := range blobs {
		if !p.there[b.Hash] {
			p.there[b.Hash] = true
			p.batch.Blobs = append(p.batch.Blobs, b)
			p.bytes += len(b.Bytes)
		}
	}
	if rec.Kind != journal.KindRedacted {
		return nil
	}
	body, err := rec.Body()
	if err != nil {
		return err
	}
	return p.gone(body.(*journal.Redacted).Blob)
}

// gone redacts a content, unless the journal has it again.
func (p *pouring) gone(blob journal.Hash) error {
	_, err := p.from.Blob(blob)
	if err == nil {
		return nil
	}
	if !errors.Is(err, journal.ErrRedacted) && !errors.Is(err, journal.ErrNotFound) {
		return err
	}
	delete(p.missing, blob)
	return p.redact(blob)
}

// flush makes the batch durable and begins the next.
func (p *pouring) flush() error {
	if len(p.batch.Records) == 0 {
		return nil
	}
	done, err := p.to.Append(p.batch)
	if err == nil {
		err = done.Wait()
	}
	if err == nil && p.progress != nil {
		p.progress(uint64(p.batch.Head.ID))
	}
	p.batch, p.bytes = journal.Batch{After: p.batch.Head, Head: p.batch.Head}, 0
	return err
}
