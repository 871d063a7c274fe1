package star_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// maxHostileBytes is what a step with the default gas, whose state has 256 KiB and
// whose values have 1 MiB at most, may allocate in all, garbage included.
const maxHostileBytes = 256 << 20

// hostile are bodies of reduce that try to take memory or time beyond their gas.
var hostile = map[string]string{
	"empty dicts":               "l = []\n    for _ in range(1000000):\n        l.append([" + strings.Repeat("{},", 200) + "])",
	"large frames":              "f(0)\ndef f(n):\n    if n >= 0:\n        return f(n + 1)\n    return [" + strings.Repeat("n,", 60000) + "]",
	"calls of large frames":     "while True:\n        f(0)\ndef f(n):\n    if n >= 0:\n        return\n    return [" + strings.Repeat("n,", 60000) + "]",
	"many names in a format":    "d = {\"k%d\" % i: 1 for i in range(10000)}\n    for _ in range(1000000):\n        (\"{k9999}\" * 60000).format(**d)",
	"letters":                   "s = \"é\" * 500000\n    for _ in range(1000000):\n        s.isalpha()",
	"quote a string":            `return len(str(["\x01" * 500000]))`,
	"repeat a list":             `return [0] * 100000000`,
	"repeat a list, reversed":   `return 100000000 * [0]`,
	"repeat a tuple":            `return (0,) * 100000000`,
	"repeat a string":           `return "x" * 1000000000`,
	"repeat bytes":              `return b"x" * 1000000000`,
	"repeat in place":           "x = [0]\n    x *= 100000000",
	"double a string":           "s = \"x\"\n    for _ in range(60):\n        s = s + s",
	"double in place":           "s = \"x\"\n    for _ in range(60):\n        s += s",
	"double a list":             "s = [1]\n    for _ in range(60):\n        s = s + s",
	"double a list in place":    "s = [1]\n    for _ in range(60):\n        s += s",
	"double a list in a list":   "s = [[1]]\n    for _ in range(60):\n        s[0] += s[0]",
	"double a tuple":            "s = (1,)\n    for _ in range(60):\n        s = s + s",
	"double bytes":              "s = b\"x\"\n    for _ in range(60):\n        s = s + s",
	"extend by itself":          "s = [1]\n    for _ in range(60):\n        s.extend(s)",
	"extend, method value":      "s = [1]\n    f = s.extend\n    for _ in range(60):\n        f(s)",
	"extend, getattr":           "s = [1]\n    f = getattr(s, \"extend\")\n    for _ in range(60):\n        f(s)",
	"extend by a range":         `[].extend(range(2000000000))`,
	"loop for ever":             "while True:\n        pass",
	"recur for ever":            "def f(n):\n        return f(n + 1)\n    f(0)",
	"recur through sorted":      "def f(n):\n        return sorted([n], key=f)\n    f(0)",
	"square an int":             "x = 3\n    for _ in range(40):\n        x = x * x",
	"square in place":           "x = 3\n    for _ in range(40):\n        x *= x",
	"shift an int":              "x = 1\n    for _ in range(100):\n        x = x << 500",
	"shift by a literal":        "x = 1\n    for _ in range(100):\n        x <<= 511",
	"multiply by a literal":     "x = 1\n    for _ in range(1000000):\n        x = x * 1000000007",
	"parse an int":              `int("9" * 100000)`,
	"parse an int, named base":  `int(x="f" * 100000, base=16)`,
	"print a graph":             "x = []\n    for _ in range(60):\n        x = [x, x]\n    return str(x)",
	"print a graph of dicts":    "x = {}\n    for _ in range(60):\n        x = {\"a\": x, \"b\": x}\n    return str(x)",
	"repr a graph":              "x = []\n    for _ in range(60):\n        x = [x, x]\n    return repr(x)",
	"format a graph":            "x = []\n    for _ in range(60):\n        x = [x, x]\n    return \"{}\".format(x)",
	"percent a graph":           "x = []\n    for _ in range(60):\n        x = [x, x]\n    return \"%s\" % [x]",
	"fail with a graph":         "x = []\n    for _ in range(60):\n        x = [x, x]\n    fail(x)",
	"compare graphs":            "x = []\n    y = []\n    for _ in range(60):\n        x = [x, x]\n        y = [y, y]\n    return x == y",
	"compare broad graphs":      "x = []\n    y = []\n    for _ in range(4):\n        x = [x] * 1000\n        y = [y] * 1000\n    return x == y",
	"order broad graphs":        "x = []\n    y = []\n    for _ in range(4):\n        x = [x] * 1000\n        y = [y] * 1000\n    return x < y",
	"find a graph":              "x = []\n    y = []\n    for _ in range(4):\n        x = [x] * 1000\n        y = [y] * 1000\n    return x in [y]",
	"sort graphs":               "x = []\n    y = []\n    for _ in range(4):\n        x = [x] * 1000\n        y = [y] * 1000\n    return sorted([x, y])",
	"max of graphs":             "x = []\n    y = []\n    for _ in range(4):\n        x = [x] * 1000\n        y = [y] * 1000\n    return max(x, y)",
	"index of a graph":          "x = []\n    y = []\n    for _ in range(4):\n        x = [x] * 1000\n        y = [y] * 1000\n    return [x].index(y)",
	"return a graph":            "x = []\n    for _ in range(60):\n        x = [x, x]\n    return x",
	"return a broad graph":      "x = [0]\n    for _ in range(5):\n        x = [x] * 1000\n    return x",
	"emit a graph":              "x = [0]\n    for _ in range(5):\n        x = [x] * 1000\n    ctx.emit(\"a\", x)",
	"return itself":             "x = []\n    x.append(x)\n    return x",
	"print itself":              "x = []\n    x.append(x)\n    return str(x)",
	"compare with itself":       "x = []\n    x.append(x)\n    return x == x",
	"hash a graph":              "t = (1,)\n    for _ in range(60):\n        t = (t, t)\n    return {t: 1}",
	"hash a graph of pairs":     "t = (1,)\n    for _ in range(60):\n        t = zip([t], [t])[0]\n    return {t: 1}",
	"hash a graph of args":      "def f(*a):\n        return a\n    t = (1,)\n    for _ in range(60):\n        t = f(t, t)\n    return {t: 1}",
	"hash a graph of lambdas":   "f = lambda *a: a\n    t = (1,)\n    for _ in range(60):\n        t = f(t, t)\n    return {t: 1}",
	"hash a graph of items":     "t = (1,)\n    for _ in range(60):\n        t = {t: t}.items()[0]\n    return {t: 1}",
	"hash a graph of tuple()":   "t = (1,)\n    for _ in range(60):\n        t = tuple([t, t])\n    return {t: 1}",
	"hash a graph of enumerate": "t = (1,)\n    for _ in range(600000):\n        t = enumerate([t])[0]\n    return {t: 1}",
	"missing key of strings":    "s = \"x\" * 1000000\n    t = (s,) * 60000\n    return {}[t]",
	"hash long strings":         "s = \"x\" * 1000000\n    d = {}\n    for i in range(1000000):\n        d[s]= i",
	"look up long strings":      "s = \"x\" * 1000000\n    d = {}\n    for i in range(1000000):\n        d.get(s)",
	"keys that collide":         "d = {}\n    for i in range(1000000):\n        d[i << 32] = i",
	"floats that collide":       "d = {}\n    for i in range(1000000):\n        d[1.0 / (i + 2)] = i",
	"join":                      `return "".join(["x" * 100000] * 100000)`,
	"join, long separator":      `return ("x" * 100000).join(["a"] * 10000)`,
	"join codepoints":           "s = \"x\" * 1000000\n    return s.join(s.codepoints())",
	"replace":                   "s = \"x\" * 10000\n    return s.replace(\"x\", s)",
	"replace nothing":           "s = \"x\" * 10000\n    return s.replace(\"\", s)",
	"format":                    `return ("{0}" * 10000).format("x" * 10000)`,
	"format by name":            `return ("{a}" * 10000).format(a="x" * 10000)`,
	"percent":                   `return ("%(a)s" * 10000) % {"a": "x" * 10000}`,
	"percent tuple":             "s = \"x\" * 100000\n    return (\"%s\" * 1000) % tuple([s] * 1000)",
	"percent octal":             `return ("%(a)o" * 100000) % {"a": (1 << 511) * (1 << 511) * (1 << 511)}`,
	"percent float":             `return ("%(a)f" * 100000) % {"a": 1e300}`,
	"split to pieces":           "s = \"a \" * 500000\n    l = []\n    for _ in range(1000000):\n        l.append(s.split(\" \"))",
	"split fields":              "s = \"a \" * 500000\n    l = []\n    for _ in range(1000000):\n        l.append(s.split())",
	"rsplit reserve":            "l = []\n    for _ in range(1000000):\n        l.append(\"a\".rsplit(None, 1000000000))",
	"splitlines":                "s = \"\\n\" * 1000000\n    l = []\n    for _ in range(1000000):\n        l.append(s.splitlines())",
	"strip by many":             "s = \"é\" * 400000\n    for _ in range(1000):\n        (\"é\" * 400000).strip(s)",
	"list of a range":           `return list(range(2000000000))`,
	"tuple of a range":          `return tuple(range(2000000000))`,
	"set of a range":            `return set(range(2000000000))`,
	"sorted range":              `return sorted(range(2000000000))`,
	"reversed range":            `return reversed(range(2000000000))`,
	"enumerate a range":         `return enumerate(range(2000000000))`,
	"zip ranges":                `return zip(range(2000000000), range(2000000000))`,
	"bytes of a range":          `return bytes(range(2000000000))`,
	"any of a range":            `return any([0] * 60000) or all(range(1, 2000000000))`,
	"max of a range":            `return max(range(2000000000))`,
	"union with a range":        `return set().union(range(2000000000))`,
	"difference with a range":   `return set().difference(range(2000000000))`,
	"spread a range":            "def f(*a):\n        return len(a)\n    return f(*range(2000000000))",
	"add a range":               "x = []\n    x += range(2000000000)",
	"list of codepoints":        "l = []\n    s = \"x\" * 1000000\n    for _ in range(1000000):\n        l.append(list(s.codepoints()))",
	"keep slices":               "x = [0] * 60000\n    l = []\n    for _ in range(1000000):\n        l.append(x[:])",
	"keep strings":              "s = \"x\" * 1000000\n    l = []\n    for _ in range(1000000):\n        l.append(s + \"a\")",
	"keep strings in place":     "s = \"x\" * 1000000\n    l = []\n    for _ in range(1000000):\n        s += \"a\"\n        l.append(s)",
	"keep upper":                "s = \"x\" * 1000000\n    l = []\n    for _ in range(1000000):\n        l.append(s.upper())",
	"keep unions":               "s = set(range(10000))\n    l = []\n    for _ in range(1000000):\n        l.append(s | s)",
	"keep dict unions":          "s = {i: i for i in range(10000)}\n    l = []\n    for _ in range(1000000):\n        l.append(s | s)",
	"keep items":                "s = {i: i for i in range(10000)}\n    l = []\n    for _ in range(1000000):\n        l.append(s.items())",
	"keep keys":                 "s = {i: i for i in range(10000)}\n    l = []\n    for _ in range(1000000):\n        l.append(s.keys())",
	"keep json":                 "s = [0] * 60000\n    l = []\n    for _ in range(1000000):\n        l.append(json.encode(s))",
	"encode a graph":            "x = []\n    for _ in range(60):\n        x = [x, x]\n    return json.encode(x)",
	"decode digits":             `return json.decode("9" * 1000000)`,
	"decode maps":               "for _ in range(1000):\n        json.decode(\"[\" + \"{},\" * 200000 + \"{}]\")",
	"keep big ints":             "x = (1 << 511) * (1 << 511) * (1 << 511)\n    l = []\n    for _ in range(1000000):\n        l.append(x + 1)",
	"search a list":             "l = [\"y\" * 1000] * 60000\n    s = \"x\" * 1000\n    for _ in range(1000000):\n        s in l",
	"search a string":           "l = \"y\" * 1000000\n    for _ in range(1000000):\n        \"x\" in l",
	"pop the first":             "l = list(range(60000))\n    for _ in range(1000000):\n        l.insert(0, l.pop())",
	"emit for ever":             "while True:\n        ctx.emit(\"a\")",
	"emit much":                 "s = \"x\" * 1000000\n    while True:\n        ctx.emit(\"a\", s)",
	"effects for ever":          "while True:\n        ctx.effect(\"a\")",
	"timers for ever":           "while True:\n        ctx.timer(1, \"a\")",
	"deep state":                "x = []\n    for _ in range(100000):\n        x = [x]\n    return x",
	"print a deep value":        "x = []\n    for _ in range(100000):\n        x = [x]\n    return str(x)",
	"large state":               `return ["x" * 1000] * 1000`,
	"dict of a list":            `return dict([("x" * 1000000, 1)] * 60000)`,
	"update by a list":          "d = {}\n    d.update([(\"x\" * 1000000, 1)] * 60000)",
	"prefixes":                  "s = \"x\" * 1000000\n    for _ in range(1000000):\n        s.startswith((s, s) * 1000)",
}

