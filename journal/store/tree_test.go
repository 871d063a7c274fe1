package store

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
)

// grove is a store with some records, and the tree over them at every size.
type grove struct {
	*writer

	s     *Store
	roots []checkpoint.Hash // of size 0 on
	tree  checkpoint.Tree
}

func newGrove(s *Store) *grove {
	g := &grove{writer: resume(s), s: s}
	g.roots = append(g.roots, g.tree.Root())
	return g
}

func (g *grove) grow(t testing.TB, records int) {
	t.Helper()
	b := journal.Batch{After: g.head, Head: g.head}
	for i := range records {
		g.add(&b, fmt.Sprint("agent/", i%3))
	}
	appendAll(t, g.s, b)
	for _, r := range b.Records {
		g.tree.Add(r.Bytes)
		g.roots = append(g.roots, g.tree.Root())
	}
}

func (g *grove) requireTreeAt(t require.TestingT, size int) {
	tree, err := g.s.TreeAt(journal.Seq(size))
	require.NoError(t, err)
	require.Equal(t, uint64(size), tree.Size())
	require.Equal(t, g.roots[size], tree.Root(), "size %d", size)
}

// archive moves the records up to one, so that their leaves are in tiles.
func (g *grove) archive(t require.TestingT, to journal.Seq) {
	require.NoError(t, g.s.Checkpoint(&journal.Image{Head: g.head}))
	_, err := g.s.Archive(to, "/archived")
	require.NoError(t, err)
}

// sign keeps a signed checkpoint of the records so far.
func (g *grove) sign(t require.TestingT) {
	note, err := (checkpoint.Checkpoint{World: "w", Size: g.tree.Size(), Root: g.tree.Root()}).Sign(signingKey())
	require.NoError(t, err)
	require.NoError(t, g.s.PutCheckpoint(note))
}

func signingKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) }

// tiles returns how many hashes each tile of a store has.
func tiles(t require.TestingT, s *Store) map[string]int {
	all := map[string]int{}
	it, err := s.iterate([]byte{tilePrefix}, []byte{tilePrefix + 1})
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		all[nameOf(it.Key())] = (len(it.Value()) - crcLen) / tlog.HashSize
	}
	require.NoError(t, it.Close())
	return all
}

func sizesOf(t require.TestingT, s *Store) (sizes []uint64) {
	for c, err := range s.Checkpoints(0, journal.Last) {
		require.NoError(t, err)
		sizes = append(sizes, c.Size)
	}
	return sizes
}

// The tree is the same whichever tiles are there, and proofs of it check.
func TestTreeIsTheSameWithAndWithoutTiles(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		mem := memFS(t)
		g := newGrove(create(t, mem))
		for range rapid.IntRange(1, 4).Draw(r, "batches") {
			g.grow(t, rapid.IntRange(1, 400).Draw(r, "records"))
			if rapid.Bool().Draw(r, "reopened") {
				require.NoError(r, g.s.Close())
				g.s = reopen(t, mem)
			}
		}
		if rapid.Bool().Draw(r, "leaves are kept, as in stores of before") {
			require.NoError(r, g.s.keepLeaves(1, g.head.ID))
		}
		for level := range 2 {
			for n := range uint64(len(g.roots)/tileHashes + 1) {
				if rapid.Bool().Draw(r, "lost") {
					require.NoError(r, g.s.db.Delete(tileKey(level, n), pebble.NoSync))
				}
			}
		}
		size := rapid.IntRange(1, len(g.roots)-1)
		for range 8 {
			n, m := size.Draw(r, "size"), size.Draw(r, "another")
			g.requireTreeAt(r, n)
			n, m = min(n, m), max(n, m)
			older, newer := tlog.Hash(g.roots[n]), tlog.Hash(g.roots[m])
			p, err := tlog.ProveTree(int64(m), int64(n), g.s.Hashes())
			require.NoError(r, err)
			require.NoError(r, tlog.CheckTree(p, int64(m), newer, int64(n), older))
			record, err := g.s.Record(journal.Seq(n))
			require.NoError(r, err)
			proof, err := tlog.ProveRecord(int64(m), int64(n)-1, g.s.Hashes())
			require.NoError(r, err)
			require.NoError(r, tlog.CheckRecord(proof, int64(m), newer, int64(n)-1, tlog.RecordHash(record)))
		}
		for _, beyond := range []journal.Seq{g.head.ID + 1, journal.Last} {
			_, err := g.s.TreeAt(beyond)
			require.ErrorIs(r, err, journal.ErrNotFound)
		}
		for level := range 62 {
			_, err := g.s.Hashes().ReadHashes([]int64{tlog.StoredHashIndex(level, int64(g.head.ID>>level))})
			require.ErrorIs(r, err, journal.ErrNotFound)
		}
		require.Empty(r, damageOf(g.s))
		require.NoError(r, g.s.Close())
	})
}

