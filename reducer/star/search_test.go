package star_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/worldkernel/worldkernel/internal/fault"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// operands are values that an operation may find expensive, by name.
var operands = map[string]string{
	"int":       `7`,
	"float":     `1.5`,
	"tiny":      `1e-300`,
	"huge":      `1e300`,
	"wide":      `(1 << 4000) + 12345`,
	"half":      `(1 << 2040) - 99`,
	"negative":  `-(1 << 4000)`,
	"great":     `great(8)`, // shifts end at 511, and "wide" and its like with an error
	"less":      `-great(4)`,
	"greats":    `[great(8) - i for i in range(100)]`,
	"none":      `None`,
	"word":      `"abc"`,
	"text":      `"x" * 100000`,
	"foreign":   `"é" * 40000`,
	"spaces":    `"a " * 30000`,
	"digits":    `"9" * 1200`,
	"decimal":   `"1." + "0123456789" * 70 + "e-300"`,
	"percents":  `"%d" * 1000`,
	"doubled":   `"%%" * 50000`,
	"braces":    `"{}" * 1000`,
	"json":      `"[" + "{}," * 10000 + "{}]"`,
	"bytes":     `b"xyz" * 20000`,
	"list":      `list(range(2000))`,
	"floats":    `[1.5] * 20000`,
	"texts":     `["x" * 1000] * 1000`,
	"wides":     `[(1 << 4000) + i for i in range(100)]`,
	"lists":     `[[i] for i in range(5000)]`,
	"nested":    `nest(50)`,
	"broad":     `[[0] * 100] * 100`,
	"tuple":     `tuple(range(2000))`,
	"pairs":     `[(i, i) for i in range(2000)]`,
	"dict":      `{i: i for i in range(2000)}`,
	"words":     `{"k%d" % i: i for i in range(2000)}`,
	"colliding": `{i << 16: i for i in range(400)}`,
	"set":       `set(range(2000))`,
	"collided":  `set([i << 16 for i in range(400)])`,
	"range":     `range(50000)`,
	"function":  `nest`,
}

const searchPrelude = `
def nest(n):
    x = [1]
    for _ in range(n):
        x = [x]
    return x

def great(n):
    x = 1
    for _ in range(n):
        x = x * (1 << 500) + 99
    return x

`

func loop(setup, body string) string {
	return searchPrelude + "def reduce(ctx, state, event):\n" + setup + "    while True:\n        " + body + "\n"
}

// searched returns programs by name: every operator, function and method on every
// operand, for ever, and those that were thought out.
func searched() map[string]string {
	out := make(map[string]string)
	names := slices.Sorted(maps.Keys(operands))
	for _, a := range names {
		x := "    a = " + operands[a] + "\n"
		for _, op := range []string{"+", "-", "*", "/", "//", "%", "<<", ">>", "&", "|", "^", "==", "<", "in"} {
			for _, b := range []string{a, "wide", "great", "less", "tiny", "lists"} {
				out[a+" "+op+" "+b] = loop(x+"    b = "+operands[b]+"\n", "a "+op+" b")
			}
			for _, literal := range []string{"3", "1.5", `"abc"`, "[1, 2]"} {
				out[a+" "+op+" "+literal] = loop(x, "a "+op+" "+literal)
			}
		}
		for _, f := range []string{
			"len", "str", "repr", "list", "tuple", "set", "sorted", "reversed", "enumerate", "min", "max", "any", "all", "int",
			"float", "bool", "hash", "dict", "bytes", "type", "dir", "abs", "ord", "json.encode", "json.decode", "math.floor",
			"math.sqrt", "range", "zip", "-", "not ", "~", "fail",
		} {
			out[f+"("+a+")"] = loop(x, f+"(a)")
		}
		for _, call := range []string{
			"zip(a, a)", "(lambda *x: 1)(*a)", "(lambda **x: 1)(**a)", "[x for x in a]", "{x: 1 for x in a}", "a[1]", "a[::-1]", "a[1:]",
			"hasattr(a, \"append\")", "getattr(a, \"nope\", 1)", "\"%s\" % (a,)", "\"{}\".format(a)", "\"%r\" % [a]",
			"sorted([a, a, a])", "max(a, a)", "a == [a]", "{a: 1}", "(a, a)", "[a, a]", "[a].index(a)", "(a, 1) == (a, 2)",
			"x = a; x += a", "x = [0]; x += a", "sorted(a, key = lambda x: -x)", "dict(a, x = 1)", "json.decode(a, None)",
			"str([a])", "int(a, 36)", "ctx.emit(\"x\", a)", "\"%d %x %o %e\" % (a, a, a, a)",
		} {
			out[strings.ReplaceAll(call, "a", a)] = loop(x, call)
		}
	}
	methods(out)
	maps.Copy(out, worst())
	for name, body := range hostile {
		out[name] = searchPrelude + "def reduce(ctx, state, event):\n    " + body + "\n"
	}
	return out
}

