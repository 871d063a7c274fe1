package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// segmentBytes is how long a segment gets before the next one begins. Pebble
// pays for every key, and records are small.
const segmentBytes = 4 << 10

// frameBytes is what a segment holds of a record besides its stored bytes.
const frameBytes = frameLen + linkLen + crcLen

// errLost says that a record cannot be found behind a damaged one.
var errLost = errors.New("a record before it in its segment is damaged, so it cannot be found")

// setRecords puts records into a batch, several to a segment; least is how long
// a segment gets. It makes no copy but the one in the batch.
func setRecords(b *pebble.Batch, records []journal.Stored, least int) error {
	for len(records) > 0 {
		size, n := 0, 0
		for n < len(records) && size < least {
			size += frameBytes + len(records[n].Bytes)
			n++
		}
		op := b.SetDeferred(recordKeyLen, size)
		op.Key[0] = recordPrefix
		binary.BigEndian.PutUint64(op.Key[1:], uint64(records[0].ID))
		at := op.Value
		for _, r := range records[:n] {
			at = at[putFrame(at, r):]
		}
		if err := op.Finish(); err != nil {
			return err
		}
		records = records[n:]
	}
	return nil
}

// putFrame writes a record as a segment holds it and returns its length.
func putFrame(b []byte, r journal.Stored) int {
	binary.BigEndian.PutUint32(b, uint32(len(r.Bytes)))
	n := frameLen + copy(b[frameLen:], r.Bytes)
	n += copy(b[n:], r.Root[:linkLen])
	binary.BigEndian.PutUint32(b[n:], checkCRC(b[:n]))
	return n + crcLen
}

//nolint:gochecknoglobals // an immutable table
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checkCRC(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// cutFrame takes one frame off a segment; false: its length makes no sense.
func cutFrame(segment []byte) (frame, rest []byte, ok bool) {
	if len(segment) < frameBytes {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(segment)) + frameBytes
	if n > uint64(len(segment)) {
		return nil, nil, false
	}
	return segment[:n], segment[n:], true
}

// entry is a record as the journal holds it; record and link are parts of the
// segment it was parsed from.
type entry struct {
	canon.Envelope

	record, link []byte
}

// parseFrame checks all of a record but its link.
func parseFrame(id journal.Seq, frame []byte) (entry, error) {
	sum := len(frame) - crcLen
	if checkCRC(frame[:sum]) != binary.BigEndian.Uint32(frame[sum:]) {
		return entry{}, damagedRecord(id, errSum)
	}
	record, link := frame[frameLen:sum-linkLen], frame[sum-linkLen:sum]
	envelope, err := canon.DecodeEnvelopeAs(record, journal.KindOf)
	if err != nil {
		return entry{}, damagedRecord(id, err)
	}
	if envelope.ID != uint64(id) {
		return entry{}, damagedRecord(id, errWrongID)
	}
	return entry{Envelope: envelope, record: record, link: link}, nil
}

// segmentEntries yields the records of a segment from one on. An error names
// the record that it stands for; only one that is errLost or errShape ends it.
func segmentEntries(first journal.Seq, segment []byte, from journal.Seq) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for id := first; len(segment) > 0; id++ {
			frame, rest, ok := cutFrame(segment)
			switch {
			case !ok && id < from:
				yield(entry{}, damagedRecord(from, errLost))
				return
			case !ok:
				yield(entry{}, damagedRecord(id, errShape))
				return
			}
			segment = rest
			if id < from {
				continue
			}
			if !yield(parseFrame(id, frame)) {
				return
			}
		}
	}
}

// entry returns one record; the bytes are the caller's.
func (s *Store) entry(id journal.Seq) (entry, error) {
	e, err := s.storedEntry(id)
	if !s.wants(err) || id == 0 || id > s.readable().ID {
		return e, err
	}
	it, failed := s.iterate([]byte{recordPrefix}, []byte{recordPrefix + 1})
	if failed != nil {
		return entry{}, failed
	}
	defer func() { _ = it.Close() }() // its error is Error's
	return s.fetchOne(it.Iterator, id, err)
}

