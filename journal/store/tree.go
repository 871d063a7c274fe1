package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
)

// The shape of tiles; see the package comment.
const (
	tileHeight = 8 // levels of the tree that a tile spans
	tileHashes = 1 << tileHeight
	tileLevels = 7 // more than checkpoint.MaxSize records have
	tileKeyLen = 2 + idLen
)

// Hashes returns the hashes of the Merkle tree over the records, which package
// checkpoint defines, for proofs: from tiles, and from records where there are
// none. What is beyond the last record is journal.ErrNotFound. It is safe for
// concurrent use.
func (s *Store) Hashes() tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		t := s.tree()
		out := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			level, n := tlog.SplitStoredHashIndex(index)
			var err error
			if out[i], err = t.node(level, uint64(n)); err != nil {
				return nil, fmt.Errorf("store: tree: %w", s.suspect(err))
			}
		}
		return out, nil
	})
}

// TreeAt returns the Merkle tree over the records up to one. The error is
// journal.ErrNotFound where there are fewer.
func (s *Store) TreeAt(at journal.Seq) (*checkpoint.Tree, error) {
	if end := s.readable().ID; at > end {
		return nil, fmt.Errorf("store: tree: record #%d of %d: %w", at, end, journal.ErrNotFound)
	}
	var indexes []int64
	for rest, from := uint64(at), uint64(0); rest > 0; {
		level := bits.Len64(rest) - 1
		indexes = append(indexes, tlog.StoredHashIndex(level, int64(from>>level)))
		from += 1 << level
		rest -= 1 << level
	}
	hashes, err := s.Hashes().ReadHashes(indexes)
	if err != nil {
		return nil, err
	}
	nodes := make([]checkpoint.Hash, len(hashes))
	for i, h := range hashes {
		nodes[i] = checkpoint.Hash(h)
	}
	return checkpoint.Resume(uint64(at), nodes)
}

// tips are the last tiles of all levels, those that have not all their hashes yet: they
// grow with the records, and are written with them, but for those of the leaves: reading
// a tile's records again takes less than a millisecond.
type tips struct {
	mu    sync.Mutex // guards what follows, and that what it says is what Pebble has
	level [tileLevels]heldTile
}

// heldTile is a tile in memory. The last one of a level is made up when it is to grow
// for the first time since the store was opened.
type heldTile struct {
	known  bool
	n      uint64
	hashes []tlog.Hash // none: it was looked for, and there is no such tile
}

// growTree puts into a batch the tiles that its records complete: they are durable
// when the records are, and never before. Tips has been locked.
func (s *Store) growTree(b *pebble.Batch, records []journal.Stored) error {
	t := s.storedTree()
	for _, r := range records {
		if err := s.tips.grow(b, t, 0, tlog.Hash(checkpoint.Leaf(r.Bytes))); err != nil {
			return fmt.Errorf("tree: %w", err)
		}
	}
	return nil
}

// writeEvery is after how many hashes a tile above the leaves is written, and again until
// it is complete: whoever opens the store makes up at most so many from the records, which
// are 256 each in the first of these levels.
const writeEvery = 16

// grow adds a hash to a level. The reader's tree is that before the batch.
func (x *tips) grow(b *pebble.Batch, t *treeReader, level int, h tlog.Hash) error {
	at := &x.level[level]
	if !at.known {
		made, err := t.tip(level)
		if err != nil {
			return err
		}
		*at = made
	}
	at.hashes = append(at.hashes, h)
	if level > 0 && len(at.hashes)%writeEvery == 0 {
		t.put(b, level, at.n, at.hashes)
	}
	if len(at.hashes) < tileHashes {
		return nil
	}
	root := rootOf(at.hashes)
	at.n, at.hashes = at.n+1, at.hashes[:0]
	return x.grow(b, t, level+1, root)
}

