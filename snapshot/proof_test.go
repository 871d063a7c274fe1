package snapshot

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// grown is a tree of drawn leaves beside its model.
func grown(t *rapid.T) (*Tree, map[Hash]Hash) {
	var tree Tree
	model := rapid.MapOfN(keys, rapid.Custom(func(t *rapid.T) Hash { return Hash{rapid.Byte().Draw(t, "value")} }), 0, 20).Draw(t, "model")
	for _, key := range sortedKeys(model) {
		tree.Set(key, model[key])
	}
	return &tree, model
}

func TestEveryKeyIsProvedPresentOrAbsent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tree, model := grown(rt)
		asked := append(sortedKeys(model), rapid.SliceOfN(keys, 1, 10).Draw(rt, "asked")...)
		for _, key := range append(asked, leaf("far").Key) {
			b, err := tree.Prove(key).Encode()
			require.NoError(rt, err)
			p, err := DecodeProof(b)
			require.NoError(rt, err)
			value, present, err := p.Check(tree.Root(), key)
			require.NoError(rt, err)
			want, there := model[key]
			require.Equal(rt, there, present)
			require.Equal(rt, want, value)
		}
	})
}

// The hashes are those of the bytes of a second implementation, thirty lines of
// Python written from the package comment.
func TestProofVectors(t *testing.T) {
	var none, one, hundred Tree
	one.Set(leaf("a").Key, leaf("a").Value)
	for i := range 100 {
		l := leaf(strconv.Itoa(i))
		hundred.Set(l.Key, l.Value)
	}
	for _, v := range []struct {
		tree *Tree
		name string
		want string
	}{
		{&hundred, "7", "308f91a9c2f211699655963d67e9a606e85c1b1ca6310864527d713e8b06779f"},
		{&hundred, "101", "bb7ccdc61c14ea81cc25d4429c44c5936b09e63655a564df1ab592f62303c9c5"}, // another leaf
		{&hundred, "102", "30254a1609e2a500ef30b7e41b75783ca440f527a5a75746b67deacf0c4a45d7"}, // no leaf
		{&one, "b", "4d051a487c3b80974682c6375ec97d10984d5678697e4f976969013b45baec7e"},
		{&none, "a", "35c16d44c8e75290cd53190154f00202210fa09b39138d5aef89bbd67aff5d5a"},
	} {
		b, err := v.tree.Prove(leaf(v.name).Key).Encode()
		require.NoError(t, err)
		require.Equal(t, v.want, canon.Sum(b).String(), v.name)
	}
	p := StateProof{Cells: hundred.Root(), Timers: one.Root(), Cell: hundred.Prove(leaf("7").Key)}
	b, err := p.Encode()
	require.NoError(t, err)
	require.Equal(t, "d5b5408bda24149c23b6dee208e52ce811da5cec7898282d8016b34e155160fe", canon.Sum(b).String())
}

// refused says that a proof shows nothing of key.
func refused(t require.TestingT, p Proof, root, key Hash, why string) {
	value, present, err := p.Check(root, key)
	require.ErrorIs(t, err, ErrBadProof, why)
	require.Zero(t, value)
	require.False(t, present)
}

func TestAnyFlippedByteOfAProofIsRefused(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tree, _ := grown(rt)
		key := keys.Draw(rt, "key")
		good, root := tree.Prove(key), tree.Root()
		at, flip := rapid.IntRange(0, 31).Draw(rt, "at"), rapid.ByteRange(1, 255).Draw(rt, "flip")

		other := root
		other[at] ^= flip
		refused(rt, good, other, key, "root")
		for i := range good.Siblings {
			p := good
			p.Siblings = slices.Clone(p.Siblings)
			p.Siblings[i][at] ^= flip
			refused(rt, p, root, key, "sibling")
			p.Siblings = slices.Delete(slices.Clone(good.Siblings), i, i+1)
			refused(rt, p, root, key, "a sibling less")
			p.Siblings = slices.Insert(slices.Clone(good.Siblings), i, Hash{})
			refused(rt, p, root, key, "a sibling more")
		}
		p := good
		if p.Leaf = nil; good.Leaf == nil {
			p.Leaf = &Leaf{Key: key}
		}
		refused(rt, p, root, key, "a leaf more or less")
		if good.Leaf != nil {
			p.Leaf = &Leaf{Key: good.Leaf.Key, Value: good.Leaf.Value}
			p.Leaf.Value[at] ^= flip
			refused(rt, p, root, key, "value")
			p.Leaf = &Leaf{Key: good.Leaf.Key, Value: good.Leaf.Value}
			p.Leaf.Key[at] ^= flip
			refused(rt, p, root, key, "key of the leaf")
		}

		b, err := good.Encode()
		require.NoError(rt, err)
		b[rapid.IntRange(0, len(b)-1).Draw(rt, "byte")] ^= flip
		if p, err = DecodeProof(b); err == nil {
			_, _, err = p.Check(root, key)
		}
		require.ErrorIs(rt, err, ErrBadProof)
	})
}

