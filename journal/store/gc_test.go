package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// TestCollectKeepsWhatIsReferredTo makes blobs that records name, that such blobs
// name, and that nothing does, and holds that exactly the last go.
func TestCollectKeepsWhatIsReferredTo(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := create(t, memFS(t))
		w := &writer{}
		wanted, unwanted := map[journal.Hash][]byte{}, map[journal.Hash][]byte{}
		b := w.batch("agent/first")
		for i := range rapid.IntRange(0, 12).Draw(r, "chains") {
			var name []byte // of the blob before, as CBOR
			named := rapid.Bool().Draw(r, "named")
			for j := range rapid.IntRange(1, 4).Draw(r, "links") {
				content := append([]byte(fmt.Sprint("blob X ", i, j, strings.Repeat("X", j))), name...)
				blob := journal.Blob{Hash: canon.Sum(content), Bytes: content}
				b.Blobs = append(b.Blobs, blob)
				name = canon.AppendBytes(nil, blob.Hash[:])
				if named {
					wanted[blob.Hash] = content
				} else {
					unwanted[blob.Hash] = content
				}
			}
			if named {
				w.addOf(&b, testKind, append([]byte("agent/a"), name...))
			}
		}
		w.add(&b, longPayload)
		appendAll(t, s, b)
		s.settleImages()
		img := &journal.Image{Head: w.head, Core: []byte("core"), Cells: []journal.CellVersion{{Cell: "agent/a", Bytes: []byte("a")}}}
		require.NoError(r, s.Checkpoint(img))
		lost := cellVersionKey("agent/a", 0)
		if rapid.Bool().Draw(r, "a version in no image") {
			s.settleImages()
			batch := s.db.NewBatch()
			seal(batch, lost, []byte("old"))
			seal(batch, noteKey(nil, 1, cellVersionKey("agent/z", 1)), nil)
			require.NoError(r, batch.Commit(pebble.Sync))
		} else {
			lost = nil
		}
		found, err := s.Collect()
		require.NoError(r, err)
		require.Len(r, unwanted, int(found.Blobs))
		for h, content := range wanted {
			got, err := s.Blob(h)
			require.NoError(r, err)
			require.Equal(r, content, got)
		}
		for h := range unwanted {
			_, err := s.Blob(h)
			require.ErrorIs(r, err, journal.ErrNotFound)
		}
		if lost != nil {
			require.Equal(r, Garbage{Blobs: found.Blobs, BlobBytes: found.BlobBytes, Versions: 1, Notes: 1}, found)
		}
		require.Empty(r, damageOf(s))
		requireNothingUnneeded(t, s)
		again, err := s.Collect()
		require.NoError(r, err)
		require.Zero(r, again)
		got, err := s.Image(journal.Last)
		require.NoError(r, err)
		require.Equal(r, img.Cells[0].Bytes, got.Cells[0].Bytes)
		require.NoError(r, s.Close())
	})
}

// TestCollectReadsArchivesOrDeletesNothing holds that what cannot be read is taken
// to refer to anything.
func TestCollectReadsArchivesOrDeletesNothing(t *testing.T) {
	mem := memFS(t)
	aPast(t, mem, 300)
	s, _ := archived(t, mem)
	found, err := s.Collect()
	require.NoError(t, err)
	require.Zero(t, found)
	require.NoError(t, mem.Rename("/a", "/b"))
	_, err = s.Collect()
	require.ErrorIs(t, err, journal.ErrArchived)
	require.NoError(t, mem.Rename("/b", "/a"))
	require.Empty(t, damageOf(s))
	require.NoError(t, s.Close())
}
