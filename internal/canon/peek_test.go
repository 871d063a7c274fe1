package canon_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

func TestKindTellsWhatComesNext(t *testing.T) {
	for json, want := range map[string]canon.Kind{
		`null`: canon.KindNull, `true`: canon.KindBool, `1`: canon.KindInt, `-1`: canon.KindInt,
		`18446744073709551616`: canon.KindInt, `1.5`: canon.KindFloat, `1e300`: canon.KindFloat,
		`"a"`: canon.KindText, `[]`: canon.KindArray, `{}`: canon.KindMap,
	} {
		b, err := canon.FromJSON([]byte(json))
		require.NoError(t, err)
		r := canon.NewReader(b)
		require.Equal(t, want, r.Kind(), json)
		require.Zero(t, r.Offset())
	}
	require.Equal(t, canon.KindBytes, canon.NewReader([]byte{0x40}).Kind())
	for _, b := range [][]byte{nil, {0xf7}, {0xc1, 0}, {0xf8, 0x20}, {0xff}} {
		require.Equal(t, canon.KindNone, canon.NewReader(b).Kind())
	}
}

func TestIntReadsEverySize(t *testing.T) {
	for _, s := range []string{
		"0", "-1", "23", "24", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "-9223372036854775809",
		"18446744073709551615", "-18446744073709551616", "18446744073709551616", "-18446744073709551617", "123456789012345678901234567890",
	} {
		want, _ := new(big.Int).SetString(s, 10)
		r := canon.NewReader(canon.AppendBig(nil, want))
		small, wide := r.Int()
		require.NoError(t, r.Close(), s)
		require.Equal(t, want.IsInt64(), wide == nil, s)
		if wide == nil {
			wide = big.NewInt(small)
		}
		require.Zero(t, want.Cmp(wide), s)
	}
}

func TestIntAndFloatRefuseWhatIsNone(t *testing.T) {
	for _, b := range [][]byte{nil, {0x60}, {0xf6}, {0xc2, 0x41, 1}, {0x18, 1}, {0xc2, 0x49}} {
		r := canon.NewReader(b)
		r.Int()
		require.Error(t, r.Err())
	}
	for _, b := range [][]byte{nil, {0x60}, {0x01}, {0xf9, 0x80, 0}, {0xf9, 0x7e, 0}, {0xfa, 0x3f, 0x80, 0, 0}, {0xfb, 0}} {
		r := canon.NewReader(b)
		r.Float()
		require.Error(t, r.Err())
	}
}
