package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/chunk"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
)

// prose is so many bytes of words, the same for a seed.
func prose(seed uint64, size int) string {
	r := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "@w%x ", r.Uint32()>>(r.Uint32()%24))
	}
	return b.String()[:size]
}

// keysOf returns the keys of a store under a prefix.
func keysOf(t testing.TB, s *Store, prefix byte) (keys [][]byte) {
	t.Helper()
	s.each(prefix, func(key, _ []byte) error {
		keys = append(keys, bytes.Clone(key))
		return nil
	}, func(err error) bool { require.NoError(t, err); return false })
	return keys
}

// bytesOf returns how many bytes a store has under a prefix.
func bytesOf(t testing.TB, s *Store, prefix byte) (n int) {
	t.Helper()
	s.each(prefix, func(key, value []byte) error {
		n += len(key) + len(value)
		return nil
	}, func(err error) bool { require.NoError(t, err); return false })
	return n
}

// TestWhatLongPayloadsHaveInCommonIsKeptOnce appends to a content, inserts into its
// middle, and takes its beginning away; and a cell holds it, too.
func TestWhatLongPayloadsHaveInCommonIsKeptOnce(t *testing.T) {
	mem := memFS(t)
	s, w := create(t, mem), &writer{}
	content, payloads := "", []string(nil)
	for i := range uint64(60) {
		content += prose(i, 2000)
		payloads = append(payloads, fmt.Sprint(i, " ", content))
	}
	middle := len(content) / 2
	payloads = append(payloads, content[:middle]+prose(99, 500)+content[middle:], content[middle:])
	for _, p := range payloads {
		appendAll(t, s, w.batch(p))
	}
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Cells: []journal.CellVersion{{Cell: "agent/a", Bytes: []byte("state " + content)}}}))
	s.settleImages()
	all := 0
	for _, prefix := range []byte{blobPrefix, listPrefix, chunkPrefix, findPrefix, versionPrefix} {
		all += bytesOf(t, s, prefix)
	}
	require.Less(t, all, 4*len(content)) // of 33 times as much
	check := func(s *Store) {
		for _, p := range payloads {
			got, err := s.Blob(canon.Sum([]byte(p)))
			require.NoError(t, err)
			require.Equal(t, p, string(got))
		}
		img, err := s.Image(journal.Last)
		require.NoError(t, err)
		require.Equal(t, "state "+content, string(img.Cells[0].Bytes))
		part, err := s.Part(img.Head.ID, []string{"agent/a"})
		require.NoError(t, err)
		require.Equal(t, img.Cells, part.Cells)
		require.Empty(t, damageOf(s))
	}
	check(s)
	require.NoError(t, s.Close())
	s = reopen(t, mem)
	before := bytesOf(t, s, chunkPrefix)
	appendAll(t, s, w.batch("again "+content)) // whose chunks nobody remembers
	require.Less(t, bytesOf(t, s, chunkPrefix)-before, 20_000)
	check(s)
	require.NoError(t, s.Close())
}

