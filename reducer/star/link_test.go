package star_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

const reduceCalls = "\ndef reduce(ctx, state, event):\n    return f(ctx)\n"

// linked runs one step of a program with modules, and returns its state as JSON.
func linked(t *testing.T, source string, modules map[string]string) (string, uint64, error) {
	t.Helper()
	code := reducer.Code{File: "main.star", Source: []byte(source), Modules: make(map[string][]byte)}
	for name, text := range modules {
		code.Modules[name] = []byte(text)
	}
	p, err := star.Engine{}.Compile(star.Version, code)
	if err != nil {
		return "", 0, err
	}
	r, _, err := p.Start(reducer.Setting{}, nil)
	if err != nil {
		return "", 0, err
	}
	var out reducer.Output
	if err := r.Reduce(input(t, "", "{}"), &out); err != nil {
		return "", 0, err
	}
	text, err := canon.ToJSON(out.State)
	return string(text), out.Gas, err
}

func TestAProgramLoadsModules(t *testing.T) {
	state, _, err := linked(t, `load("lib/a.star", "f", other="g")`+"\nload(\"@agent/v1\", \"h\")\nX = other()\n"+`
def reduce(ctx, state, event):
    return [f(ctx), X, h]
`, map[string]string{
		"lib/a.star": "load(\"lib/b.star\", \"deep\")\ndef f(ctx):\n    return deep + ctx.key\ndef g():\n    return 2\n",
		"lib/b.star": "deep = \"from \"\n",
		"@agent/v1":  "load(\"lib/b.star\", \"deep\")\nh = [deep]\n",
	})
	require.NoError(t, err)
	require.JSONEq(t, `["from ann", 2, ["from "]]`, state)
}

// A module is run once, when its program is, and no step pays for it.
func TestAModuleCostsAStepWhatItsFunctionsDo(t *testing.T) {
	const f = "def f(ctx):\n    return ctx.key\n"
	_, here, err := linked(t, f+reduceCalls, nil)
	require.NoError(t, err)
	_, there, err := linked(t, `load("m", "f")`+reduceCalls, map[string]string{"m": "X = [x for x in range(1000)]\n" + f})
	require.NoError(t, err)
	require.Equal(t, here, there)
}

func TestWhatAModuleLeavesIsFrozen(t *testing.T) {
	_, _, err := linked(t, `load("m", "x")`+"\ndef reduce(ctx, state, event):\n    x.append(1)\n", map[string]string{"m": "x = []\n"})
	require.ErrorContains(t, err, "frozen list")
	_, _, err = linked(t, `load("m", "f")`+"\nf()"+reduceCalls, map[string]string{"m": "x = []\ndef f():\n    x.append(1)\n"})
	require.ErrorContains(t, err, "frozen list", "also while others are loaded")
}

func TestModulesThatAreRefused(t *testing.T) {
	deep := map[string]string{"m17": "f = 1\n"}
	wide, many := make(map[string]string), ""
	for i := range 17 {
		deep[fmt.Sprint("m", i)] = fmt.Sprintf("load(\"m%d\", \"f\")\n", i+1)
	}
	for i := range manifest.MaxModules + 1 {
		wide[fmt.Sprint("m", i)] = fmt.Sprintf("f%d = 1\n", i)
		many += fmt.Sprintf("load(\"m%d\", \"f%[1]d\")\n", i)
	}
	large := "f = 1 #" + string(make([]byte, star.MaxSourceBytes-100))
	const load = `load("m0", "f")`
	for name, x := range map[string]struct {
		source  string
		modules map[string]string
		want    string
	}{
		"missing":       {load, nil, `main.star:1:6: there is no module "m0"`},
		"circle":        {load, map[string]string{"m0": "load(\"m1\", \"f\")\n", "m1": "load(\"m0\", \"f\")\n"}, `m1:1:6: "m0" is loaded in a circle: main.star loads m0 loads m1 loads m0`},
		"itself":        {`load("main.star", "f")`, nil, `"main.star" is loaded in a circle`},
		"too deep":      {load, deep, "more than 16 deep"},
		"too many":      {many, wide, "at most 64 modules"},
		"too large":     {"load(\"m0\", \"f\")\nload(\"m1\", g=\"f\")\nload(\"m2\", h=\"f\")\nload(\"m3\", i=\"f\")\nload(\"m4\", j=\"f\")", map[string]string{"m0": large, "m1": large, "m2": large, "m3": large, "m4": large + "       " + string(make([]byte, 80))}, "at most 4194304 bytes"},
		"no program":    {load, map[string]string{"m0": "f = \n"}, "m0:1:5: "},
		"no such name":  {load, map[string]string{"m0": "g = 1\n"}, "main.star:1:1: load: name f not found in module m0"},
		"its own":       {load, map[string]string{"m0": "_f = 1\nf = fail(\"no\")\n"}, "m0:2:9: no"},
		"endless":       {load, map[string]string{"m0": "def f():\n    while True:\n        pass\nf()\n"}, "limits.gas"},
		"a constant":    {`load("m0", True="f")`, map[string]string{"m0": "f = 1\n"}, "main.star:1:12: True is a constant"},
		"in a function": {"def f():\n    load(\"m0\", \"f\")\n", map[string]string{"m0": "f = 1\n"}, "main.star:2:5: load statement within a function"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := linked(t, x.source+"\ndef reduce(ctx, state, event):\n    return None\n", x.modules)
			require.ErrorContains(t, err, x.want)
		})
	}
}

