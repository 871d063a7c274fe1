package store

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/journal"
)

// pastOf is what there was after each record: of cells and intents by name.
type pastOf struct {
	t    testing.TB
	h    *history
	then []map[string]string // by record, from 0
}

// change appends a record with which some of the cells and intents change.
func (w *pastOf) change(r *rapid.T) {
	appendAll(w.t, w.h.s, w.h.batch("a/1"))
	w.h.heads = append(w.h.heads, w.h.head)
	now := maps.Clone(w.then[len(w.then)-1])
	for _, name := range []string{"a/1", "a/2", "b/1", "#0", "#1"} {
		if rapid.IntRange(0, 3).Draw(r, name) == 0 {
			now[name] = fmt.Sprint(len(w.then), rapid.IntRange(0, 1).Draw(r, "as"))
		}
	}
	w.then = append(w.then, now)
}

// image is what a world makes at a head when the image before was at another.
func (w *pastOf) image(since, at journal.Seq) *journal.Image {
	img := &journal.Image{Head: w.h.heads[at], Core: fmt.Append(nil, at)}
	for _, name := range slices.Sorted(maps.Keys(w.then[at])) {
		body := []byte(w.then[at][name])
		same := true
		for id := since; id <= at; id++ {
			same = same && w.then[id][name] == w.then[since][name]
		}
		switch {
		case same && since > 0:
		case name[0] == '#':
			img.Intents = append(img.Intents, journal.IntentVersion{Key: journal.Hash{name[1] - '0'}, Bytes: body})
		default:
			img.Cells = append(img.Cells, journal.CellVersion{Cell: name, Bytes: body})
		}
	}
	return img
}

func (w *pastOf) requireImages(r *rapid.T) {
	heads, err := w.h.s.ImageHeads()
	require.NoError(r, err)
	for _, at := range heads {
		img, err := w.h.s.Image(at)
		require.NoError(r, err)
		require.Equal(r, at, img.Head.ID)
		got := make(map[string]string)
		for _, c := range img.Cells {
			got[c.Cell] = string(c.Bytes)
		}
		for _, in := range img.Intents {
			got[fmt.Sprint("#", in.Key[0])] = string(in.Bytes)
		}
		require.Equal(r, w.then[at], got, "at #%d of %v", at, heads)
	}
	requireNothingUnneeded(r, w.h.s)
	require.Empty(r, damageOf(w.h.s))
}

// TestImagesOfThePastAreMadeAgain between others, in any order, and let go again.
func TestImagesOfThePastAreMadeAgain(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := newHistory(t)
		w := &pastOf{t: t, h: h, then: []map[string]string{{}}}
		last := journal.Seq(0)
		r.Repeat(map[string]func(*rapid.T){
			"change": w.change,
			"checkpoint": func(r *rapid.T) {
				if h.head.ID == last {
					return
				}
				img := w.image(last, h.head.ID)
				heads, err := h.s.ImageHeads()
				require.NoError(r, err)
				for _, head := range heads {
					if rapid.IntRange(0, 3).Draw(r, "keep") > 0 {
						img.Keep = append(img.Keep, head)
					}
				}
				require.NoError(r, h.s.Checkpoint(img))
				last = img.Head.ID
			},
			"past": func(r *rapid.T) {
				heads, err := h.s.ImageHeads()
				require.NoError(r, err)
				if last < 2 {
					return
				}
				at := journal.Seq(rapid.Uint64Range(1, uint64(last)).Draw(r, "at"))
				since := journal.Seq(0)
				for _, head := range heads {
					if head < at {
						since = head
					}
				}
				require.NoError(r, h.s.KeepPast(w.image(since, at)))
			},
			"": w.requireImages,
		})
		require.NoError(r, h.s.Close())
	})
}

// TestAnEmptyVersionOfThePastGoesWithWhatItHides: the versions before it went alone until it came.
func TestAnEmptyVersionOfThePastGoesWithWhatItHides(t *testing.T) {
	s, w := create(t, memFS(t)), &writer{}
	image := func(cells []journal.CellVersion, keep ...journal.Seq) {
		require.NoError(t, s.Checkpoint(&journal.Image{Head: w.head, Cells: cells, Keep: keep}))
		s.settleImages()
	}
	was := func(state string) []journal.CellVersion {
		return []journal.CellVersion{{Cell: "a/1", Bytes: []byte(state)}}
	}
	appendAll(t, s, w.batch("a"))
	image(was("first"))
	appendAll(t, s, w.batch("a"))
	image(was("second"), 1)
	appendAll(t, s, w.batch("a"))
	past := w.head
	appendAll(t, s, w.batch("a"))
	image(was("fourth"), 1, 2)
	require.NoError(t, s.KeepPast(&journal.Image{Head: past, Cells: []journal.CellVersion{{Cell: "a/1"}}}))
	requireNothingUnneeded(t, s)
	appendAll(t, s, w.batch("a"))
	image(nil, 1, 3, 4)
	requireNothingUnneeded(t, s)
	appendAll(t, s, w.batch("a"))
	image(nil, 3, 4, 5)
	requireNothingUnneeded(t, s)
	require.NoError(t, s.Close())
}
