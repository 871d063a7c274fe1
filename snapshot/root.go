// Package snapshot is the image of a world at one height, reduced to a root.
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
// where bits are taken from the key's first byte, most significant first.
package snapshot

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"sort"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Hash is a SHA-256 digest.
type Hash = canon.Hash

// Leaf is one entry of a tree. Keys are hashes of names, so that they spread.
type Leaf struct {
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

// root returns the root of sorted leaves that share the first depth bits.
func root(leaves []Leaf, depth int) Hash {
	switch len(leaves) {
	case 0:
		return Hash{}
	case 1:
		b := [1 + 2*sha256.Size]byte{0: 0x00}
		copy(b[1:], leaves[0].Key[:])
		copy(b[1+sha256.Size:], leaves[0].Value[:])
		return sha256.Sum256(b[:])
	}
	if depth == 8*sha256.Size {
		panic("snapshot: two leaves with one key")
	}
	ones := sort.Search(len(leaves), func(i int) bool {
		return leaves[i].Key[depth/8]>>(7-depth%8)&1 == 1
	})
	left, right := root(leaves[:ones], depth+1), root(leaves[ones:], depth+1)
	b := [1 + 2*sha256.Size]byte{0: 0x01}
	copy(b[1:], left[:])
	copy(b[1+sha256.Size:], right[:])
	return sha256.Sum256(b[:])
}
