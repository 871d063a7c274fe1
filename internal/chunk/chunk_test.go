package chunk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// kept keeps pieces in memory, the n-th under the number n.
type kept struct {
	pieces [][]byte
	number map[Sum]uint64
	bytes  int
}

func (k *kept) keep(piece []byte, _ bool) (uint64, Sum, error) {
	sum := sha256.Sum256(piece)
	if n, ok := k.number[sum]; ok {
		return n, sum, nil
	}
	if k.number == nil {
		k.number = make(map[Sum]uint64)
	}
	k.pieces = append(k.pieces, bytes.Clone(piece))
	k.bytes += len(piece)
	n := uint64(len(k.pieces))
	k.number[sum] = n
	return n, sum, nil
}

var errNoPiece = errors.New("no such piece")

func (k *kept) piece(n uint64) ([]byte, error) {
	if n == 0 || n > uint64(len(k.pieces)) {
		return nil, errNoPiece
	}
	return k.pieces[n-1], nil
}

func (k *kept) read(l List) ([]byte, error) {
	var out []byte
	err := l.Read(k.piece, func(_ uint64, piece []byte) error {
		out = append(out, piece...)
		return nil
	})
	return out, err
}

func random(seed uint64, n int) []byte {
	b, r := make([]byte, n), rand.New(rand.NewPCG(seed, 0))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestCutsStayWhereTheyAre pins the boundaries: with others, contents that are kept
// already would have few pieces in common with new ones.
func TestCutsStayWhereTheyAre(t *testing.T) {
	require.Equal(t, uint64(0x6e340b9cffb37a98), gear[0]) // SHA-256 of a zero byte begins so
	var cuts []int
	for rest := random(1, 12_000); len(rest) > 0; {
		n := Cut(rest)
		cuts = append(cuts, n)
		rest = rest[n:]
	}
	require.Equal(t, []int{1577, 1795, 1254, 2365, 1178, 1659, 641, 1230, 301}, cuts)
	require.Equal(t, longest, Cut(make([]byte, 20_000)))
	require.Equal(t, 511, Cut(make([]byte, 511)))
	require.Zero(t, Cut(nil))

	var k kept
	l, err := Build(random(2, 60_000), nil, k.keep)
	require.NoError(t, err)
	require.Equal(t, "012fc9bd0130979702", hex.EncodeToString(l.Append(nil)))
}

// TestWhatIsBuiltIsRead builds contents of all lengths, each twice: of any bytes, and with strings of CBOR at the borders of what begins a part.
func TestWhatIsBuiltIsRead(t *testing.T) {
	var contents [][]byte
	for _, n := range []int{0, 1, 63, 511, 512, 513, 8192, 8193, 100_000, 3_000_000} {
		contents = append(contents, random(uint64(n), n))
	}
	body := random(11, 3*longest)
	for _, before := range []int{0, leastBytes - 6, leastBytes - 5, shortest, longest, longest + leastBytes - 1, longest + leastBytes} {
		for _, n := range []int{longest, longest + 1, longest + leastBytes - 1, longest + leastBytes, 2 * longest} {
			b := append(append([]byte{0x9f, 0x59, byte(before >> 8), byte(before)}, body[:before]...), 0x59, byte(n>>8), byte(n))
			b = append(append(append(b, body[:n]...), 0x59, byte(n>>8), byte(n)), body[:n]...)
			contents = append(contents, b, b[1:], b[1:len(b)-1], append(b[1:len(b):len(b)], 0x5f))
		}
	}
	var k kept
	for i, content := range contents {
		l, err := Build(content, nil, k.keep)
		require.NoError(t, err)
		require.Equal(t, uint64(len(content)), l.Bytes())
		parsed, err := Parse(l.Append(nil), uint64(len(content)))
		require.NoError(t, err)
		require.Equal(t, l.Append(nil), parsed.Append(nil))
		got, err := k.read(parsed)
		require.NoError(t, err, "content %d", i)
		require.True(t, bytes.Equal(content, got))
		require.NoError(t, parsed.Read(k.piece, func(_ uint64, piece []byte) error {
			require.Less(t, len(piece), longest+leastBytes)
			return nil
		}))
		before := len(k.pieces)
		again, err := Build(content, nil, k.keep)
		require.NoError(t, err)
		require.Equal(t, l, again)
		require.Len(t, k.pieces, before)
	}
}

// TestWhatChangesIsKeptAlone edits a content anywhere: all but the pieces around the
// edit, and the lists that name these, are those of before.
func TestWhatChangesIsKeptAlone(t *testing.T) {
	content := random(3, 800_000)
	rapid.Check(t, func(r *rapid.T) {
		var k kept
		_, err := Build(content, nil, k.keep)
		require.NoError(r, err)
		at := rapid.IntRange(0, len(content)).Draw(r, "at")
		gone := rapid.IntRange(0, min(5_000, len(content)-at)).Draw(r, "gone")
		more := random(rapid.Uint64().Draw(r, "seed"), rapid.IntRange(0, 2_000).Draw(r, "new"))
		edited := append(append(bytes.Clone(content[:at]), more...), content[at+gone:]...)
		before := k.bytes
		l, err := Build(edited, nil, k.keep)
		require.NoError(r, err)
		require.Less(r, k.bytes-before, len(more)+4*longest)
		got, err := k.read(l)
		require.NoError(r, err)
		require.True(r, bytes.Equal(edited, got))
	})
}

// TestWhatStandsBeforeALongStringIsNotInItsPieces has one string of CBOR, of bytes or text, behind other items: its pieces are those of before.
func TestWhatStandsBeforeALongStringIsNotInItsPieces(t *testing.T) {
	body := random(8, 60_000)
	for _, major := range []byte{0x5a, 0x7a} {
		var k kept
		content := func(head string) []byte {
			// [head, {"a": 1.5, "b": h'01', "body": string}]
			b := append([]byte{0x82, 0x78, byte(len(head))}, head...)
			b = append(b, "\xa3\x61a\xf9\x3e\x00\x61b\x41\x01\x64body"...)
			b = append(b, major, 0, 0, byte(len(body)>>8), byte(len(body)&0xff))
			return append(b, body...)
		}
		first, err := Build(content(strings.Repeat("x", 80)), nil, k.keep)
		require.NoError(t, err)
		second, err := Build(content(strings.Repeat("yz", 50)), nil, k.keep)
		require.NoError(t, err)
		require.Len(t, first.Entries, len(second.Entries))
		for i := range first.Entries {
			require.Equal(t, i == 0, first.Entries[i] != second.Entries[i], "piece %d", i)
		}
	}
}

// TestALongPartIsKeptOnceForTwoContentsInARow holds that what is remembered of a part is what cutting it gives, and that another part is cut.
func TestALongPartIsKeptOnceForTwoContentsInARow(t *testing.T) {
	var k kept
	var last Part
	asked := 0
	keep := func(piece []byte, list bool) (uint64, Sum, error) {
		asked++
		return k.keep(piece, list)
	}
	content := func(head byte, body []byte) []byte {
		b := append(bytes.Repeat([]byte{head}, 80), 0x5a, 0, byte(len(body)>>16), byte(len(body)>>8), byte(len(body)))
		return append(b, body...)
	}
	body, other := random(9, 100_000), random(10, 100_000)
	for i, part := range [][]byte{body, body, body, other, body} {
		asked = 0
		c := content(byte(i), part)
		l, err := Build(c, &last, keep)
		require.NoError(t, err)
		remembered := asked
		want, err := Build(c, nil, keep)
		require.NoError(t, err)
		require.Equal(t, want, l)
		require.Equal(t, i == 1, remembered < 20, "content %d: %d pieces", i, remembered)
	}
}

// TestEveryPieceIsVisited holds that Each finds what Read needs, and nothing twice
// where it is told so.
func TestEveryPieceIsVisited(t *testing.T) {
	var k kept
	l, err := Build(append(random(4, 2_000_000), random(4, 2_000_000)...), nil, k.keep)
	require.NoError(t, err)
	require.Positive(t, l.Level)
	needed := map[uint64]bool{}
	require.NoError(t, l.Each(k.piece, func(n uint64, _ bool) bool {
		seen := needed[n]
		needed[n] = true
		return !seen
	}))
	require.Len(t, needed, len(k.pieces))
}

// TestHostileListsAreRefused has lists that claim what is not so.
func TestHostileListsAreRefused(t *testing.T) {
	k := kept{pieces: [][]byte{
		[]byte("x"), make([]byte, 100), // 1, 2
		List{Entries: []Entry{{1, 1}}}.Append(nil),                   // 3
		List{Level: 1, Entries: []Entry{{4, 1}}}.Append(nil),         // 4: itself
		List{Level: 1, Entries: []Entry{{3, 1}, {3, 1}}}.Append(nil), // 5
	}}
	for name, l := range map[string]List{
		"missing":              {Entries: []Entry{{9, 1}}},
		"another length":       {Entries: []Entry{{2, 101}}},
		"tiny pieces":          {Entries: []Entry{{1, 1}, {2, 100}}},
		"tiny pieces in lists": {Level: 2, Entries: []Entry{{5, 2}}},
		"of itself":            {Level: 2, Entries: []Entry{{4, 1}}},
		"of another level":     {Level: 2, Entries: []Entry{{3, 1}}},
		"list that is none":    {Level: 1, Entries: []Entry{{2, 100}}},
		"list of another size": {Level: 1, Entries: []Entry{{3, 2}}},
	} {
		_, err := k.read(l)
		require.Error(t, err, name)
		if name != "missing" {
			require.ErrorIs(t, err, ErrList, name)
		}
	}
	for _, b := range []string{"", "\x05", "\x00\x01", "\x00\x01\x00", "\x00\x80\x00\x01", "\x00\x01\x65", "\x00\x01\x40\x01\x40", "\x00\x80", "\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x00\x01" + strings.Repeat("\x80", 20)} {
		_, err := Parse([]byte(b), 100)
		require.ErrorIs(t, err, ErrList, "%x", b)
	}
}

// FuzzList holds that what is read has the length that its list says, whatever the
// pieces hold.
func FuzzList(f *testing.F) {
	var k kept
	l, err := Build(random(5, 40_000), nil, k.keep)
	require.NoError(f, err)
	f.Add(l.Append(nil), []byte("piece"))
	f.Add([]byte{1, 1, 1}, List{Entries: []Entry{{2, 1}}}.Append(nil))
	f.Add([]byte{4, 1, 1, 2, 3}, []byte{3, 1, 1})
	f.Fuzz(func(t *testing.T, list, piece []byte) {
		const most = 1 << 20
		l, err := Parse(list, most)
		if err != nil {
			require.ErrorIs(t, err, ErrList)
			return
		}
		require.Equal(t, list, l.Append(nil))
		require.LessOrEqual(t, l.Bytes(), uint64(most))
		k := kept{pieces: [][]byte{piece, []byte("x"), l.Append(nil)}}
		if got, err := k.read(l); err == nil {
			require.Len(t, got, int(l.Bytes()))
			require.NoError(t, l.Each(k.piece, func(uint64, bool) bool { return true }))
		}
	})
}

func BenchmarkBuild(b *testing.B) {
	content := random(6, 800_000)
	var k kept
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		_, err := Build(content, nil, k.keep)
		require.NoError(b, err)
	}
}
