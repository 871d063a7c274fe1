package canon_test

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
)

func TestJSONKeepsValuesExactly(t *testing.T) {
	for text, hexed := range map[string]string{
		`0`: "00", `-0`: "00", `-1`: "20", `23`: "17",
		`18446744073709551615`:  "1bffffffffffffffff",
		`18446744073709551616`:  "c249010000000000000000",
		`-18446744073709551617`: "c349010000000000000000",
		`1.0`:                   "f93c00", `-0.0`: "f90000", `1e2`: "f95640", `1E-400`: "f90000", `0.1`: "fb3fb999999999999a",
		`"<&> é"`:  "663c263e20c3a9", // not HTML
		`"\u00fc"`: "62c3bc",
		`null`:     "f6", ` true `: "f5", `[]`: "80", `{}`: "a0",
		`{"bb":1,"a":[2,{}]}`: "a261618202a062626201",
		`{"":null}`:           "a160f6",
	} {
		t.Run(text, func(t *testing.T) {
			got, err := canon.FromJSON([]byte(text))
			require.NoError(t, err)
			require.Equal(t, hexed, hex.EncodeToString(got))
		})
	}
}

func TestToJSONIsReadableAndExact(t *testing.T) {
	for hexed, text := range map[string]string{
		"c349010000000000000000": `-18446744073709551617`,
		"f93c00":                 `1.0`,
		"fb444b1ae4d6e2ef50":     `1e+21`,
		"f90000":                 `0.0`,
		"4401020304":             `"AQIDBA=="`,
		"673c263e20c3a90a":       `"<&> é\n"`,
		"a261618202a062626201":   `{"a":[2,{}],"bb":1}`,
		"a162220082f4f5":         `{"\"\u0000":[false,true]}`,
		"63e280a8":               `"\u2028"`,
	} {
		t.Run(text, func(t *testing.T) {
			got, err := canon.Raw(unhex(t, hexed)).MarshalJSON()
			require.NoError(t, err)
			require.Equal(t, text, string(got))
		})
	}
	got, err := canon.Raw(nil).MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, "null", string(got))
}

func TestFromJSONRefusesFaultsWithTheirPath(t *testing.T) {
	deep := strings.Repeat("[", canon.MaxDepth+1) + strings.Repeat("]", canon.MaxDepth+1)
	for text, path := range map[string]string{
		`{"items":[0,{"price":1e999}]}`: "$.items[1].price:",
		`{"a":{"b":1,"c":2,"b":3}}`:     "$.a:",
		`[1,{"a":tru}]`:                 "$[1].a:",
		`[1,`:                           "$[1]:",
		`[1,]`:                          "$[1]:",
		`{"a":1`:                        "$:",
		`{"a" 1}`:                       "$.a:",
		`{1:2}`:                         "$:",
		`[1}`:                           "$:",
		`NaN`:                           "$:",
		`01`:                            "more than one",
		`1 2`:                           "more than one",
		`{} x`:                          "more than one",
		``:                              "$:",
		deep:                            strings.Repeat("[0]", canon.MaxDepth) + ": nested",
		"\"a\xff\"":                     "offset 2:",
		`{"a":["\ud800"]}`:              `$.a[0]: \ud800 is half of a surrogate pair, near byte 13`,
		`"\udc00\ud800"`:                `$: \udc00 is half of a surrogate pair, near byte 7`,
		`{"\ud800":1}`:                  "$: ",
		`["\ud800\u0041"]`:              "$[0]: ",
		"\xef\xbb\xbf{}":                "offset 0: text begins with a byte order mark",
		"\xff\xfe{\x00}\x00":            "offset 0: text is UTF-16",
		"\xfe\xff\x00{\x00}":            "offset 0: text is UTF-16",
		"\x00{\x00}":                    "offset 0: text is UTF-16",
		"{\x00}\x00":                    "offset 0: text is UTF-16",
	} {
		t.Run(text, func(t *testing.T) {
			got, err := canon.FromJSON([]byte(text))
			require.ErrorContains(t, err, path)
			require.Nil(t, got)
		})
	}
	_, err := canon.FromJSON([]byte(`{"a":[`))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	var syntax *json.SyntaxError
	_, err = canon.FromJSON([]byte(`{"a":x}`))
	require.ErrorAs(t, err, &syntax)
}

// A long key above many values must not be copied for each of them.
func TestFromJSONIsLinear(t *testing.T) {
	in := []byte(`{"` + strings.Repeat("k", 1<<20) + `":[` + strings.Repeat("1,", 1<<18) + `1]}`)
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			_, err := canon.FromJSON(in)
			require.NoError(b, err)
		}
	})
	require.Less(t, result.AllocedBytesPerOp(), int64(64*len(in)))
}

// An integer of 4 MB took half a minute to make, whoever had sent it.
func TestIntegersFromOutsideHaveALimit(t *testing.T) {
	longest := strings.Repeat("7", canon.MaxDigits)
	for _, n := range []string{longest, "-" + longest} {
		got, err := canon.FromJSON([]byte(n))
		require.NoError(t, err)
		text, err := canon.ToJSON(got)
		require.NoError(t, err)
		require.Equal(t, n, string(text))
	}
	for text, fault := range map[string]string{
		`{"items":[0,{"price":` + longest + `7}]}`: "canon: $.items[1].price: an integer of 4097 digits, more than 4096",
		"-" + strings.Repeat("7", 4<<20):           "canon: $: an integer of 4194304 digits, more than 4096",
	} {
		got, err := canon.FromJSON([]byte(text))
		require.EqualError(t, err, fault)
		require.Nil(t, got)
	}
	_, err := canon.FromJSON([]byte(longest + "7.5")) // a float, which costs what its digits do
	require.Error(t, err)
	_, err = canon.FromJSON([]byte("0." + longest + "7"))
	require.NoError(t, err)
}

func TestPrintedIntegersReadBackAtAnyLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := new(big.Int)
		n.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 8<<10).Draw(t, "bytes"))
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		got, err := canon.FromPrintedJSON([]byte(n.String()))
		require.NoError(t, err)
		require.Equal(t, canon.Raw(canon.AppendBig(nil, n)), got)
	})
	for _, digits := range []int{1023, 1024, 1025, 2047, 2048, 2049, 5000, 1 << 16} {
		text := "1" + strings.Repeat("0", digits-1)
		n, err := canon.FromPrintedJSON([]byte(text))
		require.NoError(t, err)
		back, err := canon.ToJSON(n)
		require.NoError(t, err)
		require.Equal(t, text, string(back))
	}
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := canon.Marshal(tree(4, false).Draw(t, "value"))
		require.NoError(t, err)
		text, err := canon.ToJSON(b)
		require.NoError(t, err)
		require.True(t, json.Valid(text))
		back, err := canon.FromJSON(text)
		require.NoError(t, err)
		require.Equal(t, canon.Raw(b), back)
	})
}

// FuzzJSON: what FromJSON takes is JSON, its result is canonical, and the JSON
// of that is a fixed point.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,-0.0,"x"],"b":null}`, `18446744073709551616`, `"\ud800"`, `[1,]`, `{"a":1,"a":2}`, `1e999`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := canon.FromJSON(text)
		if err != nil {
			return
		}
		require.True(t, json.Valid(text))
		require.NoError(t, canon.Valid(b))
		out, err := canon.ToJSON(b)
		require.NoError(t, err)
		again, err := canon.FromJSON(out)
		require.NoError(t, err)
		require.Equal(t, b, again)
		printed, err := canon.FromPrintedJSON(text)
		require.NoError(t, err)
		require.Equal(t, b, printed)
	})
}
