package bundle_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/chunk"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// letters is text that does not repeat.
func letters(size int) string {
	var b strings.Builder
	for sum := canon.Sum(nil); b.Len() < size; sum = canon.Sum(sum[:]) {
		b.WriteString(sum.String())
	}
	return b.String()[:size]
}

// talk is a world that was told the same long text, and a little more each time.
func talk(t testing.TB) *worldtest.World {
	t.Helper()
	w := shop(t, "a")
	for _, size := range []int{60_000, 61_000, 62_000} {
		w.Submit("order.placed", map[string]any{"customer": "b", "cents": 7, "note": letters(size)})
	}
	w.Run()
	return w
}

// TestWhatBlobsHaveInCommonIsInABundleOnce: of three that are nearly the same it has little more than one.
func TestWhatBlobsHaveInCommonIsInABundleOnce(t *testing.T) {
	w := talk(t)
	long := payloads(t, w.Journal)
	require.GreaterOrEqual(t, len(long), 3)
	data, stand := write(t, w.Journal, cut{}), 0
	r := open(t, data)
	require.Empty(t, slices.Collect(r.Damage()))
	for _, name := range long {
		want, err := w.Journal.Blob(name)
		require.NoError(t, err)
		got, err := r.Blob(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
		stand += len(got)
	}
	require.Less(t, len(unpack(t, data)), stand/2)
	require.Empty(t, judge(t, r).Faults)
	shown := open(t, write(t, w.Journal, cut{withheld: long[:1]}))
	require.Empty(t, judge(t, shown).Faults)
	_, err := shown.Blob(long[0])
	require.ErrorIs(t, err, journal.ErrNotFound)
}

// made is an item of a bundle that is made up.
func made(parts ...any) []byte {
	b, err := canon.Marshal(parts)
	if err != nil {
		panic(err)
	}
	return b
}

// TestPiecesThatDoNotFitAreFaults changes a bundle in pieces, and has the fault named.
func TestPiecesThatDoNotFitAreFaults(t *testing.T) {
	w := talk(t)
	items := split(t, unpack(t, write(t, w.Journal, cut{})))
	piece := slices.IndexFunc(items, func(item []byte) bool { return item[0] == 0x81 })
	blob := slices.IndexFunc(items, func(item []byte) bool { return item[0] == 0x82 && item[1]>>5 == 0 })
	require.Positive(t, piece)
	require.Greater(t, blob, piece)
	list := func(size uint64, l chunk.List) []byte { return made(size, l.Append(nil)) }
	entry := func(number, size uint64) chunk.List {
		return chunk.List{Entries: []chunk.Entry{{Number: number, Bytes: size}}}
	}
	for name, edit := range map[string]func([][]byte) [][]byte{
		"piece gone":           func(x [][]byte) [][]byte { return slices.Delete(x, piece, piece+1) },
		"piece not needed":     func(x [][]byte) [][]byte { return slices.Insert(x, blob, made([]byte("nobody's"))) },
		"piece before records": func(x [][]byte) [][]byte { return slices.Insert(x, blob+1, made([]byte("nobody's"))) },
		"piece changed":        func(x [][]byte) [][]byte { x[piece] = made(bytes.Repeat([]byte("x"), len(x[piece])-4)); return x },
		"piece too long":       func(x [][]byte) [][]byte { return slices.Insert(x, blob, made(make([]byte, 65_537))) },
		"length":               func(x [][]byte) [][]byte { x[blob] = list(7, entry(1, 8)); return x },
		"piece to come":        func(x [][]byte) [][]byte { x[blob] = list(8, entry(9999, 8)); return x },
		"piece 0":              func(x [][]byte) [][]byte { x[blob] = list(8, entry(0, 8)); return x },
		"list that is none":    func(x [][]byte) [][]byte { x[blob] = made(uint64(8), []byte{9}); return x },
		"of 8 GiB":             func(x [][]byte) [][]byte { x[blob] = list(8<<30, entry(1, 8<<30)); return x },
	} {
		t.Run(name, func(t *testing.T) {
			edited := edit(slices.Clone(items))
			r := open(t, pack(t, bytes.Join(edited, nil)))
			require.NotEmpty(t, slices.Collect(r.Damage()))
			require.NotEmpty(t, judge(t, r).Faults)
		})
	}
}

// TestBlobsInPiecesAreWithinTheSizeThatIsAllowed counts what they stand for.
func TestBlobsInPiecesAreWithinTheSizeThatIsAllowed(t *testing.T) {
	data := write(t, talk(t).Journal, cut{})
	size := int64(len(unpack(t, data)))
	_, err := bundle.Open(bytes.NewReader(data), bundle.Options{MaxBytes: size + 1})
	require.ErrorIs(t, err, bundle.ErrSize)
	r, err := bundle.Open(bytes.NewReader(data), bundle.Options{MaxBytes: 3 * size})
	require.NoError(t, errors.Join(err, r.Close()))
}
