package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// readBundle unpacks a bundle, and makes the index of it.
func (r *Reader) readBundle(from io.Reader, most int64) error {
	u, odd, err := newUnpacker(from, r.file, most)
	if err != nil {
		return err
	}
	x := newItems(u, 0)
	x.named = true
	item, _, err := x.next()
	switch {
	case u.failed != nil || u.in.failed != nil:
		return fmt.Errorf("bundle: %w", errors.Join(u.failed, u.in.failed))
	case err != nil:
		return fmt.Errorf("%w: its first item: %w", ErrNotBundle, err)
	}
	if r.header, err = decodeHeader(item); err != nil {
		return err
	}
	if odd != nil {
		r.damaged(0, 0, "%w", odd)
	}
	for _, fault := range r.header.faults() {
		r.damaged(1, 0, "%w", fault)
	}
	k := newIndexer(r, x)
	k.most = most
	for err = nil; err == nil; {
		err = k.next()
	}
	if u.failed != nil || u.in.failed != nil {
		return fmt.Errorf("bundle: %w", errors.Join(u.failed, u.in.failed))
	}
	if errors.Is(err, ErrSize) {
		return fmt.Errorf("%w: %d", ErrSize, most)
	}
	r.end = x.at
	k.close(u, err)
	if r.omitted > 0 {
		r.damage = append(r.damage, &DamageError{Err: fmt.Errorf("%d more parts of it are damaged", r.omitted)})
	}
	return nil
}

// indexer walks the items behind the header and judges what each is and where it
// stands.
type indexer struct {
	course

	r     *Reader
	items *items
	item  []byte // at hand
	at    int64  // where it begins

	fresh   []pendingPiece               // since the last blob
	stood   uint64                       // bytes that the blobs in pieces stand for
	most    int64                        // of them
	pending []pendingBlob                // since the last record
	absent  map[journal.Hash]journal.Seq // blobs that were not there when a record needed them: redacted, withheld or missing
}

// pendingBlob is a blob that some record has to need.
type pendingBlob struct {
	name journal.Hash
	item uint64
	at   int64
}

func newIndexer(r *Reader, x *items) *indexer {
	return &indexer{course: newCourse(&r.header), r: r, items: x, absent: make(map[journal.Hash]journal.Seq)}
}

// next takes the next item. An error ends the reading.
func (k *indexer) next() (err error) {
	if k.item, k.at, err = k.items.next(); err != nil {
		return err
	}
	switch {
	case k.signed > 0 && k.signed == k.r.header.Last:
		return k.stop(errFollowed)
	case len(k.r.damage) >= maxDamage-1:
		return k.stop(fmt.Errorf("%w: %d parts are damaged", ErrLimit, len(k.r.damage)))
	}
	k.ends = false
	switch k.item[0] & majorMask {
	case majorBytes:
		return k.blob()
	case majorArray:
		switch {
		case k.item[0] == headOfPiece:
			return k.piece()
		case k.item[0] == headOfPair && k.item[1]&majorMask == majorUint:
			return k.inPieces()
		}
		k.record()
		return nil
	case majorText:
		return k.noteItem()
	default:
		k.fault("it is no item of a bundle")
		return nil
	}
}

// stop ends the reading with the item at hand.
func (k *indexer) stop(why error) error {
	k.items.n, k.items.at = k.items.n-1, k.at
	return why
}

// fault keeps what is wrong with the item at hand.
func (k *indexer) fault(format string, args ...any) {
	k.r.damaged(k.items.n, k.at, format, args...)
}

func (k *indexer) blob() error {
	name, size := k.items.content.name, k.items.content.bytes
	if !bytes.Equal(k.item, headOfBytes(size)) {
		k.fault("a blob: %w", errHeadForm)
		return nil
	}
	return k.named(name, span{at: k.at + int64(len(k.item)), bytes: int(size)})
}

// named takes a blob that lies somewhere.
func (k *indexer) named(name journal.Hash, at span) error {
	if _, withheld := k.withheld[name]; withheld {
		k.fault("blob %s is withheld, the header says", name)
	}
	if _, twice := k.r.blobs[name]; twice {
		k.fault("blob %s is there already", name)
		return nil
	}
	if by := k.absent[name]; by != 0 {
		k.fault("blob %s stands after record #%d, which needs it", name, by)
	}
	if len(k.r.blobs) >= maxBlobs {
		return fmt.Errorf("%w: more than %d blobs", ErrLimit, maxBlobs)
	}
	k.r.blobs[name] = at
	k.pending = append(k.pending, pendingBlob{name, k.items.n, k.at})
	return nil
}

func (k *indexer) record() {
	for _, p := range k.fresh {
		k.r.damaged(p.item, p.at, "a piece that no blob needs before the next record")
	}
	k.fresh = nil
	s, ok := scanned(k.item, k.last+1)
	if !ok {
		k.fault("an array that is no [record, link]")
		return
	}
	if k.records%placeEvery == 0 {
		k.r.places = append(k.r.places, place{s.ID, k.at})
	}
	k.course.record(s.ID, s.Record.Blob)
	if s.Err != nil {
		k.pending = nil // by what cannot be decoded, nothing is known of its needs
		return
	}
	names := needs(s.Record, k.r, k.r.maxManifest)
	for _, name := range names {
		if _, there := k.r.blobs[name]; !there && k.absent[name] == 0 {
			k.absent[name] = s.ID
		}
	}
	for _, b := range k.pending {
		if !slices.Contains(names, b.name) {
			k.r.damaged(b.item, b.at, "blob %s is not needed by record #%d after it", b.name, s.ID)
		}
	}
	k.pending = nil
}

func (k *indexer) noteItem() error {
	r := canon.NewReader(k.item)
	note := r.TextBytes()
	if err := r.Close(); err != nil {
		k.fault("a checkpoint: %w", err)
		return nil
	}
	switch err := k.checkpoint(note, len(k.pending)+len(k.fresh) > 0); {
	case errors.Is(err, ErrLimit):
		return err
	case err != nil:
		k.fault("%w", err)
		return nil
	}
	k.r.notes = append(k.r.notes, span{at: k.at + int64(len(k.item)-len(note)), bytes: len(note)})
	return nil
}

// close judges the whole when there is no next item, for whatever reason.
func (k *indexer) close(u *unpacker, err error) {
	if !u.ended || !errors.Is(err, io.EOF) && k.items.at != u.n {
		k.r.damaged(k.items.n+1, k.items.at, "%w; what follows was not read", err)
		return
	}
	for _, b := range k.pending {
		k.r.damaged(b.item, b.at, "blob %s is not needed by any record after it", b.name)
	}
	for _, d := range k.course.close() {
		k.r.damaged(d.Item, 0, "%w", d.Err)
	}
	if !errors.Is(err, io.EOF) { // what follows the packed items
		k.r.damaged(0, 0, "%w", err)
	}
}