// tip makes up the last tile of a level.
func (t *treeReader) tip(level int) (heldTile, error) {
	count := t.size >> (tileHeight * level)
	at := heldTile{known: true, n: count / tileHashes, hashes: make([]tlog.Hash, 0, tileHashes)}
	if count%tileHashes == 0 {
		return at, nil
	}
	hashes, err := t.hashes(level, at.n*tileHashes, count%tileHashes)
	at.hashes = append(at.hashes, hashes...)
	return at, err
}

// tile returns a copy of a tile, none where it is no tip.
func (x *tips) tile(level int, n uint64) []tlog.Hash {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at := x.level[level]; at.known && at.n == n {
		return slices.Clone(at.hashes)
	}
	return nil
}

// keepLeaves writes the tiles of the records from one on up to another: they are to be
// archived, and the archive may not be there when the tree is asked for.
func (s *Store) keepLeaves(from, to journal.Seq) error {
	t := s.storedTree()
	for n := uint64(from-1) / tileHashes; n*tileHashes < uint64(to); n++ {
		if err := s.keepTile(t, n, min(uint64(to)-n*tileHashes, tileHashes)); err != nil {
			return fmt.Errorf("tree: %w", err)
		}
	}
	return nil
}

// keepTile writes the first hashes of a tile of leaves, unless they are there.
func (s *Store) keepTile(t *treeReader, n, count uint64) error {
	have, err := t.stored(0, n)
	if err != nil || uint64(len(have)) >= count {
		return err
	}
	hashes, err := t.leaves(have, n*tileHashes, count)
	if err != nil {
		return err
	}
	b := s.db.NewBatch()
	t.put(b, 0, n, hashes)
	return errors.Join(b.Commit(pebble.NoSync), b.Close())
}

// treeReader reads the tree over the records that there were when it was made. It
// keeps one tile of each level, and is for one goroutine.
type treeReader struct {
	store *Store
	tips  *tips  // where to look first; nil: nowhere
	size  uint64 // in records
	last  [tileLevels]heldTile
	body  []byte
}

func (s *Store) tree() *treeReader {
	t := s.storedTree()
	t.tips = &s.tips
	return t
}

// storedTree is tree for the one who has locked the tips.
func (s *Store) storedTree() *treeReader {
	return &treeReader{store: s, size: uint64(s.readable().ID)}
}

// node returns the n-th hash of a level of the tree.
func (t *treeReader) node(level int, n uint64) (tlog.Hash, error) {
	if n >= t.size>>level {
		return tlog.Hash{}, fmt.Errorf("the records up to #%d: %w", (n+1)<<level, journal.ErrNotFound)
	}
	width := uint64(1) << (level % tileHeight)
	hashes, err := t.hashes(level/tileHeight, n*width, width)
	if err != nil {
		return tlog.Hash{}, err
	}
	return rootOf(hashes), nil
}

// hashes returns some hashes of a level of tiles, all of one tile, in a slice that
// is the caller's.
func (t *treeReader) hashes(level int, first, n uint64) ([]tlog.Hash, error) {
	tile, err := t.tile(level, first/tileHashes)
	if err != nil {
		return nil, err
	}
	have, at := uint64(len(tile)), first%tileHashes
	out := append(make([]tlog.Hash, 0, n), tile[min(at, have):min(at+n, have)]...)
	if level == 0 {
		return t.leaves(out, first, n)
	}
	for uint64(len(out)) < n {
		below, err := t.hashes(level-1, (first+uint64(len(out)))*tileHashes, tileHashes)
		if err != nil {
			return nil, err
		}
		out = append(out, rootOf(below))
	}
	return out, nil
}

// leaves fills up the hashes of n records with those that it reads.
func (t *treeReader) leaves(out []tlog.Hash, first, n uint64) ([]tlog.Hash, error) {
	if uint64(len(out)) == n {
		return out, nil
	}
	for e, err := range t.store.entries(journal.Seq(first + uint64(len(out)) + 1)) {
		if err != nil {
			return nil, err
		}
		if out = append(out, tlog.Hash(checkpoint.Leaf(e.record))); uint64(len(out)) == n {
			return out, nil
		}
	}
	return nil, fmt.Errorf("record #%d: %w", first+uint64(len(out))+1, journal.ErrNotFound)
}

