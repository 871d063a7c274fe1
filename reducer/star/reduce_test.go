package star_test

import (
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

func TestContextAndEvent(t *testing.T) {
	got, err := eval(t, `    return [ctx.time, ctx.cell, ctx.key, event.name, event.data["s"], state, event.data == event.data]`+"\n")
	require.NoError(t, err)
	require.Equal(t, `[17,"agent/ann","ann","poke","text",null,true]`, got)
}

func TestEffectsEventsAndTimers(t *testing.T) {
	r := instance(t, `
def reduce(ctx, state, event):
    ctx.emit("a")
    ctx.emit("b", {"x": 1}, key="bob")
    ctx.emit(name="c", data=[1])
    ctx.effect("tool.lookup", {"q": "é"}, tag="t1", cap="tools")
    ctx.effect("tool.ping")
    ctx.timer(5, "wake", "up")
    ctx.timer(after_ticks=1, name="again")
`)
	var out reducer.Output
	require.NoError(t, r.Reduce(input(t, "", "{}"), &out))
	require.Empty(t, out.State)
	require.Equal(t, []reducer.Emit{
		{Name: "a", Data: data(t, "null")},
		{Name: "b", Data: data(t, `{"x":1}`), Key: "bob"},
		{Name: "c", Data: data(t, "[1]")},
	}, out.Events)
	require.Equal(t, []reducer.Effect{
		{Kind: "tool.lookup", Params: data(t, `{"q":"é"}`), Tag: "t1", Cap: "tools"},
		{Kind: "tool.ping", Params: data(t, "null")},
	}, out.Effects)
	require.Equal(t, []reducer.Timer{
		{After: 5, Name: "wake", Data: data(t, `"up"`)},
		{After: 1, Name: "again", Data: data(t, "null")},
	}, out.Timers)
}

func TestRandomIsTheStepsOwn(t *testing.T) {
	r := instance(t, "def reduce(ctx, state, event):\n    return [ctx.random(1000) for _ in range(8)]\n")
	in := input(t, "", "{}")
	want := in.Seed.New()
	var out reducer.Output
	require.NoError(t, r.Reduce(in, &out))
	got, err := reducer.Decode[[]uint64](out.State)
	require.NoError(t, err)
	for _, n := range got {
		w, err := want.Below(1000)
		require.NoError(t, err)
		require.Equal(t, w, n)
	}
}

func TestReturningNothingDeletesTheCell(t *testing.T) {
	r := instance(t, "def reduce(ctx, state, event):\n    pass\n")
	out := reducer.Output{State: []byte{1, 2, 3}}
	require.NoError(t, r.Reduce(input(t, `{"a": 1}`, "{}"), &out))
	require.Empty(t, out.State)
}

// TestSameInputSameOutput runs each step on an instance that has run others
// before, and on a new one.
func TestSameInputSameOutput(t *testing.T) {
	source := `
SEEN = []
def reduce(ctx, state, event):
    state = state or {"n": 0, "words": {}}
    state["n"] += event.data["amount"]
    words = {w: len(w) for w in ["a longer word than twelve", "b", "another long word"]}
    state["words"].update(words)
    state["random"] = ctx.random(1 << 40)
    state["text"] = "%s/%d" % (sorted(words), state["n"])
    for k in set(words.keys() + ["x", "y"]):
        ctx.emit(k, json.encode(state))
    if state["n"] > 20:
        fail("enough", state)
    return state
`
	used := instance(t, source)
	in := input(t, "", `{"amount": 5}`)
	for range 6 {
		var a, b reducer.Output
		errA := used.Reduce(in, &a)
		errB := instance(t, source).Reduce(in, &b)
		require.Equal(t, errB, errA)
		require.Equal(t, b.Gas, a.Gas)
		if errA == nil {
			require.Equal(t, b, a)
			in.State = a.State
		}
	}
}

func TestNothingOutlivesAStep(t *testing.T) {
	for _, body := range []string{
		"G.append(1)", "G[0] = 2", "G.extend([1])", "G.insert(0, 1)", "D[\"a\"] = 1", "D.update(a=1)", "D.setdefault(\"b\", 1)",
		"D.clear()", "S.add(2)", "f.x = 1", "g()", "h = G; h += [1]", "h = D; h |= {\"z\": 1}", "D[\"x\"] += 1",
	} {
		r := instance(t, `
G = [1]
D = {"x": 1}
S = set([1])
def f():
    pass
def g(x=[]):
    x.append(1)
def reduce(ctx, state, event):
    `+body+"\n")
		var out reducer.Output
		require.Error(t, r.Reduce(input(t, "", "{}"), &out), body)
	}
}

func TestLimitsAreNamed(t *testing.T) {
	for want, c := range map[string]struct {
		body   string
		limits manifest.ReducerLimits
	}{
		"limits.gas":     {"for i in range(1000):\n        pass", manifest.ReducerLimits{Gas: 100}},
		"limits.state":   {`return "0123456789"`, manifest.ReducerLimits{State: 10}},
		"limits.events":  {"ctx.emit(\"a\")\n    ctx.emit(\"a\")", manifest.ReducerLimits{Events: 1}},
		"limits.effects": {"ctx.effect(\"a\")\n    ctx.effect(\"a\")", manifest.ReducerLimits{Effects: 1}},
		"limits.timers":  {"ctx.timer(1, \"a\")\n    ctx.timer(1, \"a\")", manifest.ReducerLimits{Timers: 1}},
		"limits.value":   {"x = \"0123456789\"\n    y = x * 2", manifest.ReducerLimits{Value: 19}},
		"limits.memory":  {"for i in range(100):\n        x = \"0123456789\" * 10", manifest.ReducerLimits{Gas: 1 << 20, Value: 1 << 20, Memory: 5000}},
	} {
		r := instance(t, "def reduce(ctx, state, event):\n    "+c.body+"\n")
		in := input(t, "", "{}")
		in.Limits = c.limits
		var out reducer.Output
		err := r.Reduce(in, &out)
		require.ErrorIs(t, err, reducer.ErrLimit)
		require.ErrorContains(t, err, want)
	}
}

// TestWorkIsCharged: what takes long in one instruction costs accordingly.
func TestWorkIsCharged(t *testing.T) {
	for _, work := range []string{
		"d[s]", "d.get(s)", "d[s] = 1", "d.setdefault(s, 1)", "d.update({s: 1})", "{s: 1}", "set([s])", "s == u", "s < u",
		"s in l", "\"y\" in s", "s.find(\"y\")", "s.startswith(u)", "l.index(s)", "sorted([s, u])", "max(s, u)", "hash(s)",
		"s + u", "s[::2]", "l[:]", "l == m", "[l] == [m]", "str(l)", "\"%s\" % s", "json.encode(l)", "list(l)", "len(d.items())",
		"f(*l)", "l.pop(0)", "d | d", "bytes(s)", "(s, u)",
	} {
		r := instance(t, `
def f(*a):
    pass
def reduce(ctx, state, event):
    s = "x" * 100000
    u = "x" * 99999 + "x"
    d = {i: i for i in range(1000)}
    d[s] = 0
    l = [i for i in range(1000)] + [s]
    m = [i for i in range(1000)] + [s]
    if event.data:
        `+work+"\n")
		var with, without reducer.Output
		require.NoError(t, r.Reduce(input(t, "", "true"), &with), work)
		require.NoError(t, r.Reduce(input(t, "", "false"), &without), work)
		require.Greater(t, with.Gas-without.Gas, uint64(30), work)
	}
}

// TestKeysThatCollideCostMore: what looks at every key of a dict or set looks through
// the chain that each is in.
func TestKeysThatCollideCostMore(t *testing.T) {
	for _, work := range []string{"d | d", "s | s", "s & s", "s - s", "s ^ s"} {
		cost := func(keys string) uint64 {
			r := instance(t, `
def reduce(ctx, state, event):
    d = {`+keys+`: i for i in range(400)}
    s = set([`+keys+` for i in range(400)])
    if event.data:
        `+work+"\n")
			var with, without reducer.Output
			require.NoError(t, r.Reduce(input(t, "", "true"), &with), work)
			require.NoError(t, r.Reduce(input(t, "", "false"), &without), work)
			return with.Gas - without.Gas
		}
		const keys, chain = 800, 20 // of both operands; the least that looking through a chain of them costs
		require.Greater(t, cost("i << 16"), cost("i")+keys*chain, work)
	}
}

// TestReadingCostsByLength: what only looks at a text, or moves a list, costs by how long it is.
func TestReadingCostsByLength(t *testing.T) {
	for _, work := range []string{"text == same", "getattr(ctx, text, None)", "{}.get(text)", "list.insert(0, 1)"} {
		r := instance(t, `
def reduce(ctx, state, event):
    text, same, list = "a" * 1000000, "a" * 1000000, [0] * 100000
    if event.data:
        `+work+"\n")
		var with, without reducer.Output
		require.NoError(t, r.Reduce(input(t, "", "true"), &with), work)
		require.NoError(t, r.Reduce(input(t, "", "false"), &without), work)
		require.Greater(t, with.Gas, without.Gas+1000, work)
	}
}

// TestCallsNestToALimit: a depth that is reached by one long way down is noticed at the
// next look, which is not at every call.
func TestCallsNestToALimit(t *testing.T) {
	r := instance(t, `
def down(n):
    if n == 0:
        return 0
    return down(n - 1)
def reduce(ctx, state, event):
    return down(event.data)
`)
	var out reducer.Output
	require.NoError(t, r.Reduce(input(t, "", "990"), &out))
	err := r.Reduce(input(t, "", "3000"), &out)
	require.ErrorIs(t, err, reducer.ErrLimit)
	require.ErrorContains(t, err, "calls nest deeper than 1000")
}

// TestGasIsExact: a step may use all of its gas and not one step more.
func TestGasIsExact(t *testing.T) {
	for _, body := range []string{"return [i for i in range(5000)]", "return json.encode(\"x\" * 10000)", "return None"} {
		r := instance(t, "def reduce(ctx, state, event):\n    "+body+"\n")
		in := input(t, "", "{}")
		var out reducer.Output
		require.NoError(t, r.Reduce(in, &out))
		in.Limits.Gas = out.Gas
		require.NoError(t, r.Reduce(in, &out))
		in.Limits.Gas--
		if in.Limits.Gas > 0 {
			require.ErrorIs(t, r.Reduce(in, &out), reducer.ErrLimit)
		}
		in.Limits.Gas++ // a step that ran out leaves nothing behind
		out.Reset()
		require.NoError(t, r.Reduce(in, &out))
		require.Equal(t, in.Limits.Gas, out.Gas)
	}
}

func TestDataIsExact(t *testing.T) {
	for _, json := range []string{
		`0`, `-1`, `18446744073709551615`, `-18446744073709551616`, `340282366920938463463374607431768211456`, `1.5`, `1e300`,
		`0.1`, `2.0`, `""`, `"é😀"`, `[]`, `{}`, `[[],{"a":[null,true,false]}]`, `{"b":1,"a":2,"aa":0}`, `9007199254740993`,
	} {
		r := instance(t, "def reduce(ctx, state, event):\n    return event.data\n")
		in := input(t, "", json)
		var out reducer.Output
		require.NoError(t, r.Reduce(in, &out))
		require.Equal(t, in.Event.Data, out.State, json)
	}
}

func TestNegativeZeroBecomesZero(t *testing.T) {
	got, err := eval(t, "    return -0.0\n")
	require.NoError(t, err)
	require.Equal(t, "0.0", got)
}

// TestWideIntegersAreCarried: data is exact, also where no reducer computes with it.
func TestWideIntegersAreCarried(t *testing.T) {
	wide := new(big.Int).Lsh(big.NewInt(1), 100000)
	in := input(t, "", "{}")
	in.Event.Data = canon.AppendBig(nil, wide)
	var out reducer.Output
	require.NoError(t, instance(t, "def reduce(ctx, state, event):\n    return [event.data, event.data == event.data]\n").Reduce(in, &out))
	require.Equal(t, append(append([]byte{0x82}, in.Event.Data...), 0xf5), []byte(out.State))
	for _, body := range []string{"event.data + 1", "str(event.data)", "str([event.data])", "json.encode([event.data])", "int(event.data)"} {
		require.Error(t, instance(t, "def reduce(ctx, state, event):\n    return "+body+"\n").Reduce(in, &out), body)
	}
}

func TestModules(t *testing.T) {
	got, err := eval(t, `    return [math.floor(-1.5), math.ceil(1.2), math.round(2.5), math.floor(3), math.sqrt(2), math.sqrt(16), math.floor(1e300) > 1]`+"\n")
	require.NoError(t, err)
	require.Equal(t, `[-2,2,3,3,1.4142135623730951,4.0,true]`, got)
	got, err = eval(t, `    return [json.encode({"b": [1, 1.0, None], "a": "é\n"}), json.decode('{"x": [12345678901234567890, 1.5]}'), json.decode("nope", default=3)]`+"\n")
	require.NoError(t, err)
	require.Equal(t, `["{\"a\":\"é\\n\",\"b\":[1,1.0,null]}",{"x":[12345678901234567890,1.5]},3]`, got)
}

// TestLibraryPanicsFailTheStep: the step of a sliced range can overflow to 0,
// which the library takes for a mistake of its caller.
func TestLibraryPanicsFailTheStep(t *testing.T) {
	r := instance(t, "def reduce(ctx, state, event):\n    return event.data or range(10)"+strings.Repeat("[::65536]", 4)+"\n")
	var out reducer.Output
	require.Error(t, r.Reduce(input(t, "", "null"), &out))
	require.NoError(t, r.Reduce(input(t, "", "1"), &out))
}

func TestVersionNamesTheLibrary(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	_, revision, _ := strings.Cut(star.Version, "+")
	require.Regexp(t, `(?m)^\s*go\.starlark\.net v\S+-`+revision+`$`, string(mod))
}

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
			var e *reducer.SyntaxError
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