// Who asks ctx or event for what they have not reads what they have.
func TestMissingFieldsNameThoseThatThereAre(t *testing.T) {
	for of, want := range map[string]string{
		"ctx.tick":           "ctx has no .tick field or method, only cancel, cell, effect, emit, key, params, random, schemas, time, timer",
		`event["data"]`:      `main.star:2:17: event has fields, and no items: write event.data, not event["data"]`,
		`ctx["params"]["x"]`: `ctx has fields, and no items: write ctx.params, not ctx["params"]`,
		"event.tag":          "event has no .tag field or method, only data, name",
		"event.dato":         "event has no .dato field or method, only data, name (did you mean .data?)",
	} {
		_, _, err := linked(t, "def reduce(ctx, state, event):\n    return "+of+"\n", nil)
		require.ErrorContains(t, err, want)
	}
	state, _, err := linked(t, "def reduce(ctx, state, event):\n    return [hasattr(ctx, 'tick'), getattr(event, 'tag', 7)]\n", nil)
	require.NoError(t, err)
	require.Equal(t, "[false,7]", state)
}

func TestParamsAndSchemasAreGivenAndFrozen(t *testing.T) {
	run := func(body, params string) (string, uint64, error) {
		p, err := star.Compile(star.Version, "main.star", []byte("def reduce(ctx, state, event):\n    "+body+"\n"))
		require.NoError(t, err)
		r, _, err := p.Start(reducer.Setting{Params: data(t, params), Schemas: data(t, `{"mail.send": {"type": "object"}}`)}, nil)
		require.NoError(t, err)
		var out reducer.Output
		if err := r.Reduce(input(t, "", "{}"), &out); err != nil {
			return "", 0, err
		}
		text, err := canon.ToJSON(out.State)
		return string(text), out.Gas, err
	}
	state, few, err := run(`return [ctx.params["a"], ctx.schemas["mail.send"]]`, `{"a": {"b": 1.5}}`)
	require.NoError(t, err)
	require.JSONEq(t, `[{"b": 1.5}, {"type": "object"}]`, state)
	_, many, err := run(`return [ctx.params["a"], ctx.schemas["mail.send"]]`, `{"a": {"b": 1.5}, "c": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}`)
	require.NoError(t, err)
	require.Equal(t, few, many, "no step pays for what it does not look at")
	_, _, err = run(`ctx.params["a"] = 1`, `{"a": 1}`)
	require.ErrorContains(t, err, "frozen")
	_, _, err = run(`ctx.params["a"].append(1)`, `{"a": []}`)
	require.ErrorContains(t, err, "frozen")
	state, _, err = run(`return [dict(ctx.params), hasattr(ctx, "schemas")]`, `{}`)
	require.NoError(t, err)
	require.JSONEq(t, `[{}, true]`, state)
}

func TestAFailureNamesItsCallers(t *testing.T) {
	_, _, err := linked(t, `load("lib/pick.star", "pick")`+`
def reduce(ctx, state, event):
    return looked(event)

def looked(event):
    return [pick(x) for x in [event.data]]
`, map[string]string{"lib/pick.star": "def pick(x):\n    return sorted([1], key=lambda n: x[\"a\"])\n"})
	require.EqualError(t, err, `lib/pick.star:2:39: key "a" not in dict (in lambda, called by pick at lib/pick.star:2, called by looked at main.star:6, called by reduce at main.star:3)`)
	_, _, err = linked(t, "def reduce(ctx, state, event):\n    return f(100)\ndef f(n):\n    if n == 0:\n        fail(\"down\")\n    return f(n - 1)\n", nil)
	require.ErrorContains(t, err, ", and 85 more)")
	require.Less(t, len(err.Error()), 1000)
}

// TestTimersTakeDurations: they become whole ticks of the world's clock; earlier versions
// take none.
func TestTimersTakeDurations(t *testing.T) {
	const source = "def reduce(ctx, state, event):\n    ctx.timer(event.data, \"wake\")\n    return {}\n"
	set := func(after string, clock manifest.Clock) (manifest.Tick, error) {
		p, err := star.Compile(star.Version, "test.star", []byte(source))
		require.NoError(t, err)
		r, _, err := p.Start(reducer.Setting{}, nil)
		require.NoError(t, err)
		in, out := input(t, "", after), reducer.Output{}
		in.Clock = clock
		if err := r.Reduce(in, &out); err != nil {
			return 0, err
		}
		return out.Timers[0].After, nil
	}
	minute := manifest.Clock{Tick: int64(time.Minute)}
	for after, ticks := range map[string]manifest.Tick{`"24h"`: 1440, `"61s"`: 2, `"1ns"`: 1, `7`: 7} {
		got, err := set(after, minute)
		require.NoError(t, err, after)
		require.Equal(t, ticks, got, after)
	}
	got, err := set(`"90s"`, manifest.Clock{})
	require.NoError(t, err)
	require.EqualValues(t, 90, got)
	for _, after := range []string{`"soon"`, `"-1h"`, `"0s"`, `""`, `0`, `-1`, `18446744073709551616`, `1.5`, `null`} {
		_, err := set(after, minute)
		require.Error(t, err, after)
	}
}
