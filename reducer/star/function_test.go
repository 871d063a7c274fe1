package star_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

var most = star.Most{Bytes: 1 << 20, Name: "limits.most"}

func functionOf(t testing.TB, source string) *star.Instance {
	t.Helper()
	f, err := star.CompileFunction(star.Version, reducer.Code{File: "m.star", Source: []byte(source)}, "measure", "cells", "tick")
	require.NoError(t, err)
	i, err := f.Instance(manifest.ReducerLimits{})
	require.NoError(t, err)
	return i
}

// three returns three cells; the reading of one fails after so many, where there are as many.
func three(t testing.TB, fails int, broken error) star.Arg {
	t.Helper()
	var states []reducer.Data
	for _, text := range []string{`{"coins": 1}`, `{"coins": 2}`, `{"coins": 4}`} {
		data, err := canon.FromJSON([]byte(text))
		require.NoError(t, err)
		states = append(states, data)
	}
	return star.OfCells(func() (star.NextCell, func()) {
		i := 0
		return func() (string, reducer.Data, bool, error) {
			if i++; i == fails {
				return "", nil, false, broken
			}
			if i > len(states) {
				return "", nil, false, nil
			}
			return []string{"agent/a", "agent/b", "bank/c"}[i-1], states[i-1], true, nil
		}, func() {}
	})
}

func tick(t testing.TB, n uint64) star.Arg {
	t.Helper()
	return star.OfData("tick", canon.AppendUint(nil, n))
}

func TestFunctionsGoThroughCells(t *testing.T) {
	i := functionOf(t, `
def measure(cells, tick):
    total = sum([c.state["coins"] for c in cells if c.reducer == "agent"])
    last = [c.id for c in cells][-1]
    return {"total": total + tick, "last": last, "keys": sorted([c.key for c in cells], reverse = True)}

def sum(of):
    n = 0
    for x in of:
        n += x
    return n
`)
	for range 2 { // the second in the memory of the first
		out, err := i.Call(manifest.ReducerLimits{}, most, three(t, 0, nil), tick(t, 10))
		require.NoError(t, err)
		text, err := canon.ToJSON(out)
		require.NoError(t, err)
		require.JSONEq(t, `{"total": 13, "last": "bank/c", "keys": ["c", "b", "a"]}`, string(text))
	}
}

func TestFunctionsThatFailSayWhere(t *testing.T) {
	broken := errors.New("broken")
	for source, want := range map[string]string{
		"def measure(cells, tick):\n    return [c.states for c in cells]": "m.star:2:14: cell has no .states field or method, only id, key, reducer, state (did you mean .state?)",
		"def measure(cells, tick):\n    return cells":                     "m.star:1:1: what it returns: a cells is no data: use None, bool, int, float, string, bytes, list, tuple or dict",
		"def measure(cells, tick):\n    return 1 // tick":                 "m.star:2:14: floored division by zero",
	} {
		_, err := functionOf(t, source).Call(manifest.ReducerLimits{}, most, three(t, 0, nil), tick(t, 0))
		require.EqualError(t, err, want)
	}
	i := functionOf(t, "def measure(cells, tick):\n    for c in cells:\n        x = c.key\n    return 1")
	_, err := i.Call(manifest.ReducerLimits{}, most, three(t, 2, broken), tick(t, 0))
	require.ErrorIs(t, err, broken)
	for _, limits := range []manifest.ReducerLimits{{Gas: 10}, {Memory: 200}} {
		_, err = i.Call(limits, most, three(t, 0, nil), tick(t, 0))
		require.ErrorIs(t, err, reducer.ErrLimit)
	}
	_, err = i.Call(manifest.ReducerLimits{}, most, three(t, 0, nil), tick(t, 0))
	require.NoError(t, err, "what failed before leaves nothing")
}

// What a function draws is that of the generator that it is given, and no step's.
func TestAFunctionDraws(t *testing.T) {
	f, err := star.CompileFunction(star.Version, reducer.Code{File: "m.star", Source: []byte(`
def draw(run, n):
    return [run["random"](n), run["random"](n), run["seed"]]
`)}, "draw", "run", "n")
	require.NoError(t, err)
	i, err := f.Instance(manifest.ReducerLimits{})
	require.NoError(t, err)
	run, err := canon.Marshal(map[string]any{"seed": 7})
	require.NoError(t, err)
	n, err := canon.Marshal(1000)
	require.NoError(t, err)
	seed := reducer.Seed{World: 7, Step: 3}
	for range 2 {
		out, err := i.Call(manifest.ReducerLimits{}, most, star.OfDrawing("run", run, seed.New()), star.OfData("n", n))
		require.NoError(t, err)
		var got []uint64
		require.NoError(t, canon.Unmarshal(out, &got))
		rand := seed.New()
		first, err := rand.Below(1000)
		require.NoError(t, err)
		second, err := rand.Below(1000)
		require.NoError(t, err)
		require.Equal(t, []uint64{first, second, 7}, got)
	}
	_, err = i.Call(manifest.ReducerLimits{}, star.Most{Bytes: 3, Name: "limits.most"}, star.OfDrawing("run", run, seed.New()), star.OfData("n", n))
	require.ErrorContains(t, err, "limits.most is 3")
}

func TestProgramsWithoutTheFunctionAreRefused(t *testing.T) {
	for source, want := range map[string]string{
		"x = 1":                      "m.star:1:1: the program does not define measure(cells, tick)",
		"def measure(cells): pass":   "m.star:1:5: measure takes the parameters (cells, tick)",
		"def measure(cells, tick) 1": "m.star:1:27: got int literal, want ':'",
	} {
		_, err := star.CompileFunction(star.Version, reducer.Code{File: "m.star", Source: []byte(source)}, "measure", "cells", "tick")
		var fault *reducer.SyntaxError
		require.ErrorAs(t, err, &fault)
		require.EqualError(t, err, want)
	}
}
