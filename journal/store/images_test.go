package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
)

// history is a store and what it should hold: the images in memory.
type history struct {
	*writer

	mem     *vfs.MemFS
	s       *Store
	want    journal.Images
	heads   []journal.Head            // of batches
	kept    []journal.Seq             // heads of images
	given   [3]bool                   // intents, to an image
	counted map[journal.CountKey]bool // likewise
	apart   journal.Seq               // those that are kept for looks back; see moments
}

var imageCells = []string{"a/1", "a/11", "a/2", "b/1"}

var imageCounts = []journal.CountKey{{Cell: "a/1"}, {Cell: "a/1", What: [16]byte{0, 1}}, {Cell: "a/11"}, {Cell: "b/1", What: [16]byte{255}}}

func newHistory(t testing.TB) *history {
	t.Helper()
	mem := memFS(t)
	return &history{writer: &writer{}, mem: mem, s: create(t, mem), heads: []journal.Head{{}}, counted: map[journal.CountKey]bool{}}
}

func (h *history) checkpoint(t require.TestingT, img *journal.Image) {
	if h.s.opts.Moments != h.apart {
		h.s.settleImages() // who writes them reads it
		h.s.opts.Moments = h.apart
	}
	require.NoError(t, h.s.Checkpoint(img))
	all := *img
	all.Keep = append(slices.Clone(img.Keep), moments(img, h.kept, h.apart)...)
	h.want.Add(&all)
	h.kept = slices.DeleteFunc(h.kept, func(head journal.Seq) bool { return !slices.Contains(all.Keep, head) })
	h.kept = append(h.kept, img.Head.ID)
}

func TestImagesEqualThoseInMemory(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := newHistory(t)
		h.apart = rapid.Custom(func(r *rapid.T) journal.Seq { return journal.Seq(rapid.IntRange(0, 3).Draw(r, "records")) }).Draw(r, "apart")
		if forgotten { // with those that are kept for looks back
			h.apart = 0
		}
		r.Repeat(map[string]func(*rapid.T){
			"append": func(r *rapid.T) {
				appendAll(t, h.s, h.batch(rapid.SliceOfN(rapid.Just("a/1"), 0, 2).Draw(r, "records")...))
				h.heads = append(h.heads, h.head)
			},
			"checkpoint": func(r *rapid.T) { h.checkpoint(r, h.drawImage(r)) },
			"reopen": func(r *rapid.T) {
				require.NoError(r, h.s.Close())
				if rapid.Bool().Draw(r, "crash") {
					h.mem = h.mem.CrashClone(vfs.CrashCloneCfg{})
				}
				h.s = reopen(t, h.mem)
			},
			"": func(r *rapid.T) {
				at := rapid.SampledFrom(h.heads).Draw(r, "at").ID
				h.compare(r, at, rapid.SliceOf(rapid.SampledFrom(imageCells)).Draw(r, "named"))
			},
		})
		for at := range h.head.ID + 2 {
			h.compare(r, at, imageCells)
		}
		h.compare(r, journal.Last, imageCells)
		requireNothingUnneeded(r, h.s)
		require.Empty(r, damageOf(h.s))
		require.NoError(r, h.s.Close())
	})
}