// Two levels of tiles, of which the lower is not written, with batches that complete none,
// one or many, of tiles that began before the store was opened or after.
func TestTilesAreOfTheirRecords(t *testing.T) {
	mem := memFS(t)
	opts := Options{FS: mem, AnchorKey: []byte("key")}
	s, err := Create(testDir, opts)
	require.NoError(t, err)
	g := newGrove(s)
	for _, records := range []int{255, 1, 63_000, 3000, 700} {
		g.grow(t, records)
		g.requireTreeAt(t, len(g.roots)-1)
		require.NoError(t, g.s.Close())
		g.s, err = Open(testDir, opts)
		require.NoError(t, err)
		last := (len(g.roots) - 1) / tileHashes // tile of leaves that is not complete
		require.Equal(t, last%tileHashes/writeEvery*writeEvery, tiles(t, g.s)[fmt.Sprintf("tile %d of level 1", last/tileHashes)])
		g.requireTreeAt(t, len(g.roots)-1)
	}
	s = g.s
	require.Equal(t, map[string]int{"tile 0 of level 1": tileHashes}, tiles(t, s))
	for _, size := range []int{1, 255, 256, 257, 65_535, 65_536, 65_537, 66_000} {
		g.requireTreeAt(t, size)
	}
	for n := range uint64(3) {
		from := 100 * n * tileHashes
		hashes, err := s.tree().hashes(0, from, tileHashes)
		require.NoError(t, err)
		for i, h := range hashes {
			record, err := s.Record(journal.Seq(from + uint64(i) + 1))
			require.NoError(t, err)
			require.Equal(t, tlog.RecordHash(record), h)
		}
	}
	require.Empty(t, damageOf(s))
	require.NoError(t, s.Close())
}

// Whatever was archived, the tree needs no archive, and goes on.
func TestTreeNeedsNoArchive(t *testing.T) {
	for _, archived := range [][]journal.Seq{{100}, {255}, {256}, {100, 101, 300}, {511, 599}} {
		t.Run(fmt.Sprint(archived), func(t *testing.T) {
			mem := memFS(t)
			g := newGrove(create(t, mem))
			g.grow(t, 600)
			require.NoError(t, g.s.Checkpoint(&journal.Image{Head: g.head}))
			for i, to := range archived {
				_, err := g.s.Archive(to, fmt.Sprint("/a", i))
				require.NoError(t, err)
				require.NoError(t, mem.Remove(fmt.Sprint("/a", i)))
				if i+1 < len(archived) { // what is left to archive does not need it either
					continue
				}
				for size := range g.roots {
					g.requireTreeAt(t, size)
				}
			}
			require.NoError(t, g.s.Close())
			g.s = reopen(t, mem)
			c := copyTo(t, g.s, journal.Seq(600), mem)
			removeCopy(t, c, mem)
			g.grow(t, 300)
			want, last := map[string]int{}, int(archived[len(archived)-1])
			for n := 0; n*tileHashes < last; n++ {
				want[fmt.Sprintf("tile %d of level 0", n)] = min(last-n*tileHashes, tileHashes)
			}
			require.Equal(t, want, tiles(t, g.s))
			for size := 590; size < len(g.roots); size += 30 {
				g.requireTreeAt(t, size)
			}
			copied := &grove{s: copyTo(t, g.s, 700, mem), roots: g.roots}
			copied.requireTreeAt(t, 700)
			removeCopy(t, copied.s, mem)
			require.NoError(t, g.s.Close())
		})
	}
}

