package bundle_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// damageOf returns what a bundle says of itself.
func damageOf(t testing.TB, data []byte) []error {
	t.Helper()
	r, err := bundle.Open(bytes.NewReader(data), bundle.Options{})
	if err != nil {
		if !errors.Is(err, bundle.ErrVersion) {
			require.ErrorIs(t, err, bundle.ErrNotBundle)
		}
		return []error{err}
	}
	defer func() { require.NoError(t, r.Close()) }()
	return slices.Collect(r.Damage())
}

// at requires that a bundle of some items is damaged, and first at an item.
func (x tampered) at(t testing.TB, item int, msg ...any) {
	t.Helper()
	damage := damageOf(t, pack(t, slices.Concat(x...)))
	require.NotEmpty(t, damage, msg...)
	var d *bundle.DamageError
	require.ErrorAs(t, damage[0], &d, msg...)
	require.EqualValues(t, item, d.Item, "%v: %v", msg, d)
	if item > 0 && item <= len(x) {
		require.EqualValues(t, len(slices.Concat(x[:item-1]...)), d.Offset, msg...)
	}
}

// tampered are the items of a bundle that somebody changes.
type tampered [][]byte

// told is a small bundle with a payload that is a blob, and two checkpoints.
func told(t testing.TB) tampered {
	t.Helper()
	return split(t, unpack(t, write(t, shop(t, "a").Journal, cut{signed: []journal.Seq{4}})))
}

// index returns the number of the nth item, from 0, that begins like this.
func (x tampered) index(t testing.TB, major byte, n int) int {
	t.Helper()
	for i, item := range x[1:] {
		if kindOf(item) == major {
			if n == 0 {
				return i + 2
			}
			n--
		}
	}
	t.Fatal("no such item")
	return 0
}

const (
	aBlob   = 2 << 5
	aText   = 3 << 5
	aRecord = 4 << 5
	aPiece  = 1 // or a blob in pieces
)

// kindOf returns what an item after the header is, by how it begins.
func kindOf(item []byte) byte {
	major := item[0] & 0xe0
	if major == aRecord && (item[0] == 0x81 || len(item) > 1 && item[1]>>5 == 0) {
		return aPiece
	}
	return major
}

// small is a bundle of the last records of a world, whose bytes are few enough to
// try them all.
func small(t testing.TB) []byte {
	t.Helper()
	w := shop(t, "a")
	first := w.Journal.Head().ID
	w.Submit("order.placed", map[string]any{"customer": "b", "cents": 1, "note": strings.Repeat("b", journal.MaxInlineBytes)})
	w.Submit("order.placed", map[string]any{"customer": "c", "cents": 1})
	return write(t, w.Journal, cut{first: first, signed: []journal.Seq{first + 1}})
}

func TestEveryFlippedByteOfTheFileIsNoticed(t *testing.T) {
	data := small(t)
	for i := range data {
		changed := bytes.Clone(data)
		changed[i] ^= 1 << (i % 8)
		require.NotEmpty(t, damageOf(t, changed), "byte %d", i)
	}
}

func TestFileThatIsCutOffOrContinuedIsNoticed(t *testing.T) {
	data := small(t)
	for n := range data {
		require.NotEmpty(t, damageOf(t, data[:n]), "%d bytes", n)
	}
	require.NotEmpty(t, damageOf(t, append(bytes.Clone(data), 0)))
	require.NotEmpty(t, damageOf(t, slices.Concat(data, data)))
}

// What a changed item means is found out by whoever verifies the records; that it
// is not what it was, by one of the two.
func TestEveryFlippedByteOfTheItemsIsNoticed(t *testing.T) {
	items := unpack(t, small(t))
	for i := range items {
		if bytes.Equal(items[i:min(i+20, len(items))], bytes.Repeat([]byte("b"), 20)) && i%100 > 0 {
			continue // one letter of many
		}
		changed := bytes.Clone(items)
		changed[i] ^= 1 << (i % 8)
		if r, err := bundle.Open(bytes.NewReader(pack(t, changed)), bundle.Options{}); err == nil {
			require.False(t, len(slices.Collect(r.Damage())) == 0 && len(judge(t, r).Faults) == 0, "byte %d", i)
			require.NoError(t, r.Close())
		}
	}
}

