package checkpoint

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Hash is a SHA-256 digest.
type Hash = canon.Hash

// MaxSize is the greatest number of records in a tree.
const MaxSize = 1 << 48

// ErrNodes says that hashes are not those that a tree of some size is resumed from.
var ErrNodes = errors.New("checkpoint: these are not the nodes of a tree of that size")

// Tree is the Merkle tree over the records of a journal so far, which grows at
// its end. It keeps the roots of its complete subtrees, at most 48 hashes. The
// zero value is empty. It is not safe for concurrent use.
type Tree struct {
	size  uint64
	nodes []tlog.Hash // one for every bit of size, the largest subtree first
}

// Resume returns the tree of some size from what Nodes returned for it. Whether
// the hashes are the right ones, the next checkpoint says.
func Resume(size uint64, nodes []Hash) (*Tree, error) {
	if size > MaxSize || bits.OnesCount64(size) != len(nodes) {
		return nil, fmt.Errorf("%w: %d of size %d", ErrNodes, len(nodes), size)
	}
	t := &Tree{size: size}
	for _, n := range nodes {
		t.nodes = append(t.nodes, tlog.Hash(n))
	}
	return t, nil
}

// Leaf returns the hash of the stored bytes of a record, as a leaf of the tree. Most are
// short, and hashing one piece takes a third less than what tlog does, which hashes two.
func Leaf(record []byte) Hash {
	var b [256]byte
	if len(record) >= len(b) {
		return Hash(tlog.RecordHash(record))
	}
	return sha256.Sum256(b[:1+copy(b[1:], record)])
}

// Add appends the stored bytes of the next record.
func (t *Tree) Add(record []byte) { t.AddLeaf(Leaf(record)) }

// AddLeaf is Add of a record whose Leaf is known.
func (t *Tree) AddLeaf(leaf Hash) {
	at := tlog.Hash(leaf)
	for n := t.size; n&1 == 1; n >>= 1 {
		last := len(t.nodes) - 1
		at = tlog.NodeHash(t.nodes[last], at)
		t.nodes = t.nodes[:last]
	}
	t.nodes = append(t.nodes, at)
	t.size++
}

// Size returns the number of records.
func (t *Tree) Size() uint64 { return t.size }

// Root returns the tree's root, RFC 6962 section 2.1.
func (t *Tree) Root() Hash {
	last := len(t.nodes) - 1
	if last < 0 {
		return canon.Sum(nil)
	}
	at := t.nodes[last]
	for last--; last >= 0; last-- {
		at = tlog.NodeHash(t.nodes[last], at)
	}
	return Hash(at)
}

// Nodes returns the roots of the complete subtrees that the tree is made of, the
// largest first: all that it takes to go on from here.
func (t *Tree) Nodes() []Hash {
	out := make([]Hash, len(t.nodes))
	for i, n := range t.nodes {
		out[i] = Hash(n)
	}
	return out
}