// A copy has the tiles of its own records, and goes on with others.
func TestCopyHasTheTreeOfItsOwnRecords(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		mem := memFS(t)
		g := newGrove(create(t, mem))
		g.grow(t, rapid.IntRange(200, 800).Draw(r, "records"))
		g.sign(t)
		signed := g.tree.Size()
		g.grow(t, 10)
		g.sign(t)
		at := rapid.SampledFrom([]journal.Seq{0, g.head.ID, journal.Last}).Draw(r, "at")
		if at == 0 {
			at = journal.Seq(rapid.IntRange(1, len(g.roots)-2).Draw(r, "cut"))
		}
		opts := copyOptions(mem)
		another := rapid.Bool().Draw(r, "another world")
		if !another {
			opts = testOptions(mem)
		}
		c, done, err := g.s.CopyTo(copyDir, at, opts)
		require.NoError(r, err)
		size := uint64(done.Head.ID)
		var want []uint64
		for _, s := range []uint64{signed, g.tree.Size()} {
			if s <= size && !another {
				want = append(want, s)
			}
		}
		require.Equal(r, want, sizesOf(r, c))
		for name, hashes := range tiles(r, c) {
			var level, n uint64
			_, err := fmt.Sscanf(name, "tile %d of level %d", &n, &level)
			require.NoError(r, err)
			require.LessOrEqual(r, (n*tileHashes+uint64(hashes))<<(tileHeight*level), size, name)
		}
		copied := &grove{writer: resume(c), s: c, roots: slices.Clone(g.roots[:size+1])}
		for i := range int(size) {
			record, err := g.s.Record(journal.Seq(i + 1))
			require.NoError(r, err)
			copied.tree.Add(record)
		}
		b := copied.batch(strings.Repeat("x", 50)) // not what the store has there
		appendAll(t, c, b)
		copied.tree.Add(b.Records[0].Bytes)
		copied.roots = append(copied.roots, copied.tree.Root())
		copied.grow(t, 300)
		for _, n := range []int{1, int(size), int(size) + 1, len(copied.roots) - 1} {
			copied.requireTreeAt(r, n)
		}
		require.Empty(r, damageOf(c))
		removeCopy(r, c, mem)
		g.requireTreeAt(r, len(g.roots)-1)
		require.NoError(r, g.s.Close())
	})
}

func TestSignedCheckpointsAreKeptInOrder(t *testing.T) {
	mem := memFS(t)
	g := newGrove(create(t, mem))
	last, err := g.s.LastCheckpoint()
	require.NoError(t, err)
	require.Nil(t, last)
	for range 3 {
		g.grow(t, 300)
		g.sign(t)
		mem = mem.CrashClone(vfs.CrashCloneCfg{}) // durable on return
		require.NoError(t, g.s.Close())
		g.s = reopen(t, mem)
	}
	_, err = g.s.Collect()
	require.NoError(t, err)
	require.Equal(t, []uint64{300, 600, 900}, sizesOf(t, g.s))
	for c, err := range g.s.Checkpoints(301, 899) {
		require.NoError(t, err)
		require.Equal(t, g.roots[600], c.Root)
		s, err := checkpoint.Open(c.Note, signingKey().Public().(ed25519.PublicKey))
		require.NoError(t, err)
		require.Equal(t, c.Checkpoint, s.Checkpoint)
		require.Len(t, s.By, 1)
	}

	again, err := (checkpoint.Checkpoint{World: "w", Size: 900, Root: g.roots[900]}).Sign(signingKey(), ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32))))
	require.NoError(t, err)
	require.NoError(t, g.s.PutCheckpoint(again))
	last, err = g.s.LastCheckpoint()
	require.NoError(t, err)
	require.Equal(t, again, last.Note)
	require.Equal(t, []uint64{300, 600, 900}, sizesOf(t, g.s))
	require.ErrorIs(t, checkShape(signedKey(899), again), errShape)

	beyond, err := (checkpoint.Checkpoint{World: "w", Size: 901}).Sign(signingKey())
	require.NoError(t, err)
	require.ErrorIs(t, g.s.PutCheckpoint(beyond), journal.ErrNotFound)
	require.ErrorIs(t, g.s.PutCheckpoint([]byte("signed")), checkpoint.ErrMalformed)
	require.NoError(t, g.s.Close())
	require.ErrorIs(t, g.s.PutCheckpoint(again), ErrClosed)
	_, err = g.s.LastCheckpoint()
	require.ErrorIs(t, err, ErrClosed)
}

