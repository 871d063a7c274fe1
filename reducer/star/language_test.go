package star_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// same are bodies that must do what they do in plain Starlark: rewriting
// changes prices, not meanings.
var same = []string{
	`return [1 + 2, 5 - 7, 3 * 4, 7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 / 2, 1 << 70, (1 << 70) >> 68, 6 & 3, 6 | 3, 6 ^ 3, ~5]`,
	"a = 7\n    b = 2\n    return [a + b, a - b, a * b, a // b, a % b, a / b, a << b, a >> b, a & b, a | b, a ^ b, a < b, a == b, a != b, a >= b]",
	"a = 7.5\n    b = 2\n    return [a + b, a - b, a * b, a // b, a % b, a / b, a < b, a == b, b * 1.5, 1.5 * b]",
	"a = \"x\"\n    b = \"yz\"\n    return [a + b, a * 3, 3 * b, a < b, a in b, \"y\" in b, a not in b, a == \"x\", \"x\" != a, b[1], b[-1], b[::-1], b[0:1]]",
	"a = [1, 2]\n    b = [3]\n    return [a + b, a * 2, 2 * b, a < b, 1 in a, 3 not in a, a == [1, 2], a[0], a[-1], a[::-1], a[1:]]",
	"a = (1, 2)\n    b = (3,)\n    return [list(a + b), list(a * 2), a < b, 1 in a, a == (1, 2), len((a, b)), list(a[1:])]",
	"x = 1\n    x += 2\n    x -= 1\n    x *= 10\n    x //= 3\n    x %= 4\n    x <<= 3\n    x |= 1\n    x ^= 2\n    x &= 15\n    x >>= 1\n    return x",
	"x = [1]\n    y = x\n    x += [2]\n    x += (3,)\n    x += range(2)\n    return [x, y]",
	"x = (1,)\n    y = x\n    x += (2,)\n    return [list(x), list(y)]",
	"x = {\"a\": 1}\n    y = x\n    x |= {\"b\": 2}\n    return [x, y, {\"a\": 1} | {\"a\": 2}]",
	"log = []\n    def t(n, v):\n        log.append(n)\n        return v\n    d = {\"k\": [10, 20]}\n    t(1, d)[t(2, \"k\")][t(3, 1)] += t(4, 5)\n    return [log, d]",
	"log = []\n    def t(n, v):\n        log.append(n)\n        return v\n    r = t(1, 2) + t(2, 3) * t(3, 4)\n    s = t(4, [1]) == t(5, [1])\n    q = t(6, 1) in t(7, [1])\n    return [log, r, s, q]",
	"log = []\n    def t(n, v):\n        log.append(n)\n        return v\n    r = t(1, \"-\").join(t(2, [\"a\", \"b\"]))\n    s = t(3, \"{} {x}\").format(t(4, 1), x=t(5, 2))\n    return [log, r, s]",
	"d = {\"n\": 1}\n    def f():\n        d[\"n\"] = 100\n        return 5\n    d[\"n\"] += f()\n    return d",
	"x = [1, 2, 3]\n    def f():\n        x[0] = 50\n        return 1\n    x[0] += f()\n    return x",
	"a, b = 1, 2\n    a, b = b, a\n    (c, [d, e]) = 3, (4, 5)\n    return [a, b, c, d, e]",
	`return [[x * y for x in [1, 2, 3] if x != 2 for y in (4, 5)], {str(k): k * k for k in range(4)}, len({x % 3: 1 for x in range(9)})]`,
	`return [s.strip() for s in " a , b ,c".split(",")] + "a b  c".split() + "a.b.c".rsplit(".", 1) + "x\ny\n".splitlines()`,
	`return ["aXbX".replace("X", "--"), "aXbX".replace("X", "", 1), "abc".upper(), "ABC".lower(), "a b".title(), "abc".capitalize(), "xxaxx".strip("x"), "xa".lstrip("x"), "ax".rstrip("x")]`,
	`return ["abcabc".find("c"), "abcabc".rfind("c"), "abcabc".count("b"), "abc".index("c"), "abc".startswith("ab"), "abc".endswith(("x", "bc")), "abc".isalpha(), "12".isdigit(), "a1".isalnum(), " ".isspace(), "A".isupper(), "a".islower(), "Ab".istitle()]`,
	`return [list("a-b-c".partition("-")), list("a-b-c".rpartition("-")), "abc".removeprefix("a"), "abc".removesuffix("c"), list("abc".elems()), list("héy".codepoints()), list("ab".elem_ords())]`,
	`return ["%s is %d years, %r %x %o %e %%" % ("bob", 42, "q", 255, 8, 1.5), "%(a)s-%(b)s" % {"a": 1, "b": [1, "x"]}, "%s" % "one", "%c%c" % (65, "b")]`,
	`return ["{} {}".format(1, [2, "x"]), "{1} {0}".format("a", "b"), "{a!r} {{}}".format(a="x")]`,
	`return [str([1, "a", (2,), {"k": None}, 1.0, True, b"xy"]), repr("q\n"), str("plain"), str(b"abc"), str(1 << 100), repr(range(3)), str(set([1, 2]))]`,
	"d = {\"b\": 1, \"a\": 2}\n    d.update([(\"c\", 3)], e=4)\n    d.update({\"f\": 5})\n    d.setdefault(\"g\", 6)\n    d.setdefault(\"a\", 7)\n    v = d.pop(\"b\")\n    w = d.pop(\"zz\", 9)\n    p = d.popitem()\n    return [d, v, w, list(p), d.get(\"q\"), d.get(\"q\", 1), d.get(\"c\"), d.keys(), d.values(), [list(i) for i in d.items()], \"a\" in d]",
	"l = [3, 1, 2]\n    l.append(5)\n    l.extend([7, 8])\n    l.extend(range(2))\n    l.insert(0, 9)\n    l.remove(1)\n    v = l.pop()\n    w = l.pop(0)\n    return [l, v, w, l.index(5), sorted(l), sorted(l, reverse=True), sorted(l, key=lambda x: -x), list(reversed(l)), min(l), max(l), min(3, 1), max([1, 5], key=lambda x: -x)]",
	"s = set([1, 2, 3])\n    s.add(4)\n    s.discard(1)\n    s.remove(2)\n    return [list(s), list(s | set([9])), list(s & set([3])), list(s - set([3])), list(s ^ set([3, 5])), list(s.union([8])), list(s.intersection([3])), list(s.difference([3])), list(s.symmetric_difference([3, 7])), s.issubset([3, 4, 5]), s.issuperset([3]), 3 in s, s == set([4, 3]), s < set([3, 4, 5])]",
	`return [[list(p) for p in enumerate(["a", "b"], 1)], [list(p) for p in zip([1, 2, 3], ["a", "b"])], zip(), any([0, 1]), any([]), all([1, 0]), all([]), list(range(5, 0, -2)), len(range(10)), bool([]), abs(-3), len("abc")]`,
	`return [int("42"), int("-7"), int("ff", 16), int("0x10", 0), int(3.9), float("1.5"), float(2), hash("abc"), ord("a"), chr(98), type([]), type(1), dict([("a", 1)], b=2), dict({"x": 1}), list((1, 2)), list("ab".elems()), tuple([1]) == (1,), list(bytes("ab").elems()), list(bytes([1, 2]).elems())]`,
	"def f(a, b=2, *args, c=3, **kw):\n        return [a, b, list(args), c, kw]\n    return [f(1), f(1, 5, 6, 7, c=8, d=9), f(*[1, 2, 3], **{\"z\": 1})]",
	"f = lambda x, *a: x + len(a)\n    g = [].append\n    j = \",\".join\n    return [f(1, 2, 3), j([\"a\", \"b\"]), getattr(\"x\", \"upper\")(), getattr(1, \"nope\", 5), hasattr([], \"append\"), type(g)]",
	"x = 0\n    n = 0\n    while n < 10:\n        n += 1\n        if n % 2 == 0:\n            continue\n        if n > 7:\n            break\n        x += n\n    return x",
	"def fib(n):\n        return n if n < 2 else fib(n - 1) + fib(n - 2)\n    return fib(12)",
	"d = {(1, \"a\"): 1, 2: 3}\n    return [d[(1, \"a\")], d[2], (1, \"a\") in d]",
	`return [sorted([[2, 1], [1, 9], [1, 2]]), sorted(["b", "a"]), sorted([(1, "x"), (1, "a")], key=lambda p: p[0]) == [(1, "x"), (1, "a")], sorted([1, 1.5, 0])]`,
	"t = (1, (2, (3,)))\n    return [str(t), t == (1, (2, (3,))), hash(str(t))]",
	`return [None == None, None != 1, True == 1, not [], [] == (), {} == {}, {"a": [1]} == {"a": [1]}, [1, 2] < [1, 3]]`,
}

