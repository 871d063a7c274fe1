package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/worldkernel/worldkernel/internal/chunk"
	"github.com/worldkernel/worldkernel/journal"
)

// chunkFrom is how many bytes a content has at least that is kept in chunks.
const chunkFrom = 4<<10 + 1

// maxContentBytes is more than any content has: a list that claims more is damaged.
const maxContentBytes = 1 << 30

// foundFrom is how many bytes a blob's piece has at least that is found by its hash: a shorter one is an end of its blob, which
// others seldom have.
const foundFrom = 512

// inChunks is what a cell version begins with that is in chunks: the list follows. No
// other does: one that would is kept in chunks, however short.
const inChunks = 0

func isInChunks(version []byte) bool { return len(version) > 0 && version[0] == inChunks }

// errNoChunk is no journal.ErrNotFound: what is in chunks is there.
var errNoChunk = errors.New("it is missing")

// owner says whose a chunk is: the cell's, by its name, of whose versions it was made,
// as long as nothing else is made of it. Zero: it may be anybody's.
type owner [8]byte

func ownerOf(cell string) owner {
	sum := sha256.Sum256([]byte(cell))
	return owner(sum[:])
}

// known is where a chunk is found by its hash.
type known struct {
	number uint64
	owner  owner
}

// chunks are the numbers of those that were written or looked for lately.
type chunks struct {
	mu       sync.Mutex // guards what follows, and that it is what Pebble has
	next     uint64     // number; 0: not known yet
	now, was map[chunk.Sum]known
	last     chunk.Part // of a blob
}

// knownChunks is how many a generation remembers, about 100 bytes each.
const knownChunks = 16 << 10

func (c *chunks) noteChunk(sum chunk.Sum, k known) {
	if c.now == nil || len(c.now) >= knownChunks {
		c.now, c.was = make(map[chunk.Sum]known), c.now
	}
	c.now[sum] = k
}

func (c *chunks) known(sum chunk.Sum) (known, bool) {
	k, ok := c.now[sum]
	if !ok {
		if k, ok = c.was[sum]; ok {
			c.noteChunk(sum, k)
		}
	}
	return k, ok
}

// forget forgets all, because chunks are to be deleted.
func (c *chunks) forget() { c.now, c.was, c.last = nil, nil, chunk.Part{} }

// chunkWriter puts what is new of contents into a batch. Chunks has been locked, until
// the batch is committed: what is there for the one is not to be deleted for another.
type chunkWriter struct {
	store *Store
	batch *pebble.Batch
	owner owner
	buf   []byte
}

func (s *Store) chunkWriter(b *pebble.Batch) *chunkWriter {
	return &chunkWriter{store: s, batch: b}
}

// list returns the list of a content, and has its chunks kept.
func (w *chunkWriter) list(content []byte) ([]byte, error) {
	var last *chunk.Part
	if w.owner == (owner{}) {
		last = &w.store.chunks.last
	}
	l, err := chunk.Build(content, last, w.keep)
	if err != nil {
		return nil, err
	}
	w.buf = l.Append(w.buf[:0])
	return w.buf, nil
}

// keep is a chunk.Keeper.
func (w *chunkWriter) keep(piece []byte, list bool) (uint64, chunk.Sum, error) {
	c := &w.store.chunks
	sum := sha256.Sum256(piece)
	k, ok := c.known(sum)
	found := list || len(piece) >= foundFrom || w.owner != owner{}
	if !ok && found {
		var err error
		if k, ok, err = w.store.findChunk(sum, piece); err != nil {
			return 0, sum, err
		}
	}
	switch {
	case !ok:
		n, err := w.store.nextChunk()
		if err != nil {
			return 0, sum, err
		}
		k = known{n, w.owner}
		seal(w.batch, chunkKey(n), piece)
		if found {
			seal(w.batch, findKey(sum), k.append(nil))
		}
	case k.owner != w.owner && k.owner != owner{}:
		k.owner = owner{}
		seal(w.batch, findKey(sum), k.append(nil))
	}
	c.noteChunk(sum, k)
	return k.number, sum, nil
}

// findChunk looks for a chunk that is there. A damaged one is as none: Damage names it.
func (s *Store) findChunk(sum chunk.Sum, piece []byte) (k known, ok bool, err error) {
	key := findKey(sum)
	value, err := s.get(key)
	if err == nil {
		value, err = unseal(key, value)
	}
	if err == nil {
		k, err = parseKnown(key, value)
	}
	if err == nil {
		key = chunkKey(k.number)
		if value, err = s.get(key); err == nil {
			value, err = unseal(key, value)
		}
	}
	damage := (*DamageError)(nil)
	if errors.Is(err, journal.ErrNotFound) || errors.As(err, &damage) {
		return k, false, nil
	}
	return k, bytes.Equal(value, piece), err
}