func TestDroppedRepeatedAndSwappedItemsAreNoticed(t *testing.T) {
	items := told(t)
	noticed := func(x tampered, msg string, i int) {
		t.Helper()
		data := pack(t, slices.Concat(x...))
		if r, err := bundle.Open(bytes.NewReader(data), bundle.Options{}); err == nil {
			require.NotEmpty(t, judge(t, r).Faults, "item %d %s", i+1, msg)
			require.NoError(t, r.Close())
		}
	}
	for i := range items {
		cutOff := items[:i]
		noticed(cutOff, "and all after it are gone", i)
		if len(cutOff) > 0 {
			require.NotEmpty(t, damageOf(t, pack(t, slices.Concat(cutOff...))), "item %d and all after it are gone", i+1)
		}
		if note := items[i][0]&0xe0 == aText; !note || i == len(items)-1 { // that a checkpoint was there, nothing says but the last
			noticed(slices.Delete(slices.Clone(items), i, i+1), "is gone", i)
		}
		noticed(slices.Insert(slices.Clone(items), i, items[i]), "is there twice", i)
		for k := range i {
			if items[i][0]&0xe0 == aBlob && items[k][0]&0xe0 == aBlob {
				continue // blobs before one record have no order
			}
			swapped := slices.Clone(items)
			swapped[i], swapped[k] = swapped[k], swapped[i]
			noticed(swapped, "has changed places with another", i)
		}
	}
}

func TestDamageNamesItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		major  byte
		n      int
		change func(item []byte) [][]byte
		behind int // items between the one that is changed and the one that is named
	}{
		"no item of a bundle": {aRecord, 2, func(item []byte) [][]byte { return [][]byte{{0xf6}, item} }, 0},
		"another array":       {aRecord, 2, func(item []byte) [][]byte { return [][]byte{{0x80}, item} }, 0},
		"a link that is too long": {aRecord, 2, func(item []byte) [][]byte {
			i := len(item) - 9
			return [][]byte{slices.Concat(item[:i], []byte{0x49}, item[i+1:], []byte{0})}
		}, 0},
		"a blob nobody needs": {aRecord, 2, func(item []byte) [][]byte { return [][]byte{canon.AppendBytes(nil, []byte("more")), item} }, 0},
		"a blob twice":        {aBlob, 1, func(item []byte) [][]byte { return [][]byte{item, item} }, 1},
		"a long head": {aBlob, 1, func(item []byte) [][]byte {
			return [][]byte{append([]byte{0x5b, 0, 0, 0, 0, 0, 0, item[1], item[2]}, item[3:]...)}
		}, 0},
		"text":                    {aText, 0, func(item []byte) [][]byte { return [][]byte{canon.AppendText(nil, "text"), item} }, 0},
		"a checkpoint twice":      {aText, 0, func(item []byte) [][]byte { return [][]byte{item, item} }, 1},
		"a checkpoint elsewhere":  {aRecord, 0, func(item []byte) [][]byte { return [][]byte{told(t)[told(t).index(t, aText, 0)-1], item} }, 0},
		"no beginning of an item": {aRecord, 2, func(item []byte) [][]byte { return [][]byte{{0x9f}, item} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			items := told(t)
			i := items.index(t, c.major, c.n)
			items = slices.Concat(items[:i-1], c.change(items[i-1]), items[i:])
			items.at(t, i+c.behind)
		})
	}
}

// A checkpoint stands right after its record, and a blob before the next one is not it.
func TestCheckpointBehindABlobIsDamage(t *testing.T) {
	items := tampered(split(t, unpack(t, write(t, shop(t, "a").Journal, cut{signed: []journal.Seq{1}}))))
	i := items.index(t, aText, 0)
	require.EqualValues(t, aPiece, kindOf(items[i]), "of the payload of record #2")
	items[i-1], items[i] = items[i], items[i-1]
	items.at(t, i+1)
}

func TestWhatIsThereBeforeABreakIsRead(t *testing.T) {
	items := told(t)
	i := items.index(t, aRecord, 5)
	whole := slices.Concat(items[:i]...)
	for name, data := range map[string][]byte{
		"the file is cut off":    pack(t, slices.Concat(items...))[:len(pack(t, whole))-90],
		"the items are cut off":  pack(t, append(bytes.Clone(whole), items[i][:20]...)),
		"something else follows": pack(t, append(bytes.Clone(whole), 0xff, 0, 0)),
		"its sum is another":     append(pack(t, whole)[:len(pack(t, whole))-20], make([]byte, 20)...),
		"its checksum is":        bytes.Replace(pack(t, whole), binary.LittleEndian.AppendUint32(nil, uint32(len(whole))), make([]byte, 4), 1),
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, data)
			require.NotEmpty(t, slices.Collect(r.Damage()))
			next := journal.Seq(1)
			for s, err := range r.Scan(0) {
				require.NoError(t, err)
				require.Equal(t, next, s.ID)
				next++
			}
			if name != "the file is cut off" {
				require.EqualValues(t, 7, next)
			}
			require.Greater(t, next, journal.Seq(3))
		})
	}
}