func TestAnyFlippedByteOfATileOrASignedCheckpointIsNamed(t *testing.T) {
	mem := memFS(t)
	g := newGrove(create(t, mem))
	g.grow(t, 600)
	g.sign(t)
	g.archive(t, 512)
	require.NoError(t, g.s.Close())
	for name, key := range map[string][]byte{
		"tile 1 of level 0":         tileKey(0, 1),
		"tile 0 of level 0":         tileKey(0, 0),
		"signed checkpoint of #600": signedKey(600),
	} {
		size := 0
		change(t, clone(mem), key, func(v []byte) []byte { size = len(v); return v })
		for at := 0; at < size; at += 97 {
			files := clone(mem)
			change(t, files, key, func(v []byte) []byte { v[at] ^= 1; return v })
			s := reopen(t, files)
			require.Equal(t, []string{name + " is damaged: " + errSum.Error()}, damageOf(s))
			_, err := s.TreeAt(511)
			_, signed := s.LastCheckpoint()
			damage := (*DamageError)(nil)
			require.ErrorAs(t, errors.Join(err, signed), &damage)
			require.Equal(t, name, damage.What)
			require.NoError(t, s.Close())
		}
	}
}

// After a crash the store opens, every tile is right, and what was signed and
// acknowledged is there.
func TestCrashLeavesNoWrongTile(t *testing.T) {
	mem := memFS(t)
	s := create(t, mem)
	first := newGrove(s)
	first.grow(t, 250)
	require.NoError(t, s.Close())
	all := first
	none, some := 0, 0
	crashes(t, mem, func(opts Options) {
		s, err := Open(testDir, opts)
		require.NoError(t, err)
		tree, err := checkpoint.Resume(250, first.tree.Nodes())
		require.NoError(t, err)
		g := &grove{writer: resume(s), s: s, roots: slices.Clone(first.roots), tree: *tree}
		for range 3 {
			g.grow(t, 300)
			g.sign(t)
		}
		g.archive(t, 1000)
		g.grow(t, 100)
		require.NoError(t, s.Close())
		all = g
	}, func(t *testing.T, files *vfs.MemFS) {
		g := &grove{s: reopen(t, files), roots: all.roots}
		require.Empty(t, damageOf(g.s))
		head := int(g.s.Head().ID)
		if len(tiles(t, g.s)) == 0 {
			none++
		} else {
			some++
		}
		for size := 1; size <= head; size += 50 {
			g.requireTreeAt(t, size)
		}
		g.requireTreeAt(t, head)
		for c, err := range g.s.Checkpoints(0, journal.Last) {
			require.NoError(t, err)
			require.LessOrEqual(t, int(c.Size), head)
			require.Equal(t, all.roots[c.Size], c.Root)
		}
		require.NoError(t, g.s.Close())
	})
	require.Positive(t, none)
	require.Positive(t, some)
}
