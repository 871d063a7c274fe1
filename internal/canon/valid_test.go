package canon_test

import (
	"bytes"
	"math"
	"math/big"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// refused holds bytes outside the format and the offset of their fault.
var refused = []struct {
	name, hexed string
	offset      int
}{
	{"empty input", "", 0},
	{"trailing byte", "0100", 1},
	{"trailing item", "a0a0", 1},
	{"truncated head", "19ff", 0},
	{"truncated text", "6261", 1},
	{"truncated bytes", "8142ff", 2},
	{"truncated array", "8201", 0},
	{"truncated map", "a2616101", 0},
	{"map without its value", "a1626161", 4},
	{"array of 2^64-1 items", "9bffffffffffffffff", 0},
	{"map of 2^63 pairs", "bb8000000000000000", 0},
	{"text of 2^64-1 bytes", "7bffffffffffffffff", 9},
	{"reserved head 28", "1c", 0},
	{"reserved head 30", "811e", 1},
	{"indefinite bytes", "5f4101ff", 0},
	{"indefinite text", "7f6161ff", 0},
	{"indefinite array", "9f01ff", 0},
	{"indefinite map", "81bf616101ff", 1},
	{"break", "ff", 0},
	{"10 in two bytes", "180a", 0},
	{"23 in two bytes", "82001817", 2},
	{"255 in three bytes", "1900ff", 0},
	{"65535 in five bytes", "1a0000ffff", 0},
	{"2^32-1 in nine bytes", "1b00000000ffffffff", 0},
	{"-1 in two bytes", "3800", 0},
	{"text with a long head", "780161", 0},
	{"bytes with a long head", "580101", 0},
	{"array with a long head", "980101", 0},
	{"map with a long head", "b801616101", 0},
	{"keys out of order", "a2616201616102", 4},
	{"long key before a short one", "a262616101616202", 5},
	{"duplicate key", "a2616101616102", 4},
	{"nested duplicate key", "81a2616101616102", 5},
	{"integer key", "a10102", 1},
	{"bytes key", "a1416101", 1},
	{"null key", "a1f601", 1},
	{"text that is not UTF-8", "8161ff", 1},
	{"text with a surrogate", "63eda080", 0},
	{"key that is not UTF-8", "a161ff01", 1},
	{"undefined", "f7", 0},
	{"simple value 16", "f0", 0},
	{"simple value 255", "f8ff", 0},
	{"false in two bytes", "f814", 0},
	{"NaN", "f97e00", 0},
	{"NaN in 32 bits", "fa7fc00000", 0},
	{"NaN in 64 bits", "fb7ff8000000000000", 0},
	{"infinity", "f97c00", 0},
	{"negative infinity in 32 bits", "faff800000", 0},
	{"negative zero", "81f98000", 1},
	{"negative zero in 64 bits", "fb8000000000000000", 0},
	{"0.0 in 32 bits", "fa00000000", 0},
	{"1.5 in 32 bits", "fa3fc00000", 0},
	{"1.5 in 64 bits", "fb3ff8000000000000", 0},
	{"100000.0 in 64 bits", "fb40f86a0000000000", 0},
	{"smallest half in 32 bits", "fa33800000", 0},
	{"time tag", "c11a514b67b0", 0},
	{"self-described", "d9d9f700", 0},
	{"bignum of nothing", "c240", 0},
	{"bignum of 64 bits", "c248ffffffffffffffff", 0},
	{"negative bignum of 64 bits", "c348ffffffffffffffff", 0},
	{"bignum with leading zero", "81c24a00010000000000000000", 1},
	{"bignum of text", "c2616a", 1},
	{"bignum tag with a long head", "d80249010000000000000000", 0},
	{"bignum cut off", "c2", 1},
}

func TestValidNamesTheOffsetOfEveryNonCanonicalForm(t *testing.T) {
	for _, bad := range refused {
		t.Run(bad.name, func(t *testing.T) {
			data := unhex(t, bad.hexed)
			var at *canon.SyntaxError
			require.ErrorAs(t, canon.Valid(data), &at)
			require.Equal(t, bad.offset, at.Offset, at.Reason)
			require.NotEmpty(t, at.Reason)
			_, err := canon.Decode(data)
			require.ErrorAs(t, err, &at)
			_, err = canon.ToJSON(data)
			require.ErrorAs(t, err, &at)
			var v any
			require.ErrorAs(t, canon.Unmarshal(data, &v), &at)
		})
	}
}

func TestValidBoundsDepth(t *testing.T) {
	for _, open := range []string{"\x81", "\xa1\x60"} {
		deep := bytes.Repeat([]byte(open), canon.MaxDepth)
		require.NoError(t, canon.Valid(append(deep, 0)))
		deeper := append(bytes.Repeat([]byte(open), canon.MaxDepth), 0x80) // an empty array at depth 65
		var at *canon.SyntaxError
		require.ErrorAs(t, canon.Valid(deeper), &at)
		require.Equal(t, len(deeper)-1, at.Offset)
		_, err := canon.ToJSON(deeper)
		require.ErrorAs(t, err, &at)
	}
	require.Error(t, canon.Valid(bytes.Repeat([]byte{0x81}, 1<<20)))
}

func TestReaderTakesItemsInOrderAndKeepsItsFirstError(t *testing.T) {
	in := unhex(t, "8701426869626869f5f6a1616b8102f93c00")
	r := canon.NewReader(in)
	r.ArrayOf(7)
	require.Equal(t, uint64(1), r.Uint())
	require.Equal(t, []byte("hi"), r.Bytes())
	require.Equal(t, []byte("hi"), r.TextBytes())
	require.True(t, r.Bool())
	require.True(t, r.Null())
	require.Equal(t, 1, r.Map())
	require.Equal(t, "k", r.Text())
	require.Equal(t, canon.Raw{0x81, 2}, r.Raw())
	require.False(t, r.Null())
	require.Equal(t, canon.Raw{0xf9, 0x3c, 0}, r.Raw())
	require.Equal(t, len(in), r.Offset())
	require.NoError(t, r.Close())

	for name, read := range map[string]func(*canon.Reader){
		"uint":    func(r *canon.Reader) { r.Uint() },
		"bytes":   func(r *canon.Reader) { r.Bytes() },
		"text":    func(r *canon.Reader) { r.Text() },
		"bool":    func(r *canon.Reader) { r.Bool() },
		"map":     func(r *canon.Reader) { r.Map() },
		"arrayOf": func(r *canon.Reader) { r.ArrayOf(6) },
		"left":    func(*canon.Reader) {},
	} {
		t.Run(name, func(t *testing.T) {
			r := canon.NewReader(in)
			read(r)
			var first, later *canon.SyntaxError
			require.ErrorAs(t, r.Close(), &first)
			require.Zero(t, first.Offset)
			r.Raw()
			r.Text()
			require.ErrorAs(t, r.Err(), &later)
			require.Same(t, first, later)
		})
	}
}

func TestLookupReadsOnlyTheWay(t *testing.T) {
	data, err := canon.FromJSON([]byte(`{"a":{"b":[1,2],"c":null},"z":1}`))
	require.NoError(t, err)
	item, err := canon.Lookup(data, "a", "b")
	require.NoError(t, err)
	require.Equal(t, canon.Raw{0x82, 1, 2}, item)
	all, err := canon.Lookup(data)
	require.NoError(t, err)
	require.Equal(t, data, all)
	for _, path := range [][]string{{"b"}, {"a", "b", "c"}, {"a", "c", "d"}, {""}} {
		_, err := canon.Lookup(data, path...)
		require.ErrorIs(t, err, canon.ErrNotFound)
	}
	_, err = canon.Lookup(nil, "a")
	require.ErrorIs(t, err, canon.ErrNotFound)
}

// FuzzValid holds Valid against the library: canonical is what the library
// decodes into the data model and encodes back to the same bytes.
func FuzzValid(f *testing.F) {
	for _, bad := range refused {
		f.Add(unhex(f, bad.hexed))
	}
	for _, good := range []string{"f6", "c349010000000000000000", "a26161016162820203", "fb3ff199999999999a", "f90001", "fa33000000"} {
		f.Add(unhex(f, good))
	}
	enc, err := cbor.EncOptions{
		Sort: cbor.SortCoreDeterministic, ShortestFloat: cbor.ShortestFloat16, BigIntConvert: cbor.BigIntConvertShortest,
	}.EncMode()
	require.NoError(f, err)
	dec, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 256, BigIntDec: cbor.BigIntDecodePointer,
		DefaultMapType: reflect.TypeFor[map[any]any](),
	}.DecMode()
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		err := canon.Valid(data)
		var v any
		libErr := dec.Unmarshal(data, &v)
		want := libErr == nil && inModel(v, canon.MaxDepth)
		if want {
			back, encErr := enc.Marshal(v)
			want = encErr == nil && bytes.Equal(back, data)
		}
		require.Equal(t, want, err == nil, "Valid: %v; library: %v, %#v", err, libErr, v)
		if err != nil {
			var at *canon.SyntaxError
			require.ErrorAs(t, err, &at)
			require.LessOrEqual(t, at.Offset, len(data))
			return
		}
		value, err := canon.Decode(data)
		require.NoError(t, err)
		back, err := canon.Marshal(value)
		require.NoError(t, err)
		require.Equal(t, data, back)
	})
}

// inModel reports whether the library's value lies in the data model.
func inModel(v any, depth int) bool {
	switch v := v.(type) {
	case nil, bool, uint64, int64, *big.Int, big.Int, []byte:
		return true
	case string:
		return utf8.ValidString(v)
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0) && (v != 0 || !math.Signbit(v))
	case []any:
		for _, e := range v {
			if depth == 0 || !inModel(e, depth-1) {
				return false
			}
		}
		return depth > 0
	case map[any]any:
		for k, e := range v {
			if _, ok := k.(string); !ok || !inModel(e, depth-1) {
				return false
			}
		}
		return depth > 0
	}
	return false
}