// TestGarbageIsNotReadToItsEnd: neither what stands behind the last checkpoint nor what is no item, and no item, and so on.
func TestGarbageIsNotReadToItsEnd(t *testing.T) {
	items := told(t)
	for name, garbage := range map[string][]byte{
		"zeros": make([]byte, 1<<20), "a blob": append([]byte{0x5a, 0, 0x10, 0, 0}, make([]byte, 1<<20)...), "records": slices.Concat(items[1:]...),
	} {
		damage := damageOf(t, pack(t, slices.Concat(slices.Concat(items...), garbage)))
		require.Len(t, damage, 1, name)
		d, ok := errors.AsType[*bundle.DamageError](damage[0])
		require.True(t, ok)
		require.EqualValues(t, len(items)+1, d.Item)
		require.EqualValues(t, len(slices.Concat(items...)), d.Offset)
	}
	i := items.index(t, aRecord, 3)
	damage := damageOf(t, pack(t, slices.Concat(slices.Concat(items[:i]...), make([]byte, 1<<20), slices.Concat(items[i:]...))))
	require.ErrorIs(t, damage[len(damage)-1], bundle.ErrLimit)
}

func TestRecordThatCannotBeDecodedKeepsItsPlace(t *testing.T) {
	items := told(t)
	i := items.index(t, aRecord, 3) - 1
	for name, change := range map[string]func(item []byte) []byte{
		"unknown kind":  func(item []byte) []byte { return bytes.Replace(item, []byte("."), []byte("_"), 1) },
		"not canonical": func(item []byte) []byte { return slices.Concat(item[:2], []byte{0x18, 4}, item[3:]) },
		"four items":    func(item []byte) []byte { return slices.Concat(item[:1], []byte{0x84}, item[3:]) },
	} {
		t.Run(name, func(t *testing.T) {
			x := slices.Clone(items)
			x[i] = change(bytes.Clone(x[i]))
			r := open(t, pack(t, slices.Concat(x...)))
			require.Empty(t, slices.Collect(r.Damage()), "it is for the verification to say")
			n := journal.Seq(0)
			for s, err := range r.Scan(0) {
				require.NoError(t, err)
				n++
				require.Equal(t, n, s.ID)
				require.Equal(t, n == 4, s.Err != nil)
			}
			require.Equal(t, r.Header().Last, n)
			require.NotEmpty(t, judge(t, r).Faults)
		})
	}
}

func TestHeaderIsJudged(t *testing.T) {
	j := shop(t, "a").Journal
	some, other := canon.Sum([]byte("some")), canon.Sum([]byte("other"))
	for name, change := range map[string]func(h *bundle.Header){
		"a range backwards":    func(h *bundle.Header) { h.First, h.Last = h.Last, 1 },
		"no range":             func(h *bundle.Header) { h.First = 0 },
		"longer":               func(h *bundle.Header) { h.Last++ },
		"shorter":              func(h *bundle.Header) { h.Last-- },
		"a root":               func(h *bundle.Header) { h.Root = some },
		"no root":              func(h *bundle.Header) { h.First = 2 },
		"nodes":                func(h *bundle.Header) { h.Nodes = []journal.Hash{some} },
		"withheld by nobody":   func(h *bundle.Header) { h.Withheld = []journal.Hash{some} },
		"withheld and there":   func(h *bundle.Header) { h.Withheld = payloads(t, j) },
		"withheld nothing":     func(h *bundle.Header) { h.Withheld = []journal.Hash{{}} },
		"not sorted":           func(h *bundle.Header) { h.Withheld = []journal.Hash{some, other, some} },
		"another world":        func(h *bundle.Header) { h.World = "another" },
		"no world":             func(h *bundle.Header) { h.World = "" },
		"no key":               func(h *bundle.Header) { h.Keys = nil },
		"a key of nothing":     func(h *bundle.Header) { h.Keys = slices.Insert(h.Keys, 0, worldtest.Public(2)) },
		"keys that go nowhere": func(h *bundle.Header) { h.Keys = append(h.Keys, h.Keys...) },
	} {
		t.Run(name, func(t *testing.T) {
			items := told(t)
			h := headerOf(j, cut{})
			change(&h)
			items[0] = h.Item()
			require.NotEmpty(t, damageOf(t, pack(t, slices.Concat(items...))))
		})
	}
}