// methods adds every method on what has it.
func methods(out map[string]string) {
	of := map[string][]string{
		"word text foreign spaces digits percents doubled braces": {
			"capitalize()", "count(\"a\")", "count(\"\")", "count(s)", "elems()", "endswith(a)", "find(\"aaab\")", "find(s)", "format(1, 2)", "format(*l)",
			"index(\"x\")", "isalnum()", "isalpha()", "isdigit()", "islower()", "isspace()", "istitle()", "isupper()", "join([\"a\"] * 1000)", "join(a.elems())",
			"lower()", "lstrip()", "lstrip(\"éx\")", "partition(\"x\")", "removeprefix(a)", "replace(\"x\", \"yy\")", "replace(\"\", \"y\")", "rfind(\"b\")", "rindex(\"x\")", "rpartition(\"y\")",
			"rsplit()", "rsplit(\"x\", 5)", "rstrip()", "split()", "split(\"x\")", "split(\" \", 1)", "splitlines()", "startswith((a, a))",
			"strip(\"éx \")", "title()", "upper()", "codepoints()", "elem_ords()",
		},
		"list floats texts lists pairs wides greats": {
			"append(1)", "clear()", "extend(a[:9])", "index(-1)", "index(a)", "insert(0, 1)", "insert(0, a.pop())", "pop()", "pop(0)", "remove(-1)",
		},
		"dict words colliding": {
			"clear()", "get(1)", "get(\"k1\")", "items()", "keys()", "pop(1, 2)", "pop(1 << 30, 2)", "popitem()", "setdefault(1 << 30)", "update(a)", "update([(1, 2)])", "update(x = 1)", "values()",
		},
		"set collided": {
			"add(1 << 30)", "clear()", "difference(a)", "discard(1)", "intersection(a)", "issubset(a)", "issuperset(a)", "pop()", "symmetric_difference(a)", "union(a)", "update(a)",
			"issubset([1])", "union(range(100))",
		},
	}
	for names, calls := range of {
		for _, a := range strings.Fields(names) {
			setup := "    a = " + operands[a] + "\n    s = \"a\" * 500 + \"b\"\n    l = list(range(1000))\n"
			for _, call := range calls {
				out[a+"."+call] = loop(setup, "a."+call)
			}
		}
	}
}

