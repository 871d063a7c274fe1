package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
)

// An image is made each so many records and a few more, as a world does it, and now and
// then one besides.
func TestNoRecordIsFarFromAnImageAndImagesAreFew(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const apart, late = 100, 10        // an image may come so many records late
		var heads, snapshots []journal.Seq // a snapshot is one when its image is made, until it goes for good
		head := journal.Seq(0)
		for range rapid.IntRange(1, 300).Draw(r, "images") {
			head += journal.Seq(rapid.OneOf(rapid.Uint64Range(apart, apart+late), rapid.Uint64Range(1, 30)).Draw(r, "records"))
			img := &journal.Image{Head: journal.Head{ID: head}}
			snapshots = slices.DeleteFunc(snapshots, func(journal.Seq) bool { return rapid.IntRange(0, 20).Draw(r, "gone") == 0 })
			img.Keep = snapshots
			kept := moments(img, heads, apart)
			require.LessOrEqual(r, len(kept), mostMoments)
			heads = slices.DeleteFunc(heads, func(old journal.Seq) bool {
				return !slices.Contains(kept, old) && !slices.Contains(img.Keep, old)
			})
			heads = append(heads, head)
			if rapid.IntRange(0, 20).Draw(r, "snapshot") == 0 {
				snapshots = append(slices.Clone(snapshots), head)
			}
			wide := journal.Seq(apart)
			for head/wide > mostMoments {
				wide *= 2
			}
			last := journal.Seq(0)
			for _, at := range heads {
				require.LessOrEqual(r, at-last, 4*(wide+late))
				last = at
			}
		}
	})
}

func TestNoImageIsKeptForLooksBackUnlessAsked(t *testing.T) {
	require.Empty(t, moments(&journal.Image{Head: journal.Head{ID: 1000}}, []journal.Seq{1, 500}, 0))
}

// A payload may be in an image that was made while a cell had it before itself.
func TestImagesThatAreKeptForLooksBackGoWithARedaction(t *testing.T) {
	mem := memFS(t)
	w, blob := aSecret(t, mem, false)
	options := testOptions(mem)
	options.Moments = 1
	s, err := Open(testDir, options)
	require.NoError(t, err)
	first := w.head
	for i, state := range []string{marker, "done", "more"} {
		img := &journal.Image{Head: w.head, Core: []byte("core"), Cells: []journal.CellVersion{{Cell: "agent/a", Bytes: []byte(state)}}}
		if i == 2 {
			img.Keep = []journal.Seq{w.head.ID - 1} // a snapshot
		}
		require.NoError(t, s.Checkpoint(img))
		appendAll(t, s, w.batch(fmt.Sprint("agent/b", i)))
	}
	heads, err := s.ImageHeads()
	require.NoError(t, err)
	require.Len(t, heads, 3)
	old, err := s.Part(first.ID, []string{"agent/a"})
	require.NoError(t, err)
	require.Equal(t, marker, string(old.Cells[0].Bytes))
	require.NotEmpty(t, holding(t, mem, "w", marker))
	redactIn(t, s, w, blob)
	note := keysOf(t, s, notePrefix)[0]
	require.NoError(t, s.Close())
	flip := func(v []byte) []byte { v[0] ^= 1; return v }
	change(t, mem, note, flip)
	s, err = Open(testDir, options)
	require.NoError(t, err, "what cannot be let go of goes later")
	require.NotEmpty(t, damageOf(s))
	require.NoError(t, s.Close())
	change(t, mem, note, flip)
	s, err = Open(testDir, options)
	require.NoError(t, err)
	left, err := s.ImageHeads()
	require.NoError(t, err)
	require.Equal(t, heads[1:], left)
	requireNothingUnneeded(t, s)
	require.Empty(t, damageOf(s))
	require.NoError(t, s.Close())
	require.Empty(t, holding(t, mem, "w", marker))
}