// storedEntry is entry of what is in the directory.
func (s *Store) storedEntry(id journal.Seq) (entry, error) {
	it, err := s.iterate([]byte{recordPrefix}, recordKey(id+1))
	if err != nil {
		return entry{}, err
	}
	defer func() { _ = it.Close() }()            // its error is Error's
	if a := s.archives.archiveOf(id); a != nil { // asked for behind the iterator: see entries
		for e, err := range s.archivedEntries(*a, id) {
			if err == nil { // the member is used again
				e.record, e.link = bytes.Clone(e.record), bytes.Clone(e.link)
				e.Envelope, err = canon.DecodeEnvelopeAs(e.record, journal.KindOf)
			}
			return e, err
		}
	}
	if it.Last() {
		first, segment, err := segmentAt(it.Iterator)
		if err != nil {
			return entry{}, damagedRecord(id, err)
		}
		for e, err := range segmentEntries(first, bytes.Clone(segment), id) {
			return e, err
		}
	}
	if err := it.Error(); err != nil {
		return entry{}, damagedRecord(id, err)
	}
	return entry{}, fmt.Errorf("record #%d: %w", id, journal.ErrNotFound)
}

func segmentAt(it *pebble.Iterator) (first journal.Seq, segment []byte, err error) {
	if len(it.Key()) != recordKeyLen {
		return 0, nil, &DamageError{What: fmt.Sprintf("key %x", it.Key()), Err: errShape}
	}
	segment, err = it.ValueAndErr()
	return recordID(it.Key()), segment, err
}

// entries yields records from an id to the head that the journal had when it
// began, each valid until the next; an error names the first that is missing
// or damaged, and ends it. Archived ones come from their files.
func (s *Store) entries(from journal.Seq) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		end := s.readable().ID
		if from > end {
			return
		}
		it, err := s.iterate([]byte{recordPrefix}, recordKey(end+1))
		if err != nil {
			yield(entry{}, err)
			return
		}
		defer func() { _ = it.Close() }() // its error is Error's
		next := from
		more := func(part iter.Seq2[entry, error]) bool {
			for e, err := range part {
				if !yield(e, err) || err != nil {
					return false
				}
				if next++; next > end {
					return false
				}
			}
			return true
		}
		// The iterator is older than this list: what it does not see is in there.
		for _, a := range s.archives.allArchives() {
			if next < a.First && !more(s.entriesOf(it.Iterator, next, a.First-1)) {
				return
			}
			if next <= a.Last.ID && !more(s.archivedEntries(a, next)) {
				return
			}
		}
		if next <= end {
			more(s.entriesOf(it.Iterator, next, end))
		}
	}
}

// storedEntries yields the records from one to another that an iterator over
// segments finds.
func storedEntries(it *pebble.Iterator, next, end journal.Seq) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for ok := it.SeekLT(recordKey(next + 1)); ok && next <= end; ok = it.Next() {
			first, segment, err := segmentAt(it)
			if err != nil {
				yield(entry{}, damagedRecord(next, err))
				return
			}
			if first > next {
				break
			}
			for e, err := range segmentEntries(first, segment, next) {
				if !yield(e, err) || err != nil {
					return
				}
				if next++; next > end {
					return
				}
			}
		}
		if err := it.Error(); err != nil {
			yield(entry{}, damagedRecord(next, err))
		} else if next <= end {
			yield(entry{}, damagedRecord(next, journal.ErrNotFound))
		}
	}
}

// lastID returns the id of the last record, 0 where there is none.
func (s *Store) lastID() (journal.Seq, error) {
	it, err := s.iterate([]byte{recordPrefix}, []byte{recordPrefix + 1})
	if err != nil {
		return 0, err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	if !it.Last() {
		return 0, it.Error()
	}
	first, segment, err := segmentAt(it.Iterator)
	last := first - 1
	for err == nil && len(segment) > 0 {
		var ok bool
		last++
		if _, segment, ok = cutFrame(segment); !ok {
			err = damagedRecord(last, errShape)
		}
	}
	return last, err
}