// TestVersionsInChunksGoWithTheirImages has a cell whose state is edited, another that
// has the same for a while, and a payload that keeps what is its.
func TestVersionsInChunksGoWithTheirImages(t *testing.T) {
	mem := memFS(t)
	s, w := create(t, mem), &writer{}
	image := func(cells ...journal.CellVersion) {
		appendAll(t, s, w.batch("agent/a"))
		require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Cells: cells}))
		s.settleImages()
		require.Empty(t, damageOf(s))
	}
	cell := func(name, state string) journal.CellVersion {
		return journal.CellVersion{Cell: name, Bytes: []byte(state)}
	}
	const size = 100_000
	image(cell("agent/a", prose(1, size)))
	one := bytesOf(t, s, chunkPrefix)
	for i := range uint64(5) {
		image(cell("agent/a", prose(2+i, size)))
		require.InDelta(t, one, bytesOf(t, s, chunkPrefix), 0.1*size, "what the version before needed is there")
	}
	image(cell("agent/a", prose(6, size)+"and more"))
	image(cell("agent/b", prose(6, size)))
	image(cell("agent/a", "short"))
	got, err := s.Part(w.head.ID, []string{"agent/b"})
	require.NoError(t, err)
	require.Equal(t, prose(6, size), string(got.Cells[0].Bytes))
	appendAll(t, s, w.batch(prose(8, size)))
	image(cell("agent/c", prose(8, size)), cell("agent/b", "\x00short"))
	image(cell("agent/c", ""))
	payload, err := s.Blob(canon.Sum([]byte(prose(8, size))))
	require.NoError(t, err)
	require.Equal(t, prose(8, size), string(payload))
	got, err = s.Part(w.head.ID, []string{"agent/b"})
	require.NoError(t, err)
	require.Equal(t, "\x00short", string(got.Cells[0].Bytes))
	found, err := s.Collect() // what two cells had is left to it
	require.NoError(t, err)
	require.Zero(t, found.Blobs)
	require.InDelta(t, one, bytesOf(t, s, chunkPrefix), 0.1*size)
	require.Empty(t, damageOf(s))
	require.NoError(t, s.Close())
}

// Several images go at once, each with a version in chunks that nothing else needs.
func TestVersionsInChunksGoWithImagesThatWereKept(t *testing.T) {
	for name, anew := range map[string]bool{"remembered": false, "searched for": true} {
		t.Run(name, func(t *testing.T) {
			mem := memFS(t)
			s, w := create(t, mem), &writer{}
			const size = 100_000
			var keep []journal.Seq
			image := func(state string) {
				appendAll(t, s, w.batch("agent/a"))
				cells := []journal.CellVersion{{Cell: "agent/a", Bytes: []byte(state)}}
				require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Cells: cells, Keep: keep}))
				s.settleImages()
				require.Empty(t, damageOf(s))
				if anew {
					require.NoError(t, s.Close())
					s = reopen(t, mem)
				}
			}
			for i := range uint64(4) {
				image(prose(1+i, size))
				keep = append(keep, w.head.ID)
			}
			all := bytesOf(t, s, chunkPrefix)
			keep = keep[:1]
			image("short")
			require.InDelta(t, all/4, bytesOf(t, s, chunkPrefix), 0.1*size)
			require.NoError(t, s.Close())
		})
	}
}

// TestAnyFlippedByteOfAChunkIsNamed names the payloads that it hurts, too.
func TestAnyFlippedByteOfAChunkIsNamed(t *testing.T) {
	mem := memFS(t)
	s, w := create(t, mem), &writer{}
	content := prose(1, 60_000) // enough for a list in chunks
	payloads := []string{content, content + "more", prose(2, 5_000)}
	appendAll(t, s, w.batch(payloads...))
	state := content + "state"
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Cells: []journal.CellVersion{{Cell: "agent/a", Bytes: []byte(state)}}}))
	s.settleImages()
	keys := slices.Concat(keysOf(t, s, chunkPrefix), keysOf(t, s, listPrefix), keysOf(t, s, findPrefix))
	needs := map[string][]string{} // chunks' names, and what needs them
	require.NoError(t, s.eachList(func(key, list []byte) error {
		l, err := chunk.Parse(list, maxContentBytes)
		require.NoError(t, err)
		return l.Each(s.chunkReader().piece, func(n uint64, _ bool) bool {
			needs[nameOf(chunkKey(n))] = append(needs[nameOf(chunkKey(n))], nameOf(key))
			return true
		})
	}))
	require.NoError(t, s.Close())
	r := rand.New(rand.NewPCG(1, 0))
	for _, key := range keys {
		files := clone(mem)
		change(t, files, key, func(v []byte) []byte { v[r.IntN(len(v))] ^= 1 << r.IntN(8); return v })
		s := reopen(t, files)
		found := damageOf(s)
		require.NotEmpty(t, found)
		require.True(t, strings.HasPrefix(found[0], nameOf(key)+" "), "%s: %s", nameOf(key), found)
		for _, name := range needs[nameOf(key)] {
			require.Contains(t, found[0], name)
		}
		for _, p := range payloads {
			name := fmt.Sprintf("blob %s", canon.Sum([]byte(p)))
			got, err := s.Blob(canon.Sum([]byte(p)))
			if slices.Contains(needs[nameOf(key)], name) || nameOf(key) == name {
				damage := (*DamageError)(nil)
				require.ErrorAs(t, err, &damage)
				require.Equal(t, nameOf(key), damage.What)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, p, string(got))
		}
		_, err := s.Image(journal.Last)
		if slices.Contains(needs[nameOf(key)], "cell version agent/a at #3") {
			damage := (*DamageError)(nil)
			require.ErrorAs(t, err, &damage)
		} else {
			require.NoError(t, err)
		}
		next := *w
		appendAll(t, s, next.batch(payloads[0]+"even more")) // it goes on
		require.NoError(t, s.Close())
	}
	files := clone(mem)
	change(t, files, keys[0], func([]byte) []byte { return nil })
	s = reopen(t, files)
	require.ErrorContains(t, errors.Join(slices.Collect(allDamage(s))...), "chunk 1 is damaged: "+errNoChunk.Error())
	require.NoError(t, s.Close())
}

