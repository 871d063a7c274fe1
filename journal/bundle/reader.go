package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sort"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// placeEvery is how many records share a place in the index of a Reader.
const placeEvery = 512

// Options say how a bundle is opened. The zero value works.
type Options struct {
	Dir         string // of the temporary file; empty: that of the system
	MaxManifest int    // how large a manifest may be that is looked into; 0: as large as any

	MaxBytes int64 // how large a bundle may be unpacked, else ErrSize; 0: DefaultMaxBytes
}

// Reader reads a bundle: it is the journal.History of it. It holds an index in
// memory, of 48 bytes for every blob, 96 more for one in pieces, 16 for every piece, and
// little for every 512 records, and the rest in a temporary file. It is safe for concurrent use.
type Reader struct {
	header  Header
	file    *os.File
	name    string // of the file, to be removed; empty: it has no name any more
	end     int64  // of its last whole item
	places  []place
	blobs   map[journal.Hash]span
	lists   map[journal.Hash]span // of blobs in pieces
	pieces  []span                // number 1 is the first
	notes   []span
	damage  []error
	omitted uint64 // damage that was too much to be kept

	maxManifest int
}

// place is where every 512th record is.
type place struct {
	id journal.Seq
	at int64
}

// span is where some bytes are.
type span struct {
	at    int64
	bytes int
}

// Open reads a bundle once and unpacks it into a temporary file, which Close
// removes. Where it is damaged, what can be read is there, and Damage tells of the
// rest: only a file that has no header of a bundle is an error, ErrNotBundle or
// ErrVersion, and what keeps the file from being read or unpacked.
func Open(from io.Reader, o Options) (*Reader, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	file, err := os.CreateTemp(o.Dir, "worldkernel-bundle-*")
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	r := &Reader{file: file, name: file.Name(), blobs: make(map[journal.Hash]span), lists: make(map[journal.Hash]span), maxManifest: o.MaxManifest}
	if os.Remove(r.name) == nil { // where open files cannot be removed, Close does
		r.name = ""
	}
	if err := r.readBundle(from, o.MaxBytes); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close removes the temporary file.
func (r *Reader) Close() error {
	err := r.file.Close()
	if r.name != "" {
		err = errors.Join(err, os.Remove(r.name))
	}
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// Header returns the header. The caller must not change it.
func (r *Reader) Header() Header { return r.header }

// Checkpoints yields the signed checkpoints that stand at their place, right after
// the record that they name as the last: their sizes ascend. Damage tells of others.
func (r *Reader) Checkpoints() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, at := range r.notes {
			note, err := r.bytes(at)
			if !yield(note, err) || err != nil {
				return
			}
		}
	}
}

// bytes reads a part of the unpacked bundle.
func (r *Reader) bytes(at span) ([]byte, error) {
	b := make([]byte, at.bytes)
	if _, err := r.file.ReadAt(b, at.at); err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	return b, nil
}

// Blob implements journal.History.
func (r *Reader) Blob(h journal.Hash) ([]byte, error) {
	at, ok := r.blobs[h]
	if !ok {
		return nil, fmt.Errorf("blob %s: %w", h, journal.ErrNotFound)
	}
	read := r.bytes
	if list, ok := r.lists[h]; ok {
		read = func(of span) ([]byte, error) { return r.inPieces(list, of.bytes) }
	}
	b, err := read(at)
	if err == nil && canon.Sum(b) != h {
		err = fmt.Errorf("bundle: blob %s: the temporary file has changed", h)
	}
	return b, err
}

// Scan implements journal.History. A record that cannot be decoded is yielded with
// the id that it has by its place; after the first item that is cut off, or no
// item, there is nothing, and that is no error: Damage tells of it.
func (r *Reader) Scan(after journal.Seq) iter.Seq2[journal.Scanned, error] {
	return func(yield func(journal.Scanned, error) bool) {
		from := r.placeOf(after)
		next := from.id
		x := newItems(io.NewSectionReader(r.file, from.at, r.end-from.at), from.at)
		for {
			item, _, err := x.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(journal.Scanned{}, fmt.Errorf("bundle: record #%d: %w", next, err))
				return
			}
			if item[0]&majorMask != majorArray {
				continue
			}
			s, ok := scanned(bytes.Clone(item), next)
			if !ok {
				continue
			}
			next = s.ID + 1
			if after > 0 && s.ID <= after {
				continue
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

// placeOf returns a place that is not after the record after a given one.
func (r *Reader) placeOf(after journal.Seq) place {
	n := sort.Search(len(r.places), func(i int) bool { return r.places[i].id > after })
	if n > 0 {
		return r.places[n-1]
	}
	if len(r.places) > 0 {
		return r.places[0]
	}
	return place{at: r.end}
}

// Record implements journal.History.
func (r *Reader) Record(id journal.Seq) ([]byte, error) {
	for s, err := range r.Scan(max(id, 1) - 1) {
		if err != nil {
			return nil, err
		}
		if s.ID == id {
			return s.Bytes, nil
		}
		if s.ID > id {
			break
		}
	}
	return nil, fmt.Errorf("record #%d: %w", id, journal.ErrNotFound)
}

// Image implements journal.History: a bundle has no images.
func (*Reader) Image(journal.Seq) (*journal.Image, error) { return nil, nil }

// Part implements journal.History.
func (*Reader) Part(at journal.Seq, _ []string) (*journal.Image, error) {
	return nil, fmt.Errorf("image at #%d: %w", at, journal.ErrNotFound)
}

// Damage yields what is wrong with the file below the level of records, in its
// order: each a *DamageError. It does not tell of records that cannot be decoded,
// are missing, repeated or out of order, of links, of blobs that are missing, nor
// of what checkpoints say: whoever verifies the records does.
func (r *Reader) Damage() iter.Seq[error] { return slices.Values(r.damage) }