// rootOf returns the root of a complete subtree, and uses its hashes up.
func rootOf(hashes []tlog.Hash) tlog.Hash {
	for n := len(hashes) / 2; n > 0; n /= 2 {
		for i := range n {
			hashes[i] = tlog.NodeHash(hashes[2*i], hashes[2*i+1])
		}
	}
	return hashes[0]
}

// tile returns the hashes of a tile, none where it is not there.
func (t *treeReader) tile(level int, n uint64) ([]tlog.Hash, error) {
	if last := t.last[level]; last.known && last.n == n {
		return last.hashes, nil
	}
	var hashes []tlog.Hash
	if t.tips != nil {
		hashes = t.tips.tile(level, n)
	}
	if len(hashes) == 0 {
		var err error
		if hashes, err = t.stored(level, n); err != nil {
			return nil, err
		}
	}
	if len(hashes) == 0 && level > 0 && t.store.opts.Log != nil {
		var err error
		if hashes, err = t.restore(level, n); err != nil {
			return nil, err
		}
	}
	t.last[level] = heldTile{known: true, n: n, hashes: hashes}
	return hashes, nil
}

// restore makes a tile again that the copy of a log does not have, all of it at once: who has
// asked for a hash asks for others beside it.
func (t *treeReader) restore(level int, n uint64) (hashes []tlog.Hash, err error) {
	count := t.size >> (tileHeight * level)
	for at := n * tileHashes; at < min(count, (n+1)*tileHashes); at++ {
		below, err := t.hashes(level-1, at*tileHashes, tileHashes)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, rootOf(below))
	}
	if len(hashes) == 0 {
		return nil, nil
	}
	b := t.store.db.NewBatch()
	t.put(b, level, n, hashes)
	return hashes, errors.Join(b.Commit(pebble.NoSync), b.Close())
}

// tileBytes is what a batch needs at most for the tiles that are written with its records,
// each with so much besides key and value.
func tileBytes(b journal.Batch, operation int) (n int) {
	for level := range tileLevels - 1 { // above the leaves
		hashes := writeEvery << (tileHeight * (level + 1)) // records for so many of them
		written := uint64(b.Head.ID)/uint64(hashes) - uint64(b.After.ID)/uint64(hashes)
		n += int(written) * (operation + tileKeyLen + tileHashes*tlog.HashSize + crcLen)
	}
	return n
}

// stored is tile for those that are in Pebble.
func (t *treeReader) stored(level int, n uint64) ([]tlog.Hash, error) {
	body, err := t.store.sealed(tileKey(level, n))
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseTile(tileKey(level, n), body)
}

// put puts a tile into a batch.
func (t *treeReader) put(b *pebble.Batch, level int, n uint64, hashes []tlog.Hash) {
	t.body = t.body[:0]
	for _, h := range hashes {
		t.body = append(t.body, h[:]...)
	}
	seal(b, tileKey(level, n), t.body)
}

func tileKey(level int, n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{tilePrefix, byte(level)}, n)
}

// splitTile takes the key of a tile apart, which has its length.
func splitTile(key []byte) (level int, n uint64) {
	return int(key[1]), binary.BigEndian.Uint64(key[2:])
}

func parseTile(key, body []byte) ([]tlog.Hash, error) {
	count := len(body) / tlog.HashSize
	whole := len(key) == tileKeyLen && key[1] < tileLevels && len(body)%tlog.HashSize == 0
	if !whole || count == 0 || count > tileHashes {
		return nil, damaged(key, errShape)
	}
	hashes := make([]tlog.Hash, count)
	for i := range hashes {
		copy(hashes[i][:], body[i*tlog.HashSize:])
	}
	return hashes, nil
}