// worst are programs that were thought out to work much for little gas.
func worst() map[string]string {
	out := make(map[string]string)
	add := func(name, setup, body string) { out[name] = loop(setup, body) }
	for name, key := range map[string]string{
		"ints": "i << 16", "negative ints": "-(i << 16)", "wide ints": "i << 40", "floats": "1.0 / (i + 2)", "whole floats": "float(i << 16)",
		"huge floats": "1e300 * (i + 1)", "pairs of ints": "(1, i << 16)", "pairs with a text": "(\"a text that is long\", i << 16)",
		"long tuples": "(0,) * 50 + (i << 16,)", "nested tuples": "((i << 16,), 1)", "short strings": "words[i % 4000]", "functions": "(lambda: i)",
		"methods": "[].append", "bits": "i << 8", "few bits": "i << 5", "ints and texts": "i << 16 if i % 2 else str(i)",
	} {
		setup := "    words = WORDS\n    d = {}\n    s = set()\n    i = 0\n"
		add("colliding "+name+", index", setup, "d["+key+"] = i; i += 1")
		add("colliding "+name+", computed dict", setup, "{}[i] = 1; [d][0]["+key+"] = i; i += 1")
		add("colliding "+name+", unpacked", setup, "d["+key+"], x = i, i; i += 1")
		add("colliding "+name+", setdefault", setup, "d.setdefault("+key+", i); i += 1")
		add("colliding "+name+", update", setup, "d.update([("+key+", i)]); i += 1")
		add("colliding "+name+", or", setup, "d |= {"+key+": i}; i += 1")
		add("colliding "+name+", add", setup, "s.add("+key+"); i += 1")
		add("colliding "+name+", union", setup, "s = s | set(["+key+"]); i += 1")
		add("colliding "+name+", comprehension", setup, "{"+key+": i for i in range(100000)}")
		add("colliding "+name+", set()", setup, "set(["+key+" for i in range(20000)])")
		add("colliding "+name+", dict()", setup, "dict([("+key+", i) for i in range(20000)])")
		add("colliding "+name+", nested loop", setup, "[{"+key+": 1 for i in range(j)} for j in range(2000)]")
		fill := setup + "    for i in range(700):\n        d[" + key + "] = i\n        s.add(" + key + ")\n    k = " + key + "\n"
		add("crowded by "+name+", index", fill, "d[k]")
		add("crowded by "+name+", get", fill, "d.get(k)")
		add("crowded by "+name+", in", fill, "k in d; k in s")
		add("crowded by "+name+", copy", fill, "dict(d); s | s; s & s")
		add("crowded by "+name+", equal", fill, "d == dict(d)")
		add("crowded by "+name+", emptied", fill+"    while len(d): d.popitem()\n", "d.get(k)")
		add("crowded by "+name+", subset", fill, "s.issubset(s); s.issuperset(s); s - s; s ^ s")
	}
	setup := "    words = WORDS\n    d = {w: 1 for w in words[:300]}\n    w = words[1]\n"
	add("short strings, literal", setup, "d[\"abc\"] if \"abc\" in d else d[w]")
	add("kwargs that collide", setup, "(lambda **k: 1)(**d)")
	add("format with many names", setup, "(\"{abc}\" * 1000).format(abc = 1, **d)")
	table := "    d = {i: i for i in range(16000)}\n"
	add("clear a large dict", table, "d.clear()")
	add("clear and fill", table, "d.clear(); d[1] = 1")
	add("subset of a large set that was emptied", "    s = set(range(16000))\n    s.clear()\n", "s.issubset([1])")
	add("loop over a dict", table, "[x for x in d]")
	add("hasattr of the event", "", "hasattr(event, \"data\"); hasattr(ctx, \"cell\")")
	add("literal that is long", "    x = \"y\" * 900000\n", "x == \""+strings.Repeat("y", 900_000)+"\"")
	add("literal that is looked through", "    x = \"z\" * 10\n", "x in \""+strings.Repeat("zzzzzzzzy", 100_000)+"\"")
	add("substring that is nearly there", "    x = \"a\" * 500000\n    y = \"a\" * 30 + \"b\"\n", "y in x")
	add("substring that is long", "    x = \"ab\" * 200000\n    y = \"ab\" * 1000 + \"c\"\n", "x.find(y); x.count(y); x.rfind(y); x.replace(y, y)")
	add("mixed lists", "    x = [1] * 60000\n    y = [1.0] * 60000\n", "x == y")
	add("mixed wide lists", "    x = [1 << 4000] * 2000\n    y = [1e-300] * 2000\n", "x < y; y < x")
	add("mixed search", "    x = [1e-300] * 60000\n", "(1 << 4000) in x")
	add("mixed sort", "    x = [(1 << 4000) + 1, 1e-300, 1.5, 7] * 1000\n", "sorted(x)")
	add("sort of equal texts", "    x = [(\"x\" * 10000) + str(i) for i in range(100)]\n", "sorted(x)")
	add("sort by a function", "    x = list(range(1000))\n", "sorted(x, key = lambda y: -y)")
	add("zip of nothing much", "    x = range(60000)\n", "zip(x, x, x)")
	add("closures", "    l = []\n", "l.append(lambda: l)")
	add("def", "", "def_(1)")
	out["def"] = strings.Replace(out["def"], "def reduce", "def def_(x):\n    def f(a = x, b = x):\n        return x\n    return f\n\ndef reduce", 1)
	add("calls", "", "nest(0)")
	add("lists", "    l = []\n", "l = [l]")
	add("empty lists", "", "[[], [], [], [], []]")
	add("empty dicts, many", "", "[{}, {}, {}, {}, {}]")
	add("dicts of eight", "", "{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8}")
	add("wide sums", "    x = 1 << 4090\n", "x + 1; x - 1; x & 3; -x; ~x")
	add("wide shifts", "    x = (1 << 4090) - 1\n", "x >> 1; x // 3; x % 7; 1 << 4000")
	add("wide decimals", "    x = (1 << 4090) - 1\n", "str(x); \"%d\" % x; \"%x\" % x; \"{}\".format(x); int(str(x))")
	add("wide floats", "    x = (1 << 1020) - 1\n", "x / 3; float(x); x * 1.5; x < 1.5; x == 1e300")
	add("powers", "    x = 3\n", "x = x * x if x < 1 << 2000 else 3")
	add("small comparisons with floats", "    x = 1e-300\n", "x < 5; x == 1; 3 > x; x != 0")
	add("json round", "    x = [{\"a\": 1, \"b\": [1.5, None]}] * 2000\n", "json.decode(json.encode(x))")
	add("json of words", "    x = {w: 1 for w in WORDS}\n", "json.decode(json.encode(x))")
	add("json that is deep", "    x = \"[\" * 60 + \"]\" * 60\n", "json.decode(x)")
	add("json of digits", "    x = \"9\" * 3000\n", "json.decode(x, 1)")
	add("json of escapes", "    x = \"\\\"\" + \"\\\\u00e9\" * 50000 + \"\\\"\"\n", "json.decode(x)")
	add("recursion", "    def f(n):\n        return f(n - 1) if n else 0\n", "f(900)")
	add("recursion through sorted", "    def f(n):\n        return sorted([n], key = lambda x: f(n - 1) if n else 0)\n", "f(100)")
	add("many arguments", "    l = list(range(250))\n    f = lambda *a: a\n", "f(*l)")
	add("many names", "    d = {\"k%d\" % i: i for i in range(250)}\n    f = lambda **a: a\n", "f(**d)")
	add("long tuples of one hash", "    d = {(0,) * 50000 + (i << 32,): i for i in range(20)}\n    k = (0,) * 50000 + (99 << 32,)\n", "d.get(k); k in d")
	add("tuples of floats and integers", "    d = {(1,) * 16: 1}\n    k = (1.0,) * 16\n", "d[k]; d[k]")
	add("tuples of integers and floats", "    d = {(1.0,) * 16: 1}\n    k = (1,) * 16\n", "d[k]; d[k]")
	add("floats and integers", "    d = {1 << 62: 1}\n    k = float(1 << 62)\n", "d[k]; d[k]")
	add("names in a percent", "    d = {w: 1 for w in WORDS[:500]}\n    d[\"abc\"] = 1\n", "(\"%(abc)s\" * 10000) % d")
	add("bytes of a list", "    x = [7] * 60000\n", "bytes(x)")
	add("long attribute", "    x = \"é\" * 500000\n", "hasattr(x, x); getattr(x, x, 1)")
	add("long event", "    x = \"é\" * 500000\n    i = 0\n", "ctx.emit(x, i); i += 1")
	add("long cutset", "    x = \"a\" * 900000\n", "\"b\".strip(x); \"b\".lstrip(x)")
	add("strings by steps", "    x = \"a\" * 900000\n", "x[::-1]; x[::2]; x[1:]")
	add("random", "", "ctx.random(1000)")
	add("slices of slices", "    x = list(range(60000))\n", "x[1:]; x[::2]; x[::-1]")
	add("characters", "    x = \"é\" * 100000\n", "list(x.codepoints()); list(x.elems())")
	add("unhashable", "    x = [1]\n    f = lambda: 1\n", "hasattr(x, \"nope\"); type(x) == \"list\"; dir(x)")
	add("dir", "    x = \"\"\n", "dir(x); dir({})")
	for name, source := range out {
		out[name] = strings.ReplaceAll(source, "WORDS", collidingWords)
	}
	return out
}