// TestAnotherPayloadInChunksIsNamed puts the list of one payload, sealed anew, in the place of
// another's: every chunk of it is as it was written, and the content has another hash.
func TestAnotherPayloadInChunksIsNamed(t *testing.T) {
	mem := memFS(t)
	s, w := create(t, mem), &writer{}
	b := w.batch(prose(1, 6_000), prose(2, 6_000))
	appendAll(t, s, b)
	key := hashKey(listPrefix, b.Blobs[0].Hash)
	list, err := s.sealed(hashKey(listPrefix, b.Blobs[1].Hash))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	db := raw(t, mem)
	batch := db.NewBatch()
	seal(batch, key, list)
	require.NoError(t, batch.Commit(pebble.Sync))
	require.NoError(t, db.Close())
	s = reopen(t, mem)
	_, err = s.Blob(b.Blobs[0].Hash)
	damage := (*DamageError)(nil)
	require.ErrorAs(t, err, &damage)
	require.Equal(t, nameOf(key), damage.What)
	found := damageOf(s)
	require.Len(t, found, 1)
	require.True(t, strings.HasPrefix(found[0], nameOf(key)+" "), "%s", found)
	require.NoError(t, s.Close())
}

// TestRedactedChunksAreInNoFile holds that what a redacted payload alone has is nowhere,
// and that what another has, too, is where it was.
func TestRedactedChunksAreInNoFile(t *testing.T) {
	const before, after = " @" + marker, " @qW3nB8vX1zK6mJ4hT9dR2sL7pF5gY0cA"
	shared := prose(1, 30_000) + before + prose(2, 30_000)
	secret := shared + prose(3, 3_000) + after + prose(4, 3_000) + after
	mem := memFS(t)
	s, w := create(t, mem), &writer{}
	b := w.batch("x "+shared, "y "+secret)
	blob := b.Blobs[1].Hash
	appendAll(t, s, b)
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Cells: []journal.CellVersion{{Cell: "agent/a", Bytes: []byte(secret)}}}))
	appendAll(t, s, w.batch("agent/a"))
	require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Cells: []journal.CellVersion{{Cell: "agent/a", Bytes: []byte("none")}}}))
	require.NoError(t, s.Close())
	require.NotEmpty(t, holding(t, mem, "w", after[2:]), "it cannot be found even before")
	s = redactedIn(t, mem, w, blob)
	require.Empty(t, damageOf(s))
	_, err := s.Blob(blob)
	require.ErrorIs(t, err, journal.ErrRedacted)
	got, err := s.Blob(canon.Sum([]byte("x " + shared)))
	require.NoError(t, err)
	require.Equal(t, "x "+shared, string(got))
	c, _, err := s.CopyTo("copy", journal.Last, testOptions(mem))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	require.Empty(t, holding(t, mem, "w", after[2:]))
	require.Empty(t, holding(t, mem, "copy", after[2:]))
	require.NotEmpty(t, holding(t, mem, "w", before[2:]))
}

