// Package snapshot is the image of a world at one height, reduced to a root. It is a part of worldctl,
// and not an API.
//
// The state root is history-independent: it depends on what is in the world,
// not on how it came there.
//
//	state_root = H(cells root ‖ mailboxes root ‖ timers root)
//
// Each of the three is the root of a sparse Merkle tree over leaves (key,
// value) of 32 bytes each, in which a subtree of one leaf is that leaf:
//
//	root of no leaves   32 zero bytes
//	root of one leaf    H(0x00 ‖ key ‖ value)
//	root of more        H(0x01 ‖ root of those whose key's next bit is 0 ‖ root of the others)
//
// where bits are taken from the key's first byte, most significant first. Root
// computes it from all leaves, a Tree from those that changed.
//
// Three values are kept and handed on as canonical CBOR arrays (package canon):
//
//	Proof       [1, [sibling, …], leaf]
//	StateProof  [cells root, mailboxes root, timers root, Proof]
//	Catalog     [1, made, max, [snapshot, …]]
//
// A proof's siblings are the roots beside the way from the root down along the
// key's bits, the first beside its first bit. The leaf at its end is [key,
// value], or null where there are no leaves. It has the key asked for, or it
// shows that the key is absent: with it there, the way would go on.
//
// A snapshot of the catalog is [name, record, at, time, chain root, state root,
// cells, label, pinned, hash]. They are sorted by record.
package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Hash is a SHA-256 digest.
type Hash = canon.Hash

// Leaf is one entry of a tree. Keys are hashes of names, so that they spread.
type Leaf struct {
	_     struct{} `cbor:",toarray"`
	Key   Hash
	Value Hash
}

// StateRoot joins the roots of a world's cells, mailboxes and timers.
func StateRoot(cells, mailboxes, timers Hash) Hash {
	b := make([]byte, 0, 3*sha256.Size)
	b = append(append(append(b, cells[:]...), mailboxes[:]...), timers[:]...)
	return canon.Sum(b)
}

// Root returns the root of the tree over leaves, which it sorts in place. No
// two leaves may have the same key.
func Root(leaves []Leaf) Hash {
	slices.SortFunc(leaves, func(a, b Leaf) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	return root(leaves, 0)
}

// RootOfParts is Root for leaves that come in 2^depth parts, one after the other: part i has
// those for whose keys Part returns i. depth is at most 32.
func RootOfParts(depth int, part func(i int) []Leaf) Hash {
	root, _ := rootOfParts(0, depth, 0, part)
	return root
}

// Part returns the first depth bits of a key.
func Part(key Hash, depth int) int {
	return int(uint64(binary.BigEndian.Uint32(key[:])) >> (32 - depth))
}

// rootOfParts returns the root of those leaves whose keys begin with the bits of i, and how
// many they are.
func rootOfParts(at, depth, i int, part func(i int) []Leaf) (Hash, int) {
	if at == depth {
		leaves := part(i)
		slices.SortFunc(leaves, func(a, b Leaf) int { return bytes.Compare(a.Key[:], b.Key[:]) })
		return root(leaves, depth), len(leaves)
	}
	left, n := rootOfParts(at+1, depth, 2*i, part)
	right, m := rootOfParts(at+1, depth, 2*i+1, part)
	switch {
	case n+m > 1:
		return join(left, right), n + m
	case n == 1:
		return left, 1
	default:
		return right, m
	}
}

// root returns the root of sorted leaves that share the first depth bits.
func root(leaves []Leaf, depth int) Hash {
	switch len(leaves) {
	case 0:
		return Hash{}
	case 1:
		return leaves[0].root()
	}
	if depth == maxDepth {
		panic("snapshot: two leaves with one key")
	}
	ones := sort.Search(len(leaves), func(i int) bool { return bit(&leaves[i].Key, depth) == 1 })
	return join(root(leaves[:ones], depth+1), root(leaves[ones:], depth+1))
}

// root returns the root of a tree of one leaf.
func (l *Leaf) root() Hash {
	b := [1 + 2*sha256.Size]byte{0: 0x00}
	copy(b[1:], l.Key[:])
	copy(b[1+sha256.Size:], l.Value[:])
	return sha256.Sum256(b[:])
}

// join returns the root of a tree of two leaves or more.
func join(left, right Hash) Hash {
	b := [1 + 2*sha256.Size]byte{0: 0x01}
	copy(b[1:], left[:])
	copy(b[1+sha256.Size:], right[:])
	return sha256.Sum256(b[:])
}

// maxDepth is the depth below which there is one key.
const maxDepth = 8 * sha256.Size

// bit returns the bit of a key that leads on from a depth.
func bit(key *Hash, depth int) int { return int(key[depth/8] >> (7 - depth%8) & 1) }

// shared returns how many bits two keys begin with in common.
func shared(a, b *Hash) int {
	for i := 0; i < len(a); i += 8 {
		if x := binary.BigEndian.Uint64(a[i:]) ^ binary.BigEndian.Uint64(b[i:]); x != 0 {
			return 8*i + bits.LeadingZeros64(x)
		}
	}
	return maxDepth
}
