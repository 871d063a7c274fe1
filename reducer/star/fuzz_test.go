package star_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// FuzzReduce runs any program: it compiles or is refused, and its steps end,
// the same way on two instances.
func FuzzReduce(f *testing.F) {
	f.Add(counter)
	for _, body := range same {
		f.Add("def reduce(ctx, state, event):\n    " + body + "\n")
	}
	for _, body := range hostile {
		f.Add("def reduce(ctx, state, event):\n    " + body + "\n")
	}
	for body := range failing {
		f.Add("def reduce(ctx, state, event):\n    " + body + "\n")
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := star.Compile(star.Version, "fuzz.star", []byte(source))
		if err != nil {
			var e *star.SyntaxError
			require.ErrorAs(t, err, &e)
			require.NotContains(t, e.Msg, "interpreter failed")
			return
		}
		a, errA := p.Reducer()
		b, errB := p.Reducer()
		require.Equal(t, errA, errB)
		if errA != nil {
			return
		}
		in := input(t, `{"n": 1, "list": [1, "a"]}`, `{"s": "text", "n": 7}`)
		in.Limits = manifest.ReducerLimits{Gas: 20000, Value: 1 << 16}
		var outA, outB reducer.Output
		errA, errB = a.Reduce(in, &outA), b.Reduce(in, &outB)
		require.Equal(t, errA, errB)
		require.Equal(t, outA.Gas, outB.Gas)
		if errA != nil {
			require.NotContains(t, errA.Error(), "interpreter failed")
		} else {
			require.Equal(t, outA, outB)
			require.LessOrEqual(t, outA.Gas, in.Limits.Gas)
		}
	})
}

// FuzzConvert holds values to the bytes that they came from.
func FuzzConvert(f *testing.F) {
	for _, json := range []string{`{"a": [1, -1, 1.5, "x", null, true]}`, `[18446744073709551616, 1e300, {}]`, `"é"`} {
		f.Add([]byte(data(f, json)))
	}
	f.Add([]byte{0xc2, 0x49, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0x82, 0x43, 1, 2, 3, 0xf9, 0x3c, 0})
	p, err := star.Compile(star.Version, "fuzz.star", []byte("def reduce(ctx, state, event):\n    ctx.emit(\"a\", event.data)\n    return state\n"))
	require.NoError(f, err)
	r, err := p.Reducer()
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, b []byte) {
		if canon.Valid(b) != nil || string(b) == canon.Null {
			return
		}
		in := &reducer.Input{State: b, Event: reducer.Event{Name: "a", Data: b}}
		in.Limits = manifest.ReducerLimits{Gas: 1 << 40, Value: 1 << 30, State: 1 << 30}
		var out reducer.Output
		require.NoError(t, r.Reduce(in, &out))
		require.Equal(t, b, []byte(out.State))
		require.Equal(t, b, []byte(out.Events[0].Data))
	})
}
