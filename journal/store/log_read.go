package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// fetchRecords is how many records are read from the log where one is wanted, at most: it costs
// a round trip.
const fetchRecords = 256

// wants reports whether what the copy answered with err is to be had from the log.
func (s *Store) wants(err error) bool {
	return err != nil && s.opts.Log != nil && !errors.Is(err, ErrClosed)
}

// entriesOf is storedEntries that has from the log what the copy lacks, or has damaged.
func (s *Store) entriesOf(it *pebble.Iterator, next, end journal.Seq) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for next <= end {
			var lost error
			for e, err := range storedEntries(it, next, end) {
				if s.wants(err) {
					lost = err
					break
				}
				if !yield(e, err) || err != nil {
					return
				}
				next++
			}
			if lost == nil {
				return
			}
			for e, err := range s.fetch(next, beforeStored(it, next, end), lost) {
				if !yield(e, err) || err != nil {
					return
				}
				next++
			}
		}
	}
}

// beforeStored returns the last record before the first segment behind one that the copy has.
func beforeStored(it *pebble.Iterator, next, end journal.Seq) journal.Seq {
	switch {
	case it.SeekGE(recordKey(next+1)) && len(it.Key()) == recordKeyLen:
		return min(end, recordID(it.Key())-1)
	case it.Error() != nil:
		return min(end, next+fetchRecords-1)
	}
	return end
}

// fetchOne returns a record from the log, and puts some of those that follow into the copy, too.
func (s *Store) fetchOne(it *pebble.Iterator, id journal.Seq, lost error) (first entry, err error) {
	end := min(beforeStored(it, id, s.readable().ID), id+fetchRecords-1)
	for e, err := range s.fetch(id, max(id, end), lost) {
		if err != nil && first.record == nil {
			return entry{}, err
		}
		if first.record == nil {
			first = e
		}
	}
	return first, nil
}

// fetch yields records of the log from one to another, all of which are the caller's, and puts
// them into the copy, which has answered with lost; so does fetch where the log has not all.
func (s *Store) fetch(from, to journal.Seq, lost error) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		var records []journal.Stored
		size := 0
		put := func() {
			b := s.db.NewBatch()
			if setRecords(b, records, s.opts.segmentBytes) == nil {
				_ = b.Commit(pebble.NoSync) // else it is fetched again
			}
			_ = b.Close()
			records, size = nil, 0
		}
		defer func() { put() }()
		next := from
		for r, err := range s.opts.Log.Records(context.Background(), from-1) {
			if err != nil {
				yield(entry{}, fmt.Errorf("record #%d: %w: %w", next, errLog, err))
				return
			}
			e, err := parseLinked(r, next)
			if err != nil {
				yield(entry{}, err)
				return
			}
			records = append(records, storedAs(r))
			if size += len(r.Bytes); size >= cutBytes {
				put()
			}
			if next++; !yield(e, nil) || next > to {
				return
			}
		}
		yield(entry{}, lost)
	}
}

func parseLinked(r journal.Linked, id journal.Seq) (entry, error) {
	envelope, err := canon.DecodeEnvelopeAs(r.Bytes, journal.KindOf)
	if err != nil {
		return entry{}, damagedRecord(id, err)
	}
	if r.ID != id || envelope.ID != uint64(id) {
		return entry{}, damagedRecord(id, errWrongID)
	}
	return entry{Envelope: envelope, record: r.Bytes, link: bytes.Clone(r.Link[:])}, nil
}

// fetchBlob returns a content from the log, and puts it into the copy, which has answered with
// lost.
func (s *Store) fetchBlob(h journal.Hash, lost error) ([]byte, error) {
	content, err := s.opts.Log.Blob(h)
	switch {
	case errors.Is(err, journal.ErrRedacted):
		return nil, err
	case errors.Is(err, journal.ErrNotFound):
		return nil, lost
	case err != nil:
		return nil, fmt.Errorf("blob %s: %w: %w", h, errLog, err)
	case canon.Sum(content) != h:
		return nil, damaged(hashKey(blobPrefix, h), errBlobHash)
	}
	s.chunks.mu.Lock()
	defer s.chunks.mu.Unlock()
	b := s.db.NewBatch()
	if s.setBlobs(b, []journal.Blob{{Hash: h, Bytes: content}}) == nil {
		_ = b.Commit(pebble.NoSync) // else it is fetched again
	}
	return content, b.Close()
}

