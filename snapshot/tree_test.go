package snapshot

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// keys are few, so that they meet again, and alike, so that ways are long and
// part everywhere: at the first bits, in the middle and at the last.
var keys = rapid.Custom(func(t *rapid.T) Hash {
	var key Hash
	for _, at := range rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 7, 8, 100, 254, 255}), 0, 4).Draw(t, "ones") {
		key[at/8] |= 1 << (7 - at%8)
	}
	return key
})

func leavesOf(model map[Hash]Hash) []Leaf {
	var leaves []Leaf
	for k, v := range model {
		leaves = append(leaves, Leaf{Key: k, Value: v})
	}
	return leaves
}

// used returns how many leaves and nodes of t can be reached, and checks that
// the nodes have two leaves or more.
func used(t require.TestingT, tree *Tree, r ref) (leaves, nodes int) {
	switch {
	case r == 0:
		return 0, 0
	case r < 0:
		return 1, 0
	}
	n := tree.node(r)
	left, below := used(t, tree, n.kids[0])
	right, beside := used(t, tree, n.kids[1])
	require.GreaterOrEqual(t, left+right, 2, "a subtree of one leaf is that leaf")
	return left + right, 1 + below + beside
}

func TestTreeIsRootOfItsLeavesAtEveryStep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var tree Tree
		model := map[Hash]Hash{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			key := keys.Draw(rt, "key")
			if rapid.IntRange(0, 2).Draw(rt, "op") == 0 {
				tree.Delete(key)
				delete(model, key)
			} else {
				value := Hash{rapid.Byte().Draw(rt, "value")}
				tree.Set(key, value)
				model[key] = value
			}
			if rapid.Bool().Draw(rt, "look") { // else several changes meet in one Root
				require.Equal(rt, Root(leavesOf(model)), tree.Root())
			}
			leaves, nodes := used(rt, &tree, tree.top)
			require.Equal(rt, len(model), leaves)
			require.Equal(rt, leaves, tree.Len())
			require.Equal(rt, int(tree.nodes.made), nodes+len(tree.nodes.free), "a number is used or free")
		}
		require.Equal(rt, Root(leavesOf(model)), tree.Root())
	})
}

func TestTreeReusesWhatDeleteFreed(t *testing.T) {
	var tree Tree
	for range 3 {
		for i := range 1000 {
			l := leaf(strconv.Itoa(i))
			tree.Set(l.Key, l.Value)
		}
		require.EqualValues(t, 1000, tree.leaves.made)
		for i := range 1000 {
			tree.Delete(leaf(strconv.Itoa(i)).Key)
		}
		require.Zero(t, tree.Root())
		require.Len(t, tree.nodes.free, int(tree.nodes.made))
	}
}

// stale returns how many nodes the next Root will compute.
func stale(tree *Tree) (n int) {
	for i := range tree.nodes.made {
		if tree.nodes.at(i).root.IsZero() {
			n++
		}
	}
	return n
}

func TestRootHashesOnlyTheWaysThatChanged(t *testing.T) {
	tree := load(1000)
	tree.Root()
	require.Zero(t, stale(tree))

	leaves := many(1000)
	tree.Set(leaves[7].Key, leaves[7].Value)
	tree.Delete(leaf("absent").Key)
	require.Zero(t, stale(tree), "nothing changed")

	tree.Set(leaves[7].Key, Hash{1})
	one := len(tree.path)
	require.Equal(t, one, stale(tree), "one way")
	tree.Set(leaves[8].Key, Hash{1})
	two := one + len(tree.path) - shared(&leaves[7].Key, &leaves[8].Key) - 1
	require.Equal(t, two, stale(tree), "two ways, the nodes that they share once")
	tree.Root()
	require.Zero(t, stale(tree))

	// What it kept of the other half is believed, though it is wrong now.
	top := tree.node(tree.top)
	side := bit(&leaves[7].Key, 0)
	tree.node(top.kids[1-side]).root = Hash{9}
	tree.Set(leaves[7].Key, Hash{2})
	halves := [2]Hash{{9}, {9}}
	root := tree.Root()
	halves[side] = tree.node(top.kids[side]).root
	require.Equal(t, join(halves[0], halves[1]), root)
}

func load(n int) *Tree {
	var tree Tree
	for _, l := range many(n) {
		tree.Set(l.Key, l.Value)
	}
	return &tree
}

func many(n int) []Leaf {
	leaves := make([]Leaf, n)
	for i := range leaves {
		key := canon.Sum(binary.BigEndian.AppendUint64(nil, uint64(i)))
		leaves[i] = Leaf{Key: key, Value: key}
	}
	return leaves
}

func BenchmarkTree(b *testing.B) {
	leaves := many(100_000)
	b.Run("root of leaves", func(b *testing.B) {
		for b.Loop() {
			Root(slices.Clone(leaves))
		}
	})
	b.Run("load", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var tree Tree
			for _, l := range leaves {
				tree.Set(l.Key, l.Value)
			}
			tree.Root()
		}
	})
	b.Run("change one", func(b *testing.B) {
		tree := load(100_000)
		tree.Root()
		var n uint64
		for b.Loop() {
			n++
			tree.Set(leaves[n%100_000].Key, Hash{byte(n), byte(n >> 8)})
			tree.Root()
		}
		b.ReportMetric(float64(blockLen*(len(tree.leaves.blocks)*64+len(tree.nodes.blocks)*40))/100_000, "B/leaf")
	})
}

func sortedKeys(model map[Hash]Hash) []Hash {
	return slices.SortedFunc(maps.Keys(model), func(a, b Hash) int { return slices.Compare(a[:], b[:]) })
}
