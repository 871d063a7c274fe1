package canon_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func bigInt(t *testing.T, s string) *big.Int {
	t.Helper()
	n, ok := new(big.Int).SetString(s, 10)
	require.True(t, ok)
	return n
}

// The examples of RFC 8949 appendix A that lie in the data model.
func TestVectorsOfRFC8949(t *testing.T) {
	for hexed, value := range map[string]any{
		"00": int64(0), "01": int64(1), "0a": int64(10), "17": int64(23), "1818": int64(24), "1819": int64(25),
		"1864": int64(100), "1903e8": int64(1000), "1a000f4240": int64(1000000),
		"1b000000e8d4a51000":     int64(1000000000000),
		"1bffffffffffffffff":     bigInt(t, "18446744073709551615"),
		"c249010000000000000000": bigInt(t, "18446744073709551616"),
		"3bffffffffffffffff":     bigInt(t, "-18446744073709551616"),
		"c349010000000000000000": bigInt(t, "-18446744073709551617"),
		"20":                     int64(-1), "29": int64(-10), "3863": int64(-100), "3903e7": int64(-1000),
		"3b7fffffffffffffff": int64(math.MinInt64), "1b7fffffffffffffff": int64(math.MaxInt64),
		"f90000": 0.0, "f93c00": 1.0, "fb3ff199999999999a": 1.1, "f93e00": 1.5, "f97bff": 65504.0,
		"fa47c35000": 100000.0, "fa7f7fffff": 3.4028234663852886e+38, "fb7e37e43c8800759c": 1.0e+300,
		"f90001": 5.960464477539063e-8, "f90400": 0.00006103515625, "f9c400": -4.0, "fbc010666666666666": -4.1,
		"f4": false, "f5": true, "f6": nil,
		"40": []byte{}, "4401020304": []byte{1, 2, 3, 4},
		"60": "", "6161": "a", "6449455446": "IETF", "62225c": "\"\\", "62c3bc": "\u00fc", "63e6b0b4": "\u6c34",
		"64f0908591": "\U00010151",
		"80":         []any{}, "83010203": []any{int64(1), int64(2), int64(3)},
		"8301820203820405": []any{int64(1), []any{int64(2), int64(3)}, []any{int64(4), int64(5)}},
		"98190102030405060708090a0b0c0d0e0f101112131415161718181819": upTo(25),
		"a0":                 map[string]any{},
		"a26161016162820203": map[string]any{"a": int64(1), "b": []any{int64(2), int64(3)}},
		"826161a161626163":   []any{"a", map[string]any{"b": "c"}},
		"a56161614161626142616361436164614461656145": map[string]any{"a": "A", "b": "B", "c": "C", "d": "D", "e": "E"},
		// Shorter keys come first: the order is that of the encoded bytes.
		"a3617a0262616101626162f4": map[string]any{"aa": int64(1), "ab": false, "z": int64(2)},
	} {
		t.Run(hexed, func(t *testing.T) {
			want := unhex(t, hexed)
			got, err := canon.Marshal(value)
			require.NoError(t, err)
			require.Equal(t, hexed, hex.EncodeToString(got))
			require.NoError(t, canon.Valid(want))
			back, err := canon.Decode(want)
			require.NoError(t, err)
			require.Equal(t, value, back)
		})
	}
}

func upTo(n int64) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = int64(i + 1)
	}
	return out
}