// TestRedactionWaitsForWhatCannotBeRead has a damaged list, which might need any chunk, and a damaged number of a chunk, which might be
// of one that goes. The copy of a log is made anew instead.
func TestRedactionWaitsForWhatCannotBeRead(t *testing.T) {
	defer func() { shared = nil }()
	for _, prefix := range []byte{listPrefix, findPrefix} {
		for _, log := range []*logtest.Server{nil, {}} {
			shared = log
			mem := memFS(t)
			s, w := create(t, mem), &writer{}
			b := w.batch(prose(1, 6_000), prose(2, 6_000))
			appendAll(t, s, b, w.batch("agent/a"))
			require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head}))
			redactIn(t, s, w, b.Blobs[0].Hash)
			key := hashKey(listPrefix, b.Blobs[1].Hash)
			if prefix == findPrefix {
				key = keysOf(t, s, findPrefix)[0]
			}
			require.NoError(t, s.Close())
			var right []byte
			change(t, mem, key, func(v []byte) []byte { right = bytes.Clone(v); v[0] ^= 1; return v })
			s = reopen(t, mem)
			_, err := s.Blob(b.Blobs[0].Hash)
			require.ErrorIs(t, err, journal.ErrRedacted)
			if log == nil {
				require.ErrorContains(t, s.BytesLeft(), nameOf(key))
				require.NotEmpty(t, damageOf(s))
				_, err = s.Collect()
				require.Error(t, err)
				chunks := len(keysOf(t, s, chunkPrefix))
				require.NoError(t, s.Close())
				change(t, mem, key, func([]byte) []byte { return right })
				s = reopen(t, mem)
				require.Less(t, len(keysOf(t, s, chunkPrefix)), chunks)
			}
			require.NoError(t, s.BytesLeft())
			require.Empty(t, damageOf(s))
			require.NoError(t, s.Close())
		}
	}
}

// TestCrashLosesNoChunkThatIsNeeded crashes at every write of payloads, images and a
// collection, which share chunks; the collection has something to delete.
func TestCrashLosesNoChunkThatIsNeeded(t *testing.T) {
	content := prose(1, 40_000)
	mem := memFS(t)
	s, w := create(t, mem), &writer{}
	appendAll(t, s, w.batch("x "+content))
	require.NoError(t, s.Close())
	crashes(t, mem, func(opts Options) {
		s, err := Open(testDir, opts)
		require.NoError(t, err)
		w := resume(s)
		for i := range 2 {
			b := w.batch(fmt.Sprint(i, " ", content, i))
			b.Blobs = append(b.Blobs, journal.Blob{Hash: canon.Sum([]byte("nobody's")), Bytes: []byte("nobody's")})
			appendAll(t, s, b)
			require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Cells: []journal.CellVersion{
				{Cell: "agent/a", Bytes: []byte(fmt.Sprint("state ", i, content, prose(uint64(i), 9000)))},
			}}))
		}
		found, err := s.Collect()
		require.NoError(t, err)
		require.EqualValues(t, 1, found.Blobs)
		require.NoError(t, s.Close())
	}, func(t *testing.T, files *vfs.MemFS) {
		s := reopen(t, files)
		require.Empty(t, damageOf(s))
		for _, r := range scanAll(t, s, 0) {
			rec, err := journal.DecodeRecord(r.Bytes)
			require.NoError(t, err)
			require.NoError(t, rec.Load(s))
			require.Equal(t, rec.Blob, journal.Hash(sha256.Sum256(rec.Payload)))
		}
		_, err := s.Image(journal.Last)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	})
}