// logKey is where a copy keeps up to where it has no index, because it began with an image, and
// how long the image is that was put into the log last; both may be 0.
func logKey() []byte { return []byte{logPrefix} }

func (s *Store) logState() (unindexed journal.Seq, imageSize uint64, err error) {
	body, err := s.sealed(logKey())
	if errors.Is(err, journal.ErrNotFound) {
		return 0, 0, nil
	}
	if err == nil && len(body) != 2*idLen {
		err = damaged(logKey(), errShape)
	}
	if err != nil {
		return 0, 0, err
	}
	return journal.Seq(binary.BigEndian.Uint64(body)), binary.BigEndian.Uint64(body[idLen:]), nil
}

func (s *Store) keptSize() (uint64, error) {
	_, size, err := s.logState()
	return size, err
}

func setLogState(b *pebble.Batch, unindexed journal.Seq, imageSize uint64) {
	body := binary.BigEndian.AppendUint64(nil, uint64(unindexed))
	seal(b, logKey(), binary.BigEndian.AppendUint64(body, imageSize))
}

// indexRecords is how many records are indexed at once, of those before the image that a copy
// began with.
const indexRecords = 1 << 16

// indexAfter indexes the records after one. A copy that began with an image has no index of those
// before it: it is made when somebody asks, and from there on back, because most worlds are never
// asked so far back, and nothing has to run beside the world then.
func (s *Store) indexAfter(after journal.Seq) error {
	if s.opts.Log == nil {
		return nil
	}
	s.indexing.Lock()
	defer s.indexing.Unlock()
	for {
		to, imageSize, err := s.logState()
		if err != nil || to <= after {
			return err
		}
		from := to - min(to, indexRecords)
		v, err := s.openView()
		if err != nil {
			return err
		}
		b := s.db.NewBatch()
		part := &imageWriter{Image: &journal.Image{Head: journal.Head{ID: to}}, gathered: &gathering{failed: true}}
		err = s.addPostings(b, v, from, part)
		v.close()
		if err == nil {
			setLogState(b, from, imageSize)
			err = b.Commit(pebble.NoSync)
		}
		if err := errors.Join(err, b.Close()); err != nil {
			return err
		}
	}
}

// signedIn yields the signed checkpoints that the log has.
func (s *Store) signedIn(from, to journal.Seq) iter.Seq2[Signed, error] {
	return func(yield func(Signed, error) bool) {
		for n, err := range s.opts.Log.Notes(context.Background(), from, to) {
			var c Signed
			if err == nil {
				c, err = parseSigned(signedKey(n.Size), n.Text)
			}
			if err != nil {
				err = fmt.Errorf("store: signed checkpoints: %w", err)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// lastSigned is LastCheckpoint of the log: it looks back farther and farther.
func (s *Store) lastSigned() (last *Signed, err error) {
	to := s.readable().ID
	for span := journal.Seq(1 << 16); last == nil; span *= 16 {
		from := to - min(to, span)
		for c, err := range s.signedIn(from, to) {
			if err != nil {
				return nil, err
			}
			last = &c
		}
		if from == 0 {
			break
		}
	}
	return last, nil
}

// putNote keeps a signed checkpoint in the log.
func (s *Store) putNote(at journal.Seq, note []byte) error {
	if at > 0 {
		if err := s.Await(context.Background(), at-1); err != nil {
			return err
		}
	}
	return s.opts.Log.PutNote(context.Background(), journal.Note{Size: at, Text: note})
}