func TestOnlyBundlesAreOpened(t *testing.T) {
	header := told(t)[0]
	for name, data := range map[string][]byte{
		"nothing":        {},
		"no gzip":        []byte("a"),
		"an empty one":   pack(t, nil),
		"another item":   pack(t, []byte{0x80}),
		"another name":   pack(t, bytes.Replace(header, []byte("bundle"), []byte("bandle"), 1)),
		"a cut header":   pack(t, header[:40]),
		"a short header": pack(t, append([]byte{0x82}, header[1:21]...)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bundle.Open(bytes.NewReader(data), bundle.Options{})
			require.ErrorIs(t, err, bundle.ErrNotBundle)
		})
	}
	later := bytes.Clone(header)
	later[20] = 3
	_, err := bundle.Open(bytes.NewReader(pack(t, later)), bundle.Options{})
	require.ErrorIs(t, err, bundle.ErrVersion)
}

// A length is believed only as far as there are bytes.
func TestHugeLengthsCostNothing(t *testing.T) {
	header := told(t)[0]
	for name, item := range map[string]string{
		"a blob":     "\x5b\x00\x00\x00\x00\x07\xff\xff\xff",
		"a text":     "\x7b\x00\x00\x00\x00\x07\xff\xff\xff",
		"an array":   "\x9b\x00\x00\x00\x00\x07\xff\xff\xff\x00",
		"a map":      "\xbb\x00\x00\x00\x00\x01\xff\xff\xff\x00",
		"more bytes": "\x5b\xff\xff\xff\xff\xff\xff\xff\xff",
		"more items": "\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
		"more pairs": "\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		t.Run(name, func(t *testing.T) {
			data := pack(t, append(bytes.Clone(header), item...))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			damage := damageOf(t, data)
			runtime.ReadMemStats(&after)
			require.Len(t, damage, 1)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
		})
	}
}

// Whoever packs it differently and sums that up has not written a bundle either.
func TestPackingHasOneForm(t *testing.T) {
	items := slices.Concat(told(t)...)
	first := pack(t, items)
	first = first[:len(first)-58]
	for name, change := range map[string]func(){
		"as it is":   func() {},
		"a time":     func() { first[4]++ },
		"a checksum": func() { first[len(first)-8]++ },
		"a size":     func() { first[len(first)-4]++ },
	} {
		t.Run(name, func(t *testing.T) {
			whole := bytes.Clone(first)
			change()
			require.Equal(t, name != "as it is", len(damageOf(t, sumUp(first))) > 0)
			first = whole
		})
	}
}

func TestBundleMayBeLimited(t *testing.T) {
	items := told(t)
	data := pack(t, slices.Concat(items...))
	_, err := bundle.Open(bytes.NewReader(data), bundle.Options{MaxBytes: 1000})
	require.ErrorIs(t, err, bundle.ErrSize, "no verdict: whoever reads it allows no more")
}

// brokenReader fails in the middle.
type brokenReader struct{ *bytes.Reader }

var errDisk = errors.New("the disk is broken")

func (r brokenReader) Read(b []byte) (int, error) {
	if r.Len() < 500 {
		return 0, errDisk
	}
	return r.Reader.Read(b[:min(len(b), 100)])
}

func TestFileThatCannotBeReadIsNoDamage(t *testing.T) {
	data := pack(t, slices.Concat(told(t)...))
	_, err := bundle.Open(brokenReader{bytes.NewReader(data)}, bundle.Options{})
	require.ErrorIs(t, err, errDisk)
	require.NotErrorIs(t, err, bundle.ErrNotBundle)
}

// A manifest is needed when it is proposed, and again when it is applied.
func TestBlobThatComesAfterItsFirstRecordIsDamage(t *testing.T) {
	w := shop(t, "a")
	adopt(t, w)
	items := split(t, unpack(t, write(t, w.Journal, cut{})))
	before := func(kind journal.Kind) int {
		i := slices.IndexFunc(items, func(item []byte) bool {
			return item[0]&0xe0 == aRecord && bytes.Contains(item[:min(len(item), 40)], []byte(kind))
		})
		require.Positive(t, i, kind)
		return i
	}
	applied, proposed := before(journal.KindApplied), before(journal.KindProposed)
	blob := items[proposed-1]
	require.EqualValues(t, aBlob, blob[0]&0xe0)
	moved := tampered(slices.Delete(slices.Insert(slices.Clone(items), applied, blob), proposed-1, proposed))
	moved.at(t, applied)
	require.Empty(t, damageOf(t, pack(t, slices.Concat(items...))))
}
