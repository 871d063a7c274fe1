package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/chunk"
	"github.com/worldkernel/worldkernel/journal"
)

// Record implements journal.History. A record that is not what was written is a
// *DamageError; its place in the chain is not checked, which takes a Scan.
func (s *Store) Record(id journal.Seq) ([]byte, error) {
	if recent, _ := s.acked.since(id - 1); len(recent) > 0 {
		return bytes.Clone(recent[0].Bytes), nil
	}
	e, err := s.entry(id)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return e.record, nil
}

// Blob implements journal.Blobs. A blob that has not its hash is a *DamageError, one
// that was redacted a journal.ErrRedacted.
func (s *Store) Blob(h journal.Hash) ([]byte, error) {
	value, err := s.blob(h)
	if errors.Is(err, journal.ErrNotFound) {
		err = cmp.Or(s.redacted(h), err)
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return value, nil
}

func (s *Store) blob(h journal.Hash) ([]byte, error) {
	value, err := s.storedBlob(h)
	if s.wants(err) {
		return s.fetchBlob(h, err)
	}
	return value, err
}

// storedBlob is blob of what is in the directory.
func (s *Store) storedBlob(h journal.Hash) ([]byte, error) {
	key := hashKey(listPrefix, h)
	value, err := s.sealed(key)
	if errors.Is(err, journal.ErrNotFound) {
		value, err = s.get(hashKey(blobPrefix, h))
	} else if err == nil {
		value, err = s.chunkReader().content(value)
		if errors.Is(err, chunk.ErrList) {
			err = damaged(key, err)
		} else if err != nil {
			err = fmt.Errorf("blob %s: %w", h, err)
		}
	}
	if err == nil && canon.Sum(value) != h {
		err = damaged(key, errBlobHash)
	}
	return value, err
}

// hasBlob reports whether a content is there, be it damaged.
func (s *Store) hasBlob(h journal.Hash) error {
	_, err := s.get(hashKey(listPrefix, h))
	if errors.Is(err, journal.ErrNotFound) {
		_, err = s.get(hashKey(blobPrefix, h))
	}
	if s.wants(err) {
		_, err = s.blob(h)
	}
	return err
}

// Scan implements journal.History. The error that ends it is a *DamageError where
// a record is damaged, missing or off the chain. The bytes may be kept.
// Records are read ahead while the caller works on those before.
func (s *Store) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		s.readAhead(after, nil, yield)
	}
}

// ScanChain implements journal.Chainer: the roots are computed ahead, too.
func (s *Store) ScanChain(after journal.Head) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		s.readAhead(after.ID, canon.ResumeChain(after.Root), yield)
	}
}

// ahead is a scan under way: a goroutine reads records while the caller works on those
// before.
type ahead struct {
	store  *Store
	chain  *canon.Chain // nil: nobody asks for roots
	chunks chan scanChunk
	spare  chan []journal.Scanned // that the caller is done with, to be used again
	stop   chan struct{}
}

// scanChunk is some records that were read ahead, and what ended the reading.
type scanChunk struct {
	records []journal.Scanned
	err     error
}

// Records are handed over many at once, in at most so many chunks.
const (
	chunkRecords = 512
	chunksAhead  = 2
)

func (s *Store) readAhead(after journal.Seq, chain *canon.Chain, yield func(journal.Scanned, error) bool) {
	a := ahead{
		store: s, chain: chain, chunks: make(chan scanChunk, chunksAhead),
		spare: make(chan []journal.Scanned, chunksAhead), stop: make(chan struct{}),
	}
	var reader sync.WaitGroup
	reader.Go(func() { a.readAhead(after) })
	defer reader.Wait()
	defer close(a.stop)
	for c := range a.chunks {
		for i := range c.records {
			if !yield(c.records[i], nil) {
				return
			}
		}
		if c.err != nil {
			yield(journal.Scanned{}, fmt.Errorf("store: scan: %w", c.err))
			return
		}
		select {
		case a.spare <- c.records[:0]:
		default:
		}
	}
}

func (a *ahead) readAhead(after journal.Seq) {
	defer close(a.chunks)
	var kept arena
	var c scanChunk
	for e, err := range a.store.entries(after + 1) {
		if err != nil {
			c.err = err
			break
		}
		r := journal.ScannedAs(e.Envelope, kept.copy(e.record), e.link)
		if a.chain != nil {
			r.Root = a.chain.Add(e.ID, e.Kind, r.Bytes)
		}
		if c.records = append(c.records, r); len(c.records) == chunkRecords {
			if !a.send(c) {
				return
			}
			c = scanChunk{records: a.memory()}
		}
	}
	a.send(c)
}

// send hands a chunk over; false: nobody wants it any more.
func (a *ahead) send(c scanChunk) bool {
	select {
	case a.chunks <- c:
		return true
	case <-a.stop:
		return false
	}
}

// memory returns memory for a chunk.
func (a *ahead) memory() []journal.Scanned {
	select {
	case m := <-a.spare:
		return m
	default:
		return make([]journal.Scanned, 0, chunkRecords)
	}
}

func (s *Store) scan(after journal.Head) iter.Seq2[journal.Stored, error] {
	return func(yield func(journal.Stored, error) bool) {
		chain := canon.ResumeChain(after.Root)
		var kept arena
		for e, err := range s.entries(after.ID + 1) {
			if err != nil {
				yield(journal.Stored{}, err)
				return
			}
			id := journal.Seq(e.ID)
			root := chain.Add(e.ID, e.Kind, e.record)
			if !bytes.Equal(root[:linkLen], e.link) {
				yield(journal.Stored{}, damagedRecord(id, errLink))
				return
			}
			if !yield(journal.Stored{ID: id, Bytes: kept.copy(e.record), Root: root}, nil) {
				return
			}
		}
	}
}

// payload returns the payload of a record, from its blob if it has one.
func (s *Store) payload(e entry) ([]byte, error) {
	if e.Blob.IsZero() {
		return e.Payload, nil
	}
	return s.Blob(e.Blob)
}

// get returns a copy of a value.
func (s *Store) get(key []byte) ([]byte, error) {
	value, closer, err := s.value(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, fmt.Errorf("%s: %w", nameOf(key), journal.ErrNotFound)
	case errors.Is(err, ErrClosed):
		return nil, err
	case err != nil:
		return nil, damaged(key, err)
	}
	value = bytes.Clone(value)
	return value, closer.Close()
}

// sealed returns a copy of the body of a value that carries a sum.
func (s *Store) sealed(key []byte) ([]byte, error) {
	value, err := s.get(key)
	if err != nil {
		return nil, err
	}
	return unseal(key, value)
}

// arena keeps copies of many small slices in few large ones.
type arena struct{ free []byte }

const arenaChunk = 64 << 10 // bytes

func (a *arena) copy(b []byte) []byte {
	if len(b) > arenaChunk/8 {
		return bytes.Clone(b)
	}
	if len(b) > cap(a.free)-len(a.free) {
		a.free = make([]byte, 0, min(max(2*cap(a.free), arenaChunk/8), arenaChunk)) // who follows a journal copies little at a time
	}
	start := len(a.free)
	a.free = append(a.free, b...)
	return a.free[start:len(a.free):len(a.free)]
}