func TestNegativeZeroIsWrittenAsZero(t *testing.T) {
	minus := math.Copysign(0, -1)
	type state struct {
		F float64   `cbor:"f"`
		S []float32 `cbor:"s"`
	}
	raw := canon.Raw{0xf9, 0x80, 0x00}
	for name, pair := range map[string][2]any{
		"alone":  {minus, 0.0},
		"nested": {[]any{map[string]any{"x": minus}, "s"}, []any{map[string]any{"x": 0.0}, "s"}},
		"struct": {state{minus, []float32{float32(minus)}}, state{0, []float32{0}}},
		"raw":    {raw, canon.Raw{0xf9, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := canon.Marshal(pair[0])
			require.NoError(t, err)
			want, err := canon.Marshal(pair[1])
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
	require.Equal(t, canon.Raw{0xf9, 0x80, 0x00}, raw, "the caller's bytes are not touched")
}

func TestMarshalRefusesWhatHasNoCanonicalForm(t *testing.T) {
	for name, v := range map[string]any{
		"NaN":           math.NaN(),
		"infinity":      []any{math.Inf(-1)},
		"NaN in struct": struct{ F float32 }{float32(math.NaN())},
		"integer keys":  map[int]string{1: "a"},
		"not UTF-8":     "\xff",
		"channel":       make(chan int),
		"faulty Raw":    canon.Raw{0x18, 0x01},
		"unsorted Raw":  []any{canon.Raw{0xa2, 0x61, 'b', 1, 0x61, 'a', 2}},
		"two items":     canon.Raw{1, 2},
		"too deep":      canon.Raw(nest(canon.MaxDepth + 1)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := canon.Marshal(v)
			require.Error(t, err)
			require.Error(t, canon.MarshalTo(new(bytes.Buffer), v))
		})
	}
}

func TestMarshalToAppends(t *testing.T) {
	buf := bytes.NewBufferString("before")
	require.NoError(t, canon.MarshalTo(buf, map[string]any{"b": math.Copysign(0, -1), "a": 1}))
	require.Equal(t, "before\xa2aa\x01ab\xf9\x00\x00", buf.String())
}

// What Unmarshal lets through encodes to the bytes that came in.
func TestUnmarshalRefusesWhatItWouldNotWrite(t *testing.T) {
	type format struct {
		A int      `cbor:"a"`
		F float64  `cbor:"f,omitempty"`
		L []string `cbor:"l,omitempty"`
	}
	var ok format
	require.NoError(t, canon.Unmarshal(unhex(t, "a1616101"), &ok))
	require.Equal(t, format{A: 1}, ok)
	for name, fault := range map[string]struct {
		hexed  string
		offset int
	}{
		"missing field":         {"a0", 0},
		"null for a number":     {"a16161f6", 3},
		"integer for a float":   {"a2616101616601", 6},
		"an empty omitted list": {"a2616101616c80", 0},
		"trailing bytes":        {"a161610100", 4},
		"long form":             {"a161611801", 3},
	} {
		t.Run(name, func(t *testing.T) {
			var at *canon.SyntaxError
			require.ErrorAs(t, canon.Unmarshal(unhex(t, fault.hexed), new(format)), &at)
			require.Equal(t, fault.offset, at.Offset)
		})
	}
	for name, hexed := range map[string]string{"unknown key": "a2616101617801", "key in other case": "a1614101", "text for a number": "a161616131"} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, canon.Unmarshal(unhex(t, hexed), new(format)))
		})
	}
}

// Data of users is converted where no value is lost; names are exact.
func TestUnmarshalTrustedConvertsButDoesNotGuess(t *testing.T) {
	type state struct {
		F float64 `cbor:"f"`
		S string  `cbor:"s"`
	}
	var s state
	require.NoError(t, canon.UnmarshalTrusted(unhex(t, "a1616602"), &s))
	require.Equal(t, state{F: 2}, s)
	for name, hexed := range map[string]string{"key in other case": "a1614602", "unknown key": "a1617802", "float for text": "a16173f93c00"} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, canon.UnmarshalTrusted(unhex(t, hexed), &s))
		})
	}
}

func TestRawIsCopiedOnDecoding(t *testing.T) {
	type holder struct {
		Data canon.Raw `cbor:"data"`
	}
	in := unhex(t, "a16464617461820102")
	var h holder
	require.NoError(t, canon.Unmarshal(in, &h))
	in[7] = 0
	require.Equal(t, canon.Raw{0x82, 1, 2}, h.Data)
	empty, err := canon.Marshal(holder{})
	require.NoError(t, err)
	require.Equal(t, unhex(t, "a16464617461f6"), empty)
	require.Equal(t, []byte{0xf6, 0x82, 1, 2}, canon.AppendRaw(canon.AppendRaw(nil, nil), h.Data))
}

func TestDeepestNestingIsAcceptedEverywhere(t *testing.T) {
	deep := nest(canon.MaxDepth)
	require.NoError(t, canon.Valid(deep))
	v, err := canon.Decode(deep)
	require.NoError(t, err)
	back, err := canon.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, deep, back)
	text, err := canon.ToJSON(deep)
	require.NoError(t, err)
	again, err := canon.FromJSON(text)
	require.NoError(t, err)
	require.Equal(t, canon.Raw(deep), again)
}

// nest returns n arrays in each other with a bignum, the deepest-nesting
// scalar, at the bottom.
func nest(n int) []byte {
	return append(bytes.Repeat([]byte{0x81}, n), "\xc2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00"...)
}