func TestRewritingKeepsTheMeaning(t *testing.T) {
	for _, body := range same {
		source := "def reduce(ctx, state, event):\n    " + body + "\n"
		options := &syntax.FileOptions{Set: true, While: true, Recursion: true}
		thread := new(starlark.Thread)
		globals, err := starlark.ExecFileOptions(options, thread, "test.star", source, nil)
		require.NoError(t, err, body)
		want, err := starlark.Call(thread, globals["reduce"], starlark.Tuple{starlark.None, starlark.None, starlark.None}, nil)
		require.NoError(t, err, body)
		got, err := eval(t, "    result = str(inner())\n    return result\ndef inner():\n    "+body+"\n")
		require.NoError(t, err, body)
		text := data(t, got)
		s, err := reducer.Decode[string](text)
		require.NoError(t, err)
		require.Equal(t, want.String(), s, body)
	}
}

// failing are bodies that fail, with the place and text of their error.
var failing = map[string]string{
	`x = 1 + "a"`:                                    `test.star:2:11: unknown binary op: int + string`,
	"x = 1\n    y = \"a\"\n    z = x + y":            `test.star:4:11: unknown binary op: int + string`,
	"x = 1\n    y = \"a\"\n    x += y":               `test.star:4:7: unknown binary op: int + string`,
	"x = {}\n    y = \"k\"\n    x[y] += 1":           `test.star:4:6: key "k" not in dict`,
	"x = {}\n    x[\"k\"] += \"a\"":                  `test.star:3:6: key "k" not in dict`,
	`return state.nope`:                              `test.star:2:17: NoneType has no .nope field or method`,
	`return [].nope()`:                               `test.star:2:14: list has no .nope field or method`,
	`return [].join([])`:                             `test.star:2:19: list has no .join field or method`,
	`return [].join`:                                 `test.star:2:14: list has no .join field or method`,
	`return getattr([], "join")`:                     `test.star:2:19: getattr: list has no .join field or method`,
	`return ",".join([1])`:                           `test.star:2:20: join: in list, want string, got int`,
	`fail("no", 1, [2])`:                             `test.star:2:9: no 1 [2]`,
	`return [1][5]`:                                  `test.star:2:15: list index 5 out of range [-1:0]`,
	`return ctx.random(0)`:                           `test.star:2:22: random: n is 0, want at least 1 and at most 64 bits`,
	`ctx.timer(0, "a")`:                              `test.star:2:14: timer: after_ticks is 0, want at least 1 and at most 64 bits`,
	`ctx.emit("é"[:1])`:                              `test.star:2:13: emit: for parameter name: got a string that is not UTF-8`,
	`ctx.emit("a", {"x": [1, set()]})`:               `test.star:2:13: data.x[1]: a set is no data: use None, bool, int, float, string, bytes, list, tuple or dict`,
	`return {"items": [0, {"price": float("nan")}]}`: `test.star:1:1: state.items[1].price: a float that is nan has no canonical form`,
	`return {"a": float("inf")}`:                     `test.star:1:1: state.a: a float that is +inf has no canonical form`,
	`return {"a": {1: 2}}`:                           `test.star:1:1: state.a: a key that is int, not string`,
	`return {"a": "é"[:1]}`:                          `test.star:1:1: state.a: a string that is not UTF-8; use bytes`,
	`return [reduce]`:                                `test.star:1:1: state[0]: a function is no data: use None, bool, int, float, string, bytes, list, tuple or dict`,
	`return ctx`:                                     `test.star:1:1: state: a ctx is no data: use None, bool, int, float, string, bytes, list, tuple or dict`,
	`return json.decode("{")`:                        `test.star:2:23: canon: $: not JSON: unexpected EOF`,
	`return math.sqrt(-1)`:                           `test.star:2:21: there is no square root of -1`,
	`return set().difference()`:                      `test.star:2:28: difference: got 0 arguments, want 1`,
}