// In a tree that was not made by the rules a leaf may lie where its key does not
// lead. It shows nothing, or such a root would have keys present and absent.
func TestALeafOutOfTheKeysWayShowsNothing(t *testing.T) {
	misplaced, other := Leaf{Key: Hash{0x80}, Value: Hash{1}}, Leaf{Key: Hash{}, Value: Hash{2}}
	p := Proof{Version: proofVersion, Siblings: []Hash{other.root()}, Leaf: &misplaced}
	refused(t, p, join(misplaced.root(), other.root()), Hash{}, "misplaced")

	tree, leaves := load(100), many(100)
	refused(t, tree.Prove(leaves[7].Key), tree.Root(), leaves[8].Key, "asked of another key")
}

func TestAProofTooDeepIsRefused(t *testing.T) {
	deep := Proof{Version: proofVersion, Siblings: make([]Hash, maxDepth+1)}
	refused(t, deep, Hash{}, Hash{}, "deep")
	b, err := deep.Encode()
	require.NoError(t, err)
	_, err = DecodeProof(b)
	require.ErrorIs(t, err, ErrBadProof)

	var tree Tree
	tree.Set(Hash{}, Hash{1})
	tree.Set(Hash{31: 1}, Hash{2})
	p := tree.Prove(Hash{31: 1})
	require.Len(t, p.Siblings, maxDepth)
	value, present, err := p.Check(tree.Root(), Hash{31: 1})
	require.NoError(t, err)
	require.True(t, present)
	require.Equal(t, Hash{2}, value)
}

func TestAProofOfAnotherVersionIsRefused(t *testing.T) {
	refused(t, Proof{}, Hash{}, Hash{}, "the zero value, at the root of nothing")
	b, err := Proof{Version: 2}.Encode()
	require.NoError(t, err)
	_, err = DecodeProof(b)
	require.ErrorIs(t, err, ErrBadProof)
	b, err = StateProof{Cell: Proof{Version: 2}}.Encode()
	require.NoError(t, err)
	_, err = DecodeStateProof(b)
	require.ErrorIs(t, err, ErrBadProof)
}

func TestStateProofLeadsFromTheCellToTheStateRoot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tree, model := grown(rt)
		key := keys.Draw(rt, "key")
		p := StateProof{Cells: tree.Root(), Mailboxes: Hash{1}, Timers: Hash{2}, Cell: tree.Prove(key)}
		root := StateRoot(p.Cells, p.Mailboxes, p.Timers)
		b, err := p.Encode()
		require.NoError(rt, err)
		back, err := DecodeStateProof(b)
		require.NoError(rt, err)
		value, present, err := back.Check(root, key)
		require.NoError(rt, err)
		want, there := model[key]
		require.Equal(rt, there, present)
		require.Equal(rt, want, value)

		b[rapid.IntRange(0, len(b)-1).Draw(rt, "byte")] ^= rapid.ByteRange(1, 255).Draw(rt, "flip")
		if back, err = DecodeStateProof(b); err == nil {
			_, _, err = back.Check(root, key)
		}
		require.ErrorIs(rt, err, ErrBadProof)
	})
	_, _, err := StateProof{Cell: (&Tree{}).Prove(Hash{})}.Check(Hash{}, Hash{})
	require.ErrorIs(t, err, ErrBadProof, "the roots do not join to it")
}

// Encode and DecodeProof write and read a Proof by itself, which nothing but a StateProof
// does outside of tests.
func (p Proof) Encode() ([]byte, error) { return canon.Marshal(p) }

func DecodeProof(data []byte) (p Proof, err error) {
	if err := canon.Unmarshal(data, &p); err != nil {
		return Proof{}, errors.Join(ErrBadProof, err)
	}
	return p, p.validate()
}

func FuzzDecodeProof(f *testing.F) {
	tree := load(20)
	for _, p := range []Proof{{Version: proofVersion}, tree.Prove(many(1)[0].Key), tree.Prove(leaf("absent").Key)} {
		b, err := p.Encode()
		require.NoError(f, err)
		f.Add(b)
		b, err = StateProof{Cell: p}.Encode()
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		key := canon.Sum(data)
		p, err := DecodeProof(data)
		requireOneForm(t, data, tree.Root(), key, p, err)
		sp, err := DecodeStateProof(data)
		requireOneForm(t, data, tree.Root(), key, sp, err)
	})
}

// requireOneForm holds what was decoded to its own bytes, and to proving nothing present.
func requireOneForm[P interface {
	Encode() ([]byte, error)
	Check(root, key Hash) (Hash, bool, error)
}](t *testing.T, data []byte, root, key Hash, p P, err error) {
	t.Helper()
	if err != nil {
		require.ErrorIs(t, err, ErrBadProof)
		return
	}
	back, err := p.Encode()
	require.NoError(t, err)
	require.Equal(t, data, back)
	_, present, _ := p.Check(root, key)
	require.False(t, present)
}
