package world

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

func TestHandWrittenImageOfACellEqualsTheLibrarys(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCell(reducer.Cell{Reducer: "bot", Key: "a"}, journal.Hash{1})
		c.n, c.halted = rapid.Uint64().Draw(rt, "n"), rapid.Bool().Draw(rt, "halted")
		c.born = rapid.Bool().Draw(rt, "born")
		want := imageCell{
			Version: imageVersion, N: c.n, History: journal.Hash{1}, Halted: c.halted, Unborn: !c.born,
			Mail: []imageMail{}, Awaits: []receipt.Key{},
		}
		for i := range rapid.IntRange(0, 2).Draw(rt, "awaits") {
			key := receipt.Key{Hash: journal.Hash{byte(i)}}
			of := c.toAsk()
			of.awaits, want.Awaits = append(of.awaits, key), append(want.Awaits, key)
		}
		for i := range rapid.IntRange(0, 3).Draw(rt, "mail") {
			c.mail.push(mail{record: journal.Seq(i), name: "e", data: journal.Data{byte(i)}}, nil)
			want.Mail = append(want.Mail, imageMail{Record: journal.Seq(i), Name: "e", Data: journal.Data{byte(i)}})
		}
		if rapid.Bool().Draw(rt, "state") {
			c.state = []byte{0x18, 0xff}
			want.State = c.state
		}
		library, err := canon.Marshal(want)
		require.NoError(rt, err)
		got, err := c.appendImage(nil)
		require.NoError(rt, err)
		require.Equal(rt, library, got)
	})
}

// Only of a cell that no image has had an image says so: not once more, nor of one that comes
// back from there.
func TestAnImageSaysWhichCellsAreNew(t *testing.T) {
	k := newKernel(nil, false)
	image := func(c *cell) journal.CellVersion {
		k.last++
		k.touch(c)
		cells, err := k.imageCells()
		require.NoError(t, err)
		require.Len(t, cells, 1)
		return cells[0]
	}
	c := newCell(reducer.Cell{Reducer: "bot", Key: "a"}, journal.Hash{})
	k.cells.put(c)
	first := image(c)
	require.True(t, first.First)
	require.False(t, image(c).First)
	back, err := decodeCell(&first)
	require.NoError(t, err)
	require.False(t, image(back).First)
}
