package reducer

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
)

type plain struct {
	Name  string `cbor:"name"`
	Count uint64 `cbor:"count"`
	Depth int    `cbor:"depth"`
	Up    int64  `cbor:"up"`
	Some  uint   `cbor:"some"`
	Open  bool   `cbor:"open"`
}

func TestFlatEqualsTheGeneralCodec(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := plain{
			Name: rapid.String().Draw(rt, "name"), Count: rapid.Uint64().Draw(rt, "count"), Depth: rapid.Int().Draw(rt, "depth"),
			Up: rapid.Int64().Draw(rt, "up"), Some: rapid.Uint().Draw(rt, "some"), Open: rapid.Bool().Draw(rt, "open"),
		}
		want, err := canon.Marshal(v)
		require.NoError(rt, err)
		got, ok := flatOf(&v).append(nil)
		require.True(rt, ok)
		require.Equal(rt, want, got)
		var back plain
		if flatOf(&back).readMap(want) {
			require.Equal(rt, v, back)
		} else {
			require.True(rt, v.Depth < 0 || v.Up < 0, "only negative numbers are left to the general codec")
		}
	})
}

func TestFlatLeavesTheRestToTheGeneralCodec(t *testing.T) {
	for name, ptr := range map[string]any{
		"a list":    new(struct{ A []int }),
		"a renamed": new(struct{ A int }),
		"an option": new(struct {
			A int `cbor:"a,omitempty"`
		}),
		"a nested": new(struct {
			A plain `cbor:"a"`
		}),
		"a float": new(struct {
			A float64 `cbor:"a"`
		}),
		"an unexported": new(struct {
			a int `cbor:"a"`
		}),
		"a named type": new(struct {
			A canon.Raw `cbor:"a"`
		}),
		"a number": new(int),
		"the same name twice": new(struct {
			A int `cbor:"a"`
			B int `cbor:"a"`
		}),
	} {
		require.Nil(t, flatOf(ptr), name)
	}
	var v plain
	for name, data := range map[string]any{
		"a field less":    map[string]any{"name": "x"},
		"another type":    map[string]any{"name": 1, "count": 1, "depth": 1, "up": 1, "some": 1, "open": true},
		"another name":    map[string]any{"nome": "x", "count": 1, "depth": 1, "up": 1, "some": 1, "open": true},
		"not a map":       7,
		"a negative uint": map[string]any{"name": "x", "count": -1, "depth": 1, "up": 1, "some": 1, "open": true},
	} {
		b, err := canon.Marshal(data)
		require.NoError(t, err)
		require.False(t, flatOf(&v).readMap(b), name)
	}
	v.Name = "\xff"
	_, ok := flatOf(&v).append(nil)
	require.False(t, ok)
}

func FuzzFlat(f *testing.F) {
	b, err := canon.Marshal(plain{Name: "a"})
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		var v, w plain
		if !flatOf(&v).readMap(data) {
			return
		}
		require.NoError(t, canon.Unmarshal(data, &w))
		require.Equal(t, w, v)
	})
}