// collidingWords is a list of short strings whose hashes agree in their lowest bits,
// as Starlark.
var collidingWords = func() string {
	var b strings.Builder
	b.WriteByte('[')
	for i, found := 0, 0; found < 4000; i++ {
		key := fmt.Sprintf("%x", i)
		h := uint32(2166136261)
		for _, c := range []byte(key) {
			h = (h ^ uint32(c)) * 16777619
		}
		if h&0x3ff == 0 {
			fmt.Fprintf(&b, "%q, ", key)
			found++
		}
	}
	b.WriteByte(']')
	return b.String()
}()

// runFor runs a program until it has used so much gas.
func runFor(t testing.TB, source string, gas uint64) (*reducer.Output, error) {
	t.Helper()
	p, err := star.Compile(star.Version, "test.star", []byte(source))
	if err != nil {
		return nil, nil // the grammar makes some that are none
	}
	r, err := p.Reducer()
	require.NoError(t, err)
	in := input(t, "", "{}")
	in.Limits = manifest.ReducerLimits{Gas: gas}
	var out reducer.Output
	return &out, r.Reduce(in, &out)
}

// TestGasIsTheSameEverywhere runs what the search finds on, in two instances.
func TestGasIsTheSameEverywhere(t *testing.T) {
	all := searched()
	require.Greater(t, len(all), 300)
	names, worst := slices.Sorted(maps.Keys(all)), worst()
	for i, name := range names {
		every := fault.Stride(101)
		if worst[name] != "" {
			every = fault.Stride(5)
		}
		if int64(i)%every != 0 {
			continue
		}
		a, err := runFor(t, all[name], 20_000)
		b, again := runFor(t, all[name], 20_000)
		if a == nil {
			continue
		}
		require.Equal(t, a.Gas, b.Gas, name)
		require.Equal(t, fmt.Sprint(err), fmt.Sprint(again), name)
	}
}
