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
		c.n, c.parked = rapid.Uint64().Draw(rt, "n"), rapid.Bool().Draw(rt, "parked")
		c.born = rapid.Bool().Draw(rt, "born")
		want := imageCell{
			Version: imageCellVersion, N: c.n, History: journal.Hash{1}, Parked: c.parked, Unborn: !c.born,
			Mail: []imageMail{}, Asked: []imageAsked{}, Awaits: []receipt.Key{},
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
		for i := range rapid.IntRange(0, 3).Draw(rt, "asked") {
			if c.asked().counts == nil {
				c.toAsk().counts = make(map[asked]uint64)
			}
			c.asks.counts[asked{byte(i)}] = uint64(i) + 1
			want.Asked = append(want.Asked, imageAsked{What: append([]byte{byte(i)}, make([]byte, 15)...), Count: uint64(i) + 1})
		}
		library, err := canon.Marshal(want)
		require.NoError(rt, err)
		got, err := c.appendImage(nil)
		require.NoError(rt, err)
		require.Equal(rt, library, got)
	})
}
