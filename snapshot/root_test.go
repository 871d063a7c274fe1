package snapshot

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
)

func leaf(name string) Leaf {
	return Leaf{Key: canon.Sum([]byte(name)), Value: canon.Sum([]byte(name + "!"))}
}

// The roots were computed by a second implementation, ten lines of Python
// written from the package comment.
func TestRootVectors(t *testing.T) {
	var hundred []Leaf
	for i := range 100 {
		hundred = append(hundred, leaf(strconv.Itoa(i)))
	}
	for want, leaves := range map[string][]Leaf{
		"0000000000000000000000000000000000000000000000000000000000000000": nil,
		"7abe59187b15bcae02bb42bce1749601955a257d18bc18a6be3586901afa54eb": {leaf("a")},
		"fd361f70bdf0b2b672ec958103ce42b8dd09a5e0175353899e1c31cba24bc013": {leaf("b"), leaf("a")},
		"4548e40a4f3cef6f8ce90c1be659b270b1471064e77c8c44f0604368a0f3d6e4": hundred,
		"882b4f30348ff52d323364f243c43d46111caacef80ad6288256b4aa31d084f6": { // 255 bits in common
			{Key: Hash{}, Value: canon.Sum([]byte("x"))}, {Key: Hash{31: 1}, Value: canon.Sum([]byte("y"))},
		},
	} {
		require.Equal(t, want, Root(leaves).String())
	}
	require.Equal(t, "5a8f1c380d325b967307e9e21bddd151e948518cd498ae068b943307aad5346d",
		StateRoot(Root(hundred), Root(nil), Root([]Leaf{leaf("a")})).String())
}

func TestRootDependsOnWhatIsThereOnly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.String(), 1, 50, rapid.ID).Draw(rt, "names")
		var leaves []Leaf
		for _, n := range names {
			leaves = append(leaves, leaf(n))
		}
		shuffled := rapid.Permutation(leaves).Draw(rt, "order")
		want := Root(leaves)
		require.Equal(rt, want, Root(shuffled))
		depth := rapid.IntRange(0, 9).Draw(rt, "depth")
		require.Equal(rt, want, RootOfParts(depth, func(part int) []Leaf {
			return slices.DeleteFunc(slices.Clone(shuffled), func(l Leaf) bool { return Part(l.Key, depth) != part })
		}))

		at := rapid.IntRange(0, len(leaves)-1).Draw(rt, "changed")
		leaves[at].Value[0] ^= 1
		require.NotEqual(rt, want, Root(leaves), "another value")
		leaves[at].Value[0] ^= 1
		require.NotEqual(rt, want, Root(append(leaves[:at:at], leaves[at+1:]...)), "a leaf less")
	})
}

func TestTwoLeavesWithOneKeyAreAMistake(t *testing.T) {
	require.Panics(t, func() { Root([]Leaf{leaf("a"), leaf("a")}) })
}
