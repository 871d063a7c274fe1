package world_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// unreadable is a journal whose images are damaged.
type unreadable struct{ *worldtest.Journal }

func (unreadable) Image(journal.Seq) (*journal.Image, error) { return nil, errors.New("damaged") }

func TestWorldAtAMomentIsThatOfTheRecordsWhateverItsImageSays(t *testing.T) {
	w := bots(t)
	w.Submit("go", order{To: "a", Say: "one"})
	w.Run()
	require.NoError(t, w.Checkpoint())
	w.Submit("go", order{To: "a", Say: "two"})
	w.Run()
	end := w.Journal.Head().ID
	want := w.StateRoot()
	j := w.Journal.Truncate(end)
	wrong := *lastImage(t, w.Journal)
	for i := range wrong.Cells {
		wrong.Cells[i].Bytes = bytes.ReplaceAll(wrong.Cells[i].Bytes, []byte("one"), []byte("won"))
	}
	j.Add(&wrong)
	for what, h := range map[string]journal.History{"wrong": j, "unreadable": unreadable{j}} {
		m, err := world.At(t.Context(), h, end, botRegistry())
		require.NoError(t, err, what)
		require.Equal(t, want, m.StateRoot(), what)
	}
}

// TestImagesThatALookLeavesAreThoseOfTheWorld through rollbacks, snapshots and changes of rules.
func TestImagesThatALookLeavesAreThoseOfTheWorld(t *testing.T) {
	left := 0
	for seed := range uint64(4) {
		l := newLife(t, seed, seed%2 == 0, make(map[string]int))
		l.live()
		end := l.Journal.Head().ID
		bare, with := l.Journal.Truncate(end), l.Journal.Truncate(end)
		var heads []journal.Seq
		_, err := world.AtLeaving(t.Context(), bare, end, cellAtRegistry(), 7, func(img *journal.Image) {
			kept := *img
			kept.Keep = heads
			with.Add(&kept)
			heads = append(heads, img.Head.ID)
		})
		require.NoError(t, err)
		for _, at := range heads {
			img, err := with.Image(at)
			require.NoError(t, err)
			require.Equal(t, at, img.Head.ID)
			want, err := world.At(t.Context(), bare, at, cellAtRegistry())
			require.NoError(t, err)
			got, err := world.At(t.Context(), with, at, cellAtRegistry())
			require.NoError(t, err)
			require.Equal(t, want.StateRoot(), got.StateRoot(), "at #%d", at)
			require.Equal(t, want.Status(), got.Status(), "at #%d", at)
		}
		left += len(heads)
		_, err = world.AtLeaving(t.Context(), with, end, cellAtRegistry(), end, func(*journal.Image) { t.Fatal("an image is near") })
		require.NoError(t, err)
	}
	require.Greater(t, left, 20)
}