// drawImage draws an image at the last one's head or one after it, and any of
// those before to keep.
func (h *history) drawImage(r *rapid.T) *journal.Image {
	least := journal.Seq(0)
	if len(h.kept) > 0 {
		least = h.kept[len(h.kept)-1]
	}
	late := slices.DeleteFunc(slices.Clone(h.heads), func(head journal.Head) bool { return head.ID < least })
	img := &journal.Image{Head: rapid.SampledFrom(late).Draw(r, "head"), Core: []byte(rapid.StringN(0, 3, -1).Draw(r, "core"))}
	for _, cell := range imageCells {
		switch rapid.IntRange(0, 4).Draw(r, cell) {
		case 0, 1:
			img.Cells = append(img.Cells, journal.CellVersion{Cell: cell, Bytes: []byte(rapid.StringN(1, 3, -1).Draw(r, "state"))})
		case 2:
			img.Cells = append(img.Cells, journal.CellVersion{Cell: cell})
		}
	}
	for key := range byte(3) {
		if rapid.Bool().Draw(r, "intent changed") {
			first := !h.given[key] && rapid.Bool().Draw(r, "known to be the first")
			h.given[key] = true
			img.Intents = append(img.Intents, journal.IntentVersion{Key: journal.Hash{key}, First: first, Bytes: []byte(rapid.StringN(1, 3, -1).Draw(r, "entry"))})
		}
	}
	for _, key := range imageCounts {
		if rapid.Bool().Draw(r, "count changed") {
			first := !h.counted[key] && rapid.Bool().Draw(r, "known to be the first")
			h.counted[key] = true
			img.Counts = append(img.Counts, journal.CountVersion{CountKey: key, First: first, Bytes: []byte(rapid.StringN(1, 3, -1).Draw(r, "count"))})
		}
	}
	for _, head := range h.kept {
		if head != img.Head.ID && rapid.IntRange(0, 3).Draw(r, "keep") > 0 {
			img.Keep = append(img.Keep, head)
		}
	}
	return img
}

func (h *history) compare(r require.TestingT, at journal.Seq, named []string) {
	want, err := h.want.Image(at)
	require.NoError(r, err)
	got, err := h.s.Image(at)
	require.NoError(r, err)
	require.Equal(r, inOrder(want), inOrder(got), "image at %d", at)

	want, missing := h.want.Part(at, named)
	got, err = h.s.Part(at, named)
	require.Equal(r, inOrder(want), inOrder(got), "part at %d", at)
	if missing != nil {
		require.ErrorIs(r, err, journal.ErrNotFound)
		return
	}
	require.NoError(r, err)
	for _, cell := range named { // where an image is, the last version is its
		want, err := h.want.CellVersion(cell, at)
		require.NoError(r, err)
		got, err := h.s.CellVersion(cell, at)
		require.NoError(r, err)
		require.Equal(r, want, got, cell)
	}
	for key := range byte(3) {
		want, err := h.want.IntentVersion(journal.Hash{key}, at)
		require.NoError(r, err)
		got, err := h.s.IntentVersion(journal.Hash{key}, at)
		require.NoError(r, err)
		require.Equal(r, want, got)
	}
	for _, key := range imageCounts {
		want, err := h.want.CountVersion(key, at)
		require.NoError(r, err)
		got, err := h.s.CountVersion(key, at)
		require.NoError(r, err)
		require.Equal(r, want, got)
	}
	for _, prefix := range []string{"", "a/", "a/1", "c"} {
		require.Equal(r, inOrder(allVersions(r, &h.want, prefix, at)), inOrder(allVersions(r, h.s, prefix, at)))
	}
}

// allVersions gathers what is read piece by piece into an image.
func allVersions(t require.TestingT, x journal.Versions, prefix string, at journal.Seq) *journal.Image {
	img, err := x.Core(at)
	require.NoError(t, err)
	for v, err := range x.CellVersions(prefix, at) {
		require.NoError(t, err)
		v.Bytes = slices.Clone(v.Bytes)
		img.Cells = append(img.Cells, v)
	}
	for v, err := range x.IntentVersions(at) {
		require.NoError(t, err)
		v.Bytes = slices.Clone(v.Bytes)
		img.Intents = append(img.Intents, v)
	}
	for v, err := range x.CountVersions(at) {
		require.NoError(t, err)
		v.Bytes = slices.Clone(v.Bytes)
		img.Counts = append(img.Counts, v)
	}
	slices.SortFunc(img.Cells, func(a, b journal.CellVersion) int { return strings.Compare(a.Cell, b.Cell) })
	return img
}

