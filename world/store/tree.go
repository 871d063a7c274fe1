package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/world"
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
// none. What is beyond the last record is world.ErrNotFound. It is safe for
// concurrent use.
func (s *Store) Hashes() tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		t := s.tree()
		out := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			level, n := tlog.SplitStoredHashIndex(index)
			var err error
			if out[i], err = t.node(level, uint64(n)); err != nil {
				return nil, fmt.Errorf("store: tree: %w", err)
			}
		}
		return out, nil
	})
}

// TreeAt returns the Merkle tree over the records up to one. The error is
// world.ErrNotFound where there are fewer.
func (s *Store) TreeAt(at world.Seq) (*checkpoint.Tree, error) {
	if end := s.readable().ID; at > end {
		return nil, fmt.Errorf("store: tree: record #%d of %d: %w", at, end, world.ErrNotFound)
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

// GrowTree writes the tiles that are not there yet, so that the tree can be had by
// reading the last records and few tiles. It is for the one who appends. It
// is not synced: a tile lies after its records in the log, so it is never durable
// before them, and a crash that loses it costs only time.
func (s *Store) GrowTree() error {
	err := s.failed()
	t := s.tree()
	for level := 0; err == nil && t.size>>(tileHeight*level) > 0; level++ {
		err = t.grow(level)
	}
	if err != nil {
		return fmt.Errorf("store: tree: %w", err)
	}
	return nil
}

// growOver is GrowTree, but the hashes of all records up to one are in tiles
// afterwards: they are to be archived, and the archive may not be there when the
// tree is asked for.
func (s *Store) growOver(to world.Seq) error {
	if err := s.GrowTree(); err != nil {
		return err
	}
	b := s.db.NewBatch()
	if err := s.tree().begin(b, 0, uint64(to)); err != nil {
		return errors.Join(err, b.Close())
	}
	return errors.Join(b.Commit(pebble.NoSync), b.Close())
}

// treeReader reads the tree over the records that there were when it was made. It
// keeps one tile of each level, and is for one goroutine.
type treeReader struct {
	store *Store
	seal  *sealer
	size  uint64 // in records
	last  [tileLevels]readTile
}

// readTile is a tile that was looked for; there are no hashes where there is none.
type readTile struct {
	looked bool
	n      uint64
	hashes []tlog.Hash
}

func (s *Store) tree() *treeReader {
	return &treeReader{store: s, seal: newSealer(), size: uint64(s.readable().ID)}
}

// node returns the n-th hash of a level of the tree.
func (t *treeReader) node(level int, n uint64) (tlog.Hash, error) {
	if n >= t.size>>level {
		return tlog.Hash{}, fmt.Errorf("the records up to #%d: %w", (n+1)<<level, world.ErrNotFound)
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
	for e, err := range t.store.entries(world.Seq(first + uint64(len(out)) + 1)) {
		if err != nil {
			return nil, err
		}
		if out = append(out, tlog.RecordHash(e.record)); uint64(len(out)) == n {
			return out, nil
		}
	}
	return nil, fmt.Errorf("record #%d: %w", first+uint64(len(out))+1, world.ErrNotFound)
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
	if last := t.last[level]; last.looked && last.n == n {
		return last.hashes, nil
	}
	var hashes []tlog.Hash
	body, err := t.store.sealed(tileKey(level, n))
	switch {
	case err == nil:
		hashes, err = parseTile(tileKey(level, n), body)
	case errors.Is(err, world.ErrNotFound):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	t.last[level] = readTile{looked: true, n: n, hashes: hashes}
	return hashes, nil
}

// grow writes the tiles of a level behind the last that is there: the complete ones,
// and above the leaves, which are soon read, what there is of the next.
func (t *treeReader) grow(level int) error {
	n, err := t.grown(level)
	if err != nil {
		return err
	}
	b := t.store.db.NewBatch()
	for ; n < t.size>>(tileHeight*(level+1)); n++ {
		hashes, err := t.hashes(level, n*tileHashes, tileHashes)
		if err != nil {
			return errors.Join(err, b.Close())
		}
		if t.put(b, level, n, hashes); b.Len() > cutBytes {
			if err := errors.Join(b.Commit(pebble.NoSync), b.Close()); err != nil {
				return err
			}
			b = t.store.db.NewBatch()
		}
	}
	if level > 0 {
		if err := t.begin(b, level, t.size>>(tileHeight*level)); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return errors.Join(b.Commit(pebble.NoSync), b.Close())
}

// begin puts into a batch the tile in which so many hashes of a level end, unless
// that holds them.
func (t *treeReader) begin(b *pebble.Batch, level int, count uint64) error {
	n, part := count/tileHashes, count%tileHashes
	have, err := t.tile(level, n)
	if err != nil || uint64(len(have)) >= part {
		return err
	}
	hashes, err := t.hashes(level, n*tileHashes, part)
	if err == nil {
		t.put(b, level, n, hashes)
	}
	return err
}

// grown returns how many complete tiles of a level are there, one after the other.
func (t *treeReader) grown(level int) (uint64, error) {
	it, err := t.store.iterate(tileKey(level, 0), tileKey(level+1, 0))
	if err != nil {
		return 0, err
	}
	defer func() { _ = it.Close() }() // its error is Error's
	if !it.Last() {
		return 0, it.Error()
	}
	body, err := openAt(t.seal, it)
	if err != nil {
		return 0, err
	}
	hashes, err := parseTile(it.Key(), body)
	if err != nil {
		return 0, err
	}
	_, n := splitTile(it.Key())
	if len(hashes) < tileHashes {
		return n, nil
	}
	return n + 1, nil
}

// put puts a tile into a batch. The reader keeps the hashes.
func (t *treeReader) put(b *pebble.Batch, level int, n uint64, hashes []tlog.Hash) {
	body := make([]byte, 0, len(hashes)*tlog.HashSize)
	for _, h := range hashes {
		body = append(body, h[:]...)
	}
	t.seal.set(b, tileKey(level, n), body)
	t.last[level] = readTile{looked: true, n: n, hashes: hashes}
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