func TestHostileReducersFailWithinTheirLimits(t *testing.T) {
	for name, body := range hostile {
		t.Run(name, func(t *testing.T) {
			r := instance(t, "def reduce(ctx, state, event):\n    "+body+"\n")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var out reducer.Output
			in := input(t, "", "{}")
			in.Limits.State, in.Limits.Value = 256<<10, 1<<20
			err := r.Reduce(in, &out)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, reducer.ErrLimit)
			require.Regexp(t, `^test\.star:\d+:\d+: .*limit exceeded: `, err.Error())
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(maxHostileBytes))
		})
	}
}

// TestTopLevelHasTheLimitsOfAStep: a reducer may raise them for what it computes once. Its tight ones are
// those of its steps alone.
func TestTopLevelHasTheLimitsOfAStep(t *testing.T) {
	raised := manifest.ReducerLimits{Gas: 10_000_000, Value: 64 << 20}
	for top, limit := range map[string]string{
		`x = "x" * (32 << 20)`:                "",
		`x = "x" * ((32 << 20) + 1)`:          "limits.value is 33554432",
		`x = [i for i in range(1000000)]`:     "limits.gas is 1000000 steps",
		`x = ["x" * 100000 for _ in [1] * 9]`: "",
	} {
		p, err := star.Compile(star.Version, "test.star", []byte(top+"\ndef reduce(ctx, state, event):\n    pass\n"))
		require.NoError(t, err)
		for _, limits := range []manifest.ReducerLimits{{}, {Gas: 1, Value: 1}, raised} {
			if _, _, err = p.Start(reducer.Setting{Limits: limits}, nil); limit == "" || limits == raised {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, limit)
		}
	}
}