// inOrder returns an image with its intents and counts in order, and nothing where
// nothing is.
func inOrder(img *journal.Image) *journal.Image {
	if img == nil {
		return nil
	}
	out := &journal.Image{Head: img.Head, Core: append([]byte{}, img.Core...), Cells: append([]journal.CellVersion{}, img.Cells...)}
	out.Intents = append([]journal.IntentVersion{}, img.Intents...)
	slices.SortFunc(out.Intents, func(a, b journal.IntentVersion) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	out.Counts = append([]journal.CountVersion{}, img.Counts...)
	slices.SortFunc(out.Counts, func(a, b journal.CountVersion) int {
		return bytes.Compare(countName(nil, &a.CountKey), countName(nil, &b.CountKey))
	})
	return out
}

// requireNothingUnneeded checks that every version is in a kept image, or hides
// one in it, and that every one that is followed has its one note.
func requireNothingUnneeded(t require.TestingT, s *Store) {
	s.settleImages()
	var kept []journal.Seq
	var keys, notes, wantNotes []string
	empty, alone := map[string]bool{}, map[string]bool{}
	it, err := s.iterate(nil, nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		switch it.Key()[0] {
		case imagePrefix:
			kept = append(kept, recordID(it.Key()))
		case notePrefix:
			notes = append(notes, string(it.Key()))
			alone[string(it.Key()[recordKeyLen:])] = len(it.Value()) > crcLen
		case versionPrefix, countPrefix, ledgerPrefix:
			keys = append(keys, string(it.Key()))
			empty[string(it.Key())] = len(it.Value()) == crcLen
		}
	}
	require.NoError(t, it.Close())
	var before []byte
	for i, key := range keys {
		require.False(t, alone[key] && (empty[key] || i+1 < len(keys) && empty[keys[i+1]]), "%s does not go alone", nameOf([]byte(key)))
		name, at, ok := splitVersion([]byte(key))
		require.True(t, ok)
		end, followed := journal.Last, false
		if i+1 < len(keys) {
			if next, n, _ := splitVersion([]byte(keys[i+1])); bytes.Equal(next, name) {
				end, followed = n, true
			}
		}
		need := slices.DeleteFunc(slices.Clone(kept), func(head journal.Seq) bool { return head < at || head >= end })
		require.NotEmpty(t, need, "%s is in no image of %v", nameOf([]byte(key)), kept)
		require.False(t, empty[key] && !bytes.Equal(before, name), "%s hides nothing", nameOf([]byte(key)))
		if followed {
			wantNotes = append(wantNotes, string(noteKey(nil, need[len(need)-1], []byte(key))))
		}
		before = name
	}
	slices.Sort(wantNotes)
	require.Equal(t, wantNotes, notes)
}

// A cell has more versions than are stepped over, in both directions.
func TestImagesAreReadPastManyVersions(t *testing.T) {
	h := newHistory(t)
	for round := range 4 * maxPrev {
		appendAll(t, h.s, h.batch("a"))
		img := &journal.Image{
			Head: h.head, Core: fmt.Appendf(nil, "core%d", round), Keep: slices.Clone(h.kept),
			Cells:   []journal.CellVersion{{Cell: "a/1", Bytes: fmt.Appendf(nil, "hot%d", round)}},
			Intents: []journal.IntentVersion{{Key: journal.Hash{byte(round % 2)}, Bytes: fmt.Appendf(nil, "in%d", round)}},
		}
		if round%5 == 0 {
			img.Cells = append(img.Cells, journal.CellVersion{Cell: fmt.Sprintf("a/z%02d", round), Bytes: []byte("z")})
			img.Cells = append(img.Cells, journal.CellVersion{Cell: "a/zz", Bytes: bytes.Repeat([]byte("z"), round%2)})
		}
		h.checkpoint(t, img)
	}
	require.NoError(t, h.s.Close())
	h.s = reopen(t, h.mem)
	for at := range h.head.ID + 1 {
		h.compare(t, at, []string{"a/zz", "a/1", "a/0", "a/1"})
	}
	require.NoError(t, h.s.Close())
}

// Without images to keep, a world takes no more room for having a past.
func TestWhatNoImageNeedsIsDeleted(t *testing.T) {
	h := newHistory(t)
	count := func() (n int) {
		h.s.settleImages()
		it, err := h.s.iterate([]byte{versionPrefix}, []byte{ledgerPrefix + 1})
		require.NoError(t, err)
		for ok := it.First(); ok; ok = it.Next() {
			if it.Key()[0] != recordPrefix && it.Key()[0] != imagePrefix {
				n++
			}
		}
		require.NoError(t, it.Close())
		return n
	}
	at := func(round int) *journal.Image {
		appendAll(t, h.s, h.batch("a"))
		return &journal.Image{
			Head:    h.head,
			Cells:   []journal.CellVersion{{Cell: "a/1", Bytes: fmt.Append(nil, round)}, {Cell: fmt.Sprintf("a/%d", 10+round-1)}, {Cell: fmt.Sprintf("a/%d", 10+round), Bytes: []byte("brief")}},
			Intents: []journal.IntentVersion{{Key: journal.Hash{1}, Bytes: fmt.Append(nil, round)}},
		}
	}
	for round := range 5 {
		h.checkpoint(t, at(round))
		require.Equal(t, 3, count())
	}
	img := at(5)
	img.Keep = slices.Clone(h.kept)
	h.checkpoint(t, img)
	require.Equal(t, 3+3+1+3, count(), "three versions more, the brief cell's end, and three notes")
	h.checkpoint(t, at(6))
	require.Equal(t, 3, count())
	requireNothingUnneeded(t, h.s)
	require.NoError(t, h.s.Close())
}

func TestAnImageIsReadWholeWhileItIsLetGo(t *testing.T) {
	h := newHistory(t)
	appendAll(t, h.s, h.batch("a"))
	h.checkpoint(t, &journal.Image{Head: h.head, Cells: []journal.CellVersion{{Cell: "a/1", Bytes: []byte("old")}}})
	h.s.settleImages()
	v, err := h.s.openView()
	require.NoError(t, err)
	img, err := v.image(journal.Last)
	require.NoError(t, err)

	appendAll(t, h.s, h.batch("a"))
	h.checkpoint(t, &journal.Image{Head: h.head, Cells: []journal.CellVersion{{Cell: "a/1", Bytes: []byte("new")}}})
	h.s.settleImages()
	require.NoError(t, v.fill(img))
	require.Equal(t, []journal.CellVersion{{Cell: "a/1", At: 1, Bytes: []byte("old")}}, img.Cells)
	v.close()
	_, err = h.s.Part(1, nil)
	require.ErrorIs(t, err, journal.ErrNotFound)
	require.NoError(t, h.s.Close())
}

func TestAVersionAtAnyRecordIsTheLastThatIsKept(t *testing.T) {
	h := newHistory(t)
	for _, state := range []string{"one", "two", ""} {
		appendAll(t, h.s, h.batch("a", "a"))
		h.checkpoint(t, &journal.Image{Head: h.head, Keep: []journal.Seq{2}, Cells: []journal.CellVersion{{Cell: "a/1", Bytes: []byte(state)}}})
	}
	one := &journal.CellVersion{Cell: "a/1", At: 2, Bytes: []byte("one")}
	for at, want := range map[journal.Seq]*journal.CellVersion{
		0: nil, 1: nil, 2: one, 3: one,
		5: one, // the second is let go
		6: nil, journal.Last: nil,
	} {
		got, err := h.s.CellVersion("a/1", at)
		require.NoError(t, err)
		require.Equal(t, want, got, at)
	}
	got, err := h.s.IntentVersion(journal.Hash{1}, journal.Last)
	require.NoError(t, err)
	require.Nil(t, got)
	require.NoError(t, h.s.Close())
}

// TestIntentsThatNobodyRemembersAreSearchedFor: an image has too many, and the one before it has one of them, too.
func TestIntentsThatNobodyRemembersAreSearchedFor(t *testing.T) {
	s, w := create(t, memFS(t)), &writer{}
	image := func(intents int, state string) {
		appendAll(t, s, w.batch("agent/a"))
		img := &journal.Image{Head: w.head}
		for i := range intents {
			v := journal.IntentVersion{First: i > 0, Bytes: []byte(state)}
			binary.BigEndian.PutUint32(v.Key[:], uint32(i)) //nolint:gosec // it is small
			img.Intents = append(img.Intents, v)
		}
		require.NoError(t, s.Checkpoint(img))
		s.settleImages()
	}
	image(1, "one")
	image(mostWritten+1, "two")
	image(1, "three")
	found, err := s.Collect()
	require.NoError(t, err)
	require.Zero(t, found)
	require.NoError(t, s.Close())
}