func TestErrorsNameTheirPlace(t *testing.T) {
	for body, want := range failing {
		_, err := eval(t, "    "+body+"\n")
		require.EqualError(t, err, want, body)
		require.NotErrorIs(t, err, reducer.ErrLimit)
	}
}

func TestErrorsInFunctionsNameTheInnermostLine(t *testing.T) {
	_, err := eval(t, "    return f(1)\ndef f(x):\n    return x.a\n")
	require.EqualError(t, err, "test.star:4:13: int has no .a field or method (in f, called by reduce at test.star:2)")
}

func TestSyntaxErrors(t *testing.T) {
	ok := "\ndef reduce(ctx, state, event):\n    return None\n"
	for source, want := range map[string]reducer.SyntaxError{
		"\xef\xbb\xbfdef reduce(ctx, state, event):\n  pass\n": {Line: 1, Column: 1, Msg: "text begins with a byte order mark; save it as UTF-8 without one"},
		"def reduce(ctx, state, event):\n  return \"\xff\"\n":  {Line: 2, Column: 1, Msg: "text is not UTF-8"},
		"x = ": {Line: 1, Column: 5},
		"def reduce(ctx, state):\n    return 1\n": {Line: 1, Column: 5},
		"x = 1\n":                               {Line: 1, Column: 1},
		"load(\"a\", \"b\")" + ok:               {Line: 1, Column: 6},
		"x = y" + ok:                            {Line: 1, Column: 5},
		"x = 1\nx = 2" + ok:                     {Line: 2, Column: 1},
		"def f():\n    None = 1" + ok:           {Line: 2, Column: 5},
		"def f(True):\n    pass" + ok:           {Line: 1, Column: 7},
		"x = [False for False in []]" + ok:      {Line: 1, Column: 16},
		"for x in []:\n    pass" + ok:           {Line: 1, Column: 1},
		"x = " + strings.Repeat("9", 1300) + ok: {Line: 1, Column: 5},
	} {
		_, err := compile(source)
		var e *reducer.SyntaxError
		require.ErrorAs(t, err, &e, source)
		require.Equal(t, "test.star", e.File)
		require.Equal(t, [2]int{want.Line, want.Column}, [2]int{e.Line, e.Column}, "%s: %v", source, err)
	}
}

func TestDeepProgramsAreRefused(t *testing.T) {
	for _, source := range []string{
		"x = 1" + strings.Repeat(" + 1", 200000),
		"x = [" + strings.Repeat("-", 200000) + "1]",
		"x = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"x = a" + strings.Repeat(".a", 200000),
		"x = a" + strings.Repeat("[0]", 200000),
		"x = a" + strings.Repeat(".strip()", 100000),
		"x = " + strings.Repeat("lambda: ", 100000) + "1",
		"x = " + strings.Repeat("not ", 100000) + "1",
		"x = " + strings.Repeat("a if a else ", 80000) + "1",
		"def f(a):\n    if a:\n        pass\n" + strings.Repeat("    elif a:\n        pass\n", 20000),
		"x = 1 #" + strings.Repeat("x", star.MaxSourceBytes),
	} {
		_, err := compile(source + "\ndef reduce(ctx, state, event):\n    return None\n")
		var e *reducer.SyntaxError
		require.ErrorAs(t, err, &e)
	}
}