// nextChunk returns a number that no chunk has.
func (s *Store) nextChunk() (uint64, error) {
	if s.chunks.next == 0 {
		it, err := s.iterate([]byte{chunkPrefix}, []byte{chunkPrefix + 1})
		if err != nil {
			return 0, err
		}
		defer func() { _ = it.Close() }() // its error is Error's
		if it.Last() && hasNumber(it.Key()) {
			s.chunks.next = uint64(recordID(it.Key()))
		}
		if err := it.Error(); err != nil {
			return 0, err
		}
		s.chunks.next++
	}
	n := s.chunks.next
	s.chunks.next++
	return n, nil
}

func chunkKey(n uint64) []byte { return numberKey(chunkPrefix, journal.Seq(n)) }

// findKey is the key under which a chunk is found by its hash. Where two have one, only
// the later is.
func findKey(sum chunk.Sum) []byte { return append([]byte{findPrefix}, sum[:findLen]...) }

const findLen = 6

func (k known) append(b []byte) []byte {
	b = binary.AppendUvarint(b, k.number)
	if k.owner != (owner{}) {
		b = append(b, k.owner[:]...)
	}
	return b
}

func parseKnown(key, body []byte) (k known, err error) {
	n, size := binary.Uvarint(body)
	if len(key) != 1+findLen || size <= 0 {
		return k, damaged(key, errShape)
	}
	k.number = n
	switch rest := body[size:]; len(rest) {
	case 0:
	case len(k.owner):
		k.owner = owner(rest)
	default:
		return k, damaged(key, errShape)
	}
	if !bytes.Equal(k.append(nil), body) {
		return k, damaged(key, errShape)
	}
	return k, nil
}

// chunkReader reads chunks of a store or a view. It is for one goroutine.
type chunkReader struct {
	get func(key []byte) ([]byte, io.Closer, error)
	buf []byte
}

// piece implements chunk.Pieces: what it returns is valid until it is called again.
func (r *chunkReader) piece(number uint64) ([]byte, error) {
	key := chunkKey(number)
	value, closer, err := r.get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		err = errNoChunk
	}
	if errors.Is(err, ErrClosed) {
		return nil, err
	}
	if err != nil {
		return nil, damaged(key, err)
	}
	r.buf = append(r.buf[:0], value...)
	if err := closer.Close(); err != nil {
		return nil, err
	}
	return unseal(key, r.buf)
}

// content returns what a list stands for.
func (r *chunkReader) content(list []byte) ([]byte, error) { return contentOf(list, r.piece) }

func contentOf(list []byte, pieces chunk.Pieces) ([]byte, error) {
	l, err := chunk.Parse(list, maxContentBytes)
	if err != nil {
		return nil, err
	}
	content := make([]byte, 0, min(l.Bytes(), 8<<20))
	err = l.Read(pieces, func(_ uint64, piece []byte) error {
		content = append(content, piece...)
		return nil
	})
	return content, err
}

// version returns a cell version, whose bytes may be in chunks.
func (r *chunkReader) version(key, body []byte) ([]byte, error) {
	if !isInChunks(body) {
		return body, nil
	}
	content, err := r.content(body[1:])
	if errors.Is(err, chunk.ErrList) {
		err = damaged(key, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(key), err)
	}
	return content, nil
}

func (s *Store) chunkReader() *chunkReader { return &chunkReader{get: s.value} }

func (v *view) chunkReader() *chunkReader { return &chunkReader{get: v.snapshot.Get} }

// setBlobs puts contents into a batch, the long ones in chunks.
func (s *Store) setBlobs(b *pebble.Batch, blobs []journal.Blob) error {
	w := s.chunkWriter(b)
	for _, blob := range blobs {
		if len(blob.Bytes) < chunkFrom {
			if err := b.Set(hashKey(blobPrefix, blob.Hash), blob.Bytes, nil); err != nil {
				return err
			}
			continue
		}
		list, err := w.list(blob.Bytes)
		if err != nil {
			return err
		}
		seal(b, hashKey(listPrefix, blob.Hash), list)
	}
	return nil
}

// chunkCells returns an image whose long cell versions are lists, once their chunks are
// on their way to the disk: so before the image.
func (s *Store) chunkCells(img *journal.Image) (*journal.Image, error) {
	s.chunks.mu.Lock()
	defer s.chunks.mu.Unlock()
	short := *img
	short.Cells = append([]journal.CellVersion(nil), img.Cells...)
	batch := s.db.NewBatch()
	w := s.chunkWriter(batch)
	for i, c := range img.Cells {
		if len(c.Bytes) < chunkFrom && (len(c.Bytes) == 0 || c.Bytes[0] != inChunks) {
			continue
		}
		w.owner = ownerOf(c.Cell)
		list, err := w.list(c.Bytes)
		if err != nil {
			return nil, errors.Join(err, batch.Close())
		}
		short.Cells[i].Bytes = append([]byte{inChunks}, list...)
	}
	return &short, errors.Join(batch.Commit(pebble.NoSync), batch.Close())
}