// tree draws a value of the data model; bytes says whether byte strings occur,
// which JSON cannot tell from text.
func tree(depth int, byteStrings bool) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := []string{"null", "bool", "int", "big", "float", "text"}
		if byteStrings {
			kinds = append(kinds, "bytes")
		}
		if depth > 0 {
			kinds = append(kinds, "array", "map")
		}
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "bool":
			return rapid.Bool().Draw(t, "bool")
		case "int":
			return rapid.Int64().Draw(t, "int")
		case "big":
			n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 9, 20).Draw(t, "magnitude"))
			n.SetBit(n, 70, 1)
			if rapid.Bool().Draw(t, "negative") {
				n.Neg(n)
			}
			return n
		case "float":
			f := rapid.OneOf(rapid.Float64(), rapid.Custom(func(t *rapid.T) float64 {
				return float64(rapid.Float32().Draw(t, "f32"))
			}), rapid.SampledFrom([]float64{0, 1, 0.5, 65504, 65505, 1e21, 5e-324, 6e-8})).Draw(t, "float")
			if f == 0 {
				return 0.0
			}
			return f
		case "text":
			return rapid.String().Draw(t, "text")
		case "bytes":
			return rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		case "array":
			return rapid.SliceOfN(tree(depth-1, byteStrings), 0, 5).Draw(t, "array")
		case "map":
			return rapid.MapOfN(rapid.String(), tree(depth-1, byteStrings), 0, 5).Draw(t, "map")
		}
		return nil
	})
}

func TestDecodeIsTheInverseOfMarshal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := tree(4, true).Draw(t, "value")
		b, err := canon.Marshal(v)
		require.NoError(t, err)
		require.NoError(t, canon.Valid(b))
		back, err := canon.Decode(b)
		require.NoError(t, err)
		require.Equal(t, v, back)
	})
}

func TestAppendAgreesWithMarshal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		n := rapid.Int64().Draw(t, "n")
		big := new(big.Int).Mul(big.NewInt(n), big.NewInt(rapid.Int64().Draw(t, "m")))
		s := rapid.String().Draw(t, "s")
		want, err := canon.Marshal([]any{f, n, uint64(n), big, s, []byte(s), true, nil, map[string]any{s: f}})
		require.NoError(t, err)

		got := canon.AppendArray(nil, 9)
		got, err = canon.AppendFloat(got, f)
		require.NoError(t, err)
		got = canon.AppendUint(canon.AppendInt(got, n), uint64(n))
		got = canon.AppendText(canon.AppendBig(got, big), s)
		got = canon.AppendNull(canon.AppendBool(canon.AppendBytes(got, []byte(s)), true))
		got = canon.AppendText(canon.AppendMap(got, 1), s)
		got, err = canon.AppendFloat(got, f)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestAppendFloatRefusesWhatIsNotFinite(t *testing.T) {
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := canon.AppendFloat(nil, f)
		require.ErrorIs(t, err, canon.ErrNotFinite)
	}
}

func TestHashHasOneTextAndOneCBORForm(t *testing.T) {
	h := canon.Sum([]byte("abc"))
	const text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2
	require.Equal(t, text, h.String())
	require.False(t, h.IsZero())

	parsed, err := canon.ParseHash(text)
	require.NoError(t, err)
	require.Equal(t, h, parsed)
	printed, err := json.Marshal(h)
	require.NoError(t, err)
	require.Equal(t, `"`+text+`"`, string(printed))
	parsed = canon.Hash{}
	require.NoError(t, json.Unmarshal(printed, &parsed))
	require.Equal(t, h, parsed)
	b, err := canon.Marshal(h)
	require.NoError(t, err)
	require.Equal(t, "5820"+text, hex.EncodeToString(b))
	var back canon.Hash
	require.NoError(t, canon.Unmarshal(b, &back))
	require.Equal(t, h, back)

	for _, bad := range []string{"", text[1:], text + "00", strings.Replace(text, "b", "g", 1)} {
		_, err := canon.ParseHash(bad)
		require.Error(t, err)
		require.Error(t, back.UnmarshalText([]byte(bad)))
	}
	require.Error(t, canon.Unmarshal(unhex(t, "43010203"), &back))
}

func TestUnknownFieldIsNamed(t *testing.T) {
	var v struct {
		A int `cbor:"a"`
		B struct {
			C int `cbor:"c"`
		} `cbor:"b"`
	}
	for data, name := range map[string]string{`{"a": 1, "zz": 2}`: `"zz"`, `{"b": {"d": 1}}`: "unknown field"} {
		b, err := canon.FromJSON([]byte(data))
		require.NoError(t, err)
		require.ErrorContains(t, canon.UnmarshalTrusted(b, &v), name)
	}
}