func TestHostileInputIsBounded(t *testing.T) {
	r := instance(t, "def reduce(ctx, state, event):\n    return len(event.data)\n")
	for name, json := range map[string]string{
		"a million empty maps": "[" + strings.Repeat("{},", 1<<20) + "{}]",
		"keys of one bucket":   collidingKeys(10000),
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, "", json)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var out reducer.Output
			err := r.Reduce(in, &out)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, reducer.ErrLimit)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(maxHostileBytes))
		})
	}
}

// collidingKeys returns a JSON object of n keys whose FNV-1a hashes agree in
// their lowest 12 bits.
func collidingKeys(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, found := 0, 0; found < n; i++ {
		key := fmt.Sprintf("%x", i)
		h := uint32(2166136261)
		for _, c := range []byte(key) {
			h = (h ^ uint32(c)) * 16777619
		}
		if h&0xfff != 0 {
			continue
		}
		if found > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:1", key)
		found++
	}
	b.WriteByte('}')
	return b.String()
}

// TestModulesThatCannotBeFrozen covers what would end the process by recursion.
func TestModulesThatCannotBeFrozen(t *testing.T) {
	for name, source := range map[string]string{
		"a closure that holds itself": "def f():\n    def g():\n        return g()\n    return g\nG = f()\n",
		"a list of such":              "def f():\n    def g():\n        return g()\n    return [g]\nG = f()\n",
		"a graph of closures":         "def f(x):\n    return lambda: x\ndef h():\n    x = 1\n    for _ in range(100):\n        x = [f(x), f(x)]\n    return x\nG = h()\n",
		"a deep list":                 "def h():\n    x = []\n    for _ in range(1000):\n        x = [x]\n    return x\nG = h()\n",
		"a module that loops":         "def h():\n    while True:\n        pass\nG = h()\n",
		"a module that is too large":  "G = [0] * 100000000\n",
	} {
		t.Run(name, func(t *testing.T) {
			p, err := compile(source + "def reduce(ctx, state, event):\n    return None\n")
			require.NoError(t, err)
			_, err = p.Reducer()
			require.Error(t, err)
			require.Regexp(t, `^test\.star:\d+:\d+: `, err.Error())
		})
	}
}

// Items that are made for a list count as memory, and so does the room for those of what
// does not tell how long it is.
func TestItemsThatAreMadeCountAsMemory(t *testing.T) {
	for _, items := range []string{"elems", "codepoints", "codepoint_ords"} {
		r := instance(t, "def reduce(ctx, state, event):\n    s = \"x\" * 1900000\n    l = []\n    while True:\n        l.append(list(s."+items+"()))\n")
		in := input(t, "", "{}")
		in.Limits.Gas, in.Limits.Value, in.Limits.Memory = 1<<40, 32<<20, 128<<20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.ErrorContains(t, r.Reduce(in, new(reducer.Output)), "limits.memory")
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, in.Limits.Memory*5/4, items)
	}
}
