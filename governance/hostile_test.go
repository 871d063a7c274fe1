package governance

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/reducer"
)

// times repeats an item as often as n bytes have room for it.
func times(item string, n int) string { return strings.Repeat(item, n/len(item)) }

// hostileParams are size bytes each, about, of what there can be most of.
func hostileParams(t testing.TB, size int) map[string]reducer.Data {
	array := func(n int) []byte { return canon.AppendArray(nil, n) }
	numbered := func(value byte) []byte {
		n := size / 16
		b := canon.AppendMap(nil, n)
		for i := range n {
			b = append(canon.AppendText(b, fmt.Sprintf("%06x", i)), value)
		}
		return b
	}
	nested := func() []byte { // lists of lists
		item := []byte{0x01}
		for len(item) < size/256 {
			next := canon.AppendArray(nil, 4)
			for range 4 {
				next = append(next, item...)
			}
			item = next
		}
		b := array(size / 2 / len(item))
		for range size / 2 / len(item) {
			b = append(b, item...)
		}
		return b
	}
	keyed := func(fields ...any) reducer.Data {
		m := map[string]canon.Raw{}
		for i := 0; i < len(fields); i += 2 {
			m[fields[i].(string)] = fields[i+1].([]byte)
		}
		b, err := canon.Marshal(m)
		require.NoError(t, err)
		return b
	}
	text := func(s string) []byte { return canon.AppendText(nil, s) }
	half := size / 2
	floats := array(size / 9)
	for i := range size / 9 {
		var err error
		floats, err = canon.AppendFloat(floats, 1.1+float64(i))
		require.NoError(t, err)
	}
	great := append([]byte{0xc2}, canon.AppendBytes(nil, []byte(strings.Repeat("\x7f", 1700)))...)
	greats := array(size / len(great))
	for range size / len(great) {
		greats = append(greats, great...)
	}
	return map[string]reducer.Data{
		"small ints":  keyed("a", append(array(size), times("\x01", size)...), "s", text("x"), "b", append(array(1), 1)),
		"two lists":   keyed("a", append(array(half), times("\x01", half)...), "b", append(array(half), times("\x01", half)...), "s", text("x")),
		"empty maps":  keyed("a", append(array(size), times("\xa0", size)...), "s", text("x"), "b", append(array(1), 1)),
		"empty lists": keyed("a", append(array(size), times("\x80", size)...), "s", text("x"), "b", append(array(1), 1)),
		"floats":      keyed("a", floats, "s", text("1.5"), "b", array(0)),
		"greats":      keyed("a", greats, "s", text("1"), "b", great),
		"texts":       keyed("a", append(array(size/2), times("\x61x", size)...), "s", text("x"), "b", append(array(1), "\x61x"...)),
		"keys":        keyed("a", numbered(0x01), "s", text("000abc"), "b", numbered(0x01)),
		"maps in map": keyed("a", numbered(0xa0), "s", text("000abc"), "b", array(0)),
		"nested":      keyed("a", nested(), "b", nested(), "s", text("x")),
		"text a":      keyed("a", text(times("a", half)), "b", text(times("a", half-1)+"b"), "s", text(times("a", 200)+"b")),
		"text é":      keyed("a", text(times("é", half)), "b", text(times("é", half)), "s", text("é")),
		"digits":      keyed("a", text(times("9", half)), "b", text("0."+times("9", half)), "s", text("9")),
		"bytes":       keyed("a", canon.AppendBytes(nil, []byte(times("a", half))), "b", canon.AppendBytes(nil, []byte(times("a", half))), "s", text("x")),
		"classes":     keyed("a", text(times(`(?i)\pL`, 1000)), "b", text(times(`[\pL\pN]`, 1000)), "s", text(times("x", half))),
		"repeats":     keyed("a", text(`((((a{30}){30}){30}){30}){30}`), "b", text(times("a?", 500)+times("a", 500)), "s", text(times("a", half))),
		"folds":       keyed("a", text("x"), "s", text("x"), "b", text(times(`(?i)[\x{42}-\x{1e942}]`, 1000))),
		"fold":        keyed("a", text("x"), "s", text("x"), "b", text(`(?i)[B-\x{1e942}]`)),
		"folded":      keyed("a", text("x"), "s", text("x"), "b", text(`(?i)\pL\PN[^\pM]`)),
		"pattern":     keyed("a", text("x"), "s", text(times("x", 1000)), "b", text(`[^\pL]`)),
		"onepass":     keyed("a", text("^"+times(`(?:a|b|c|[d-f])x`, 900)+"$"), "b", text(times("(?:(?:(?:", 300)+"a"+times(")*)*)*", 300)), "s", text(times("abcdefx", half))),
	}
}

// hostileRules are conditions whose work is not what they look like.
func hostileRules() []string {
	const a, b, s = "intent.params.a", "intent.params.b", "intent.params.s"
	rules := []string{
		a + ".all(x, true)", a + ".exists(x, false)", a + ".exists_one(x, x == x)", a + ".map(x, x).size() > 0",
		a + ".filter(x, true).size() > 0", a + ".map(x, [x]).size() > 0", a + ".map(x, {\"k\": x}).size() > 0",
		a + ".all(x, " + a + ".all(y, true))", a + ".all(x, " + a + ".exists(y, y == x))", a + ".all(x, x in " + a + ")",
		a + ".all(x, " + a + " == " + b + ")", a + ".all(x, size(" + a + ") > 0)", a + " == " + b, a + " == " + a, a + " != " + b,
		"[" + a + "] == [" + b + "]", "{\"k\": " + a + "} == {\"k\": " + b + "}", a + " in [" + b + ", " + a + "]", b + " in " + a, s + " in " + a,
		a + "[" + "size(" + a + ") - 1] == 1", "[0, 1, 2, 3].all(i, " + a + "[i] == " + a + "[i])", a + "[" + s + "] == 1",
		a + ".all(x, " + a + "[" + s + "] == 1)", a + ".all(k, " + a + "[k] == 1)", "has(" + a + ".x) || true", a + ".all(x, has(intent.params.a))",
		a + ".all(x, " + s + ".size() > 0)", "size(" + a + ") > 0", a + " < " + b, a + " <= " + a, a + " + " + b + " == " + b + " + " + a,
		a + " + " + a + " + " + a + " + " + a + " == " + s, "(" + a + " + " + b + ").size() > 0", a + ".contains(" + s + ")", a + ".contains(" + b + ")",
		a + ".startsWith(" + a + ")", a + ".endsWith(" + b + ")", "int(" + a + ") > 0", "uint(" + a + ") > 0u", "double(" + a + ") > 0.0",
		"double(" + b + ") > 0.0", "bool(" + a + ")", "bytes(" + a + ").size() > 0", "string(bytes(" + a + ")) == " + a, "string(" + a + ") == " + s,
		"type(" + a + ") == list", "dyn(" + a + ") == dyn(" + b + ")", s + ".matches(" + a + ")", s + ".matches(" + b + ")", a + ".matches(" + s + ")",
		a + ".matches(" + a + ")", a + ".matches(\"(a*)*b\")", a + ".matches(\".*.*.*.*x\")", a + ".matches(\"^(a|aa)+$\")", a + ".matches(\"(a?){50}a{50}\")",
		a + ".matches(\"(?i)\\\\pL+é\")", a + ".matches(\"[^b]*b\")", a + ".matches(\"a{1000}\")", a + ".matches(\"^a\")", a + ".matches(\"a$\")", a + ".matches(\"\\\\ba\\\\b\")",
		s + ".matches(\"(x+x+)+y\")", s + ".matches(\"(?:a|b|c|d|e|f|x)*z\")", "[" + s + "].all(x, x.matches(\"" + times("(a|b)?", 600) + "\"))",
		a + ".all(x, " + s + ".matches(\"x\"))", a + ".all(x, string(x) == \"1\")", a + ".all(x, x + 1 > 0)", a + ".all(x, x < 2 && x > 0 && x != 7)", a + ".all(x, x * 2 / 2 % 3 - 1 < 2)",
		a + ".all(x, double(x) < 2.0)", a + ".all(x, type(x) == int)", a + ".map(x, string(x)).size() > 0", a + ".all(x, x ? true : false)", a + ".all(x, !(x == 1) || x == 1)",
		a + ".all(x, -x < 1)", a + ".all(x, int(\"9\") > x)", a + ".all(x, int(\"z\" + " + s + ") > x || true)", a + ".all(x, [1, 2, x].size() == 3)", a + ".all(x, 1 / 0 > x || true)",
		a + ".all(x, {1: x, 2: x}[1] == x)", a + ".all(x, x.y || true)", a + ".all(x, {}.y || true)", a + ".all(x, {\"a\": 1}[" + s + "] == 1 || true)", a + ".all(x, " + s + "[x] || true)",
		a + ".map(x, " + a + ").size() > 0", a + ".map(x, " + a + ") == " + a + ".map(x, " + b + ")", a + ".map(x, " + a + ").all(y, y.size() > 0)", a + ".map(x, x).map(x, x).map(x, x).size() > 0",
		a + ".all(x, " + a + ".size() == " + b + ".size())", a + ".filter(x, x in " + b + ").size() > 0", "[1,2,3,4,5,6,7,8,9].all(x, " + a + " == " + b + ")",
		"[1,2,3,4,5,6,7,8,9].all(x, " + a + ".contains(\"ab\") || true)", "[1,2,3,4,5,6,7,8,9].all(x, (" + a + " + " + a + ").size() > 0)", "[1,2,3,4,5,6,7,8,9].map(x, " + a + " + " + a + ").size() > 0",
		"[1,2,3,4,5,6,7,8,9].map(x, intent.params.map(k, k)).size() > 0", "intent.params.map(k, intent.params[k]).size() == 3", "[intent.params, intent.params] == [intent.params, intent.params]",
		"intent.params in [1, 2, intent.params]", "{1: intent.params}.map(k, k) == [1]", "[[1, 2], [3]].all(x, x.all(y, " + a + ".all(z, z == y)))",
	}
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 40), ",") + "]"
	for _, body := range []string{"true", "x0 == x1", a + " == " + b, "size(" + a + ") > 0", s + " == " + s, "1 + x0 > x1", "[x0, x1] == [x1, x0]", "{x0: x1} == {x1: x0}"} {
		nest := body
		for i := range 5 {
			nest = fmt.Sprintf("%s.all(x%d, %s)", list, i, nest)
		}
		rules = append(rules, nest)
	}
	// What does not show as a text, and errors that nobody sees.
	for _, body := range []string{
		"{}[g] == 1 || true", "string(g) == s", "g < 5e-324 || true", "g == g", "g in [g, g]", "{}[bytes(s)] == 1 || true", "{}[s] == 1 || true",
		"double(g) > 0.0", "{1: 1}[g] == 1 || true", "s.matches(p)", "'x'.matches(p)", "int(s) == 1 || true", "[g] == [g] && {1: g} == {1: g}",
	} {
		for _, g := range []string{a + "[0]", b, s} {
			rules = append(rules, fmt.Sprintf("[%s].all(g, [%s].all(s, [%s].all(p, %s.all(x, %s.all(y, %s)))))", g, s, b, list, list, body))
		}
	}
	grow := `""`
	for range 20 { // a text that doubles
		grow = fmt.Sprintf("[%s].map(t, t + t + \"x\")[0]", grow)
	}
	return append(rules, grow+" != \"\"", strings.Repeat("!", 200)+"true", strings.TrimSuffix(strings.Repeat("true && ", 1500), " && "))
}

// No rule takes more than its steps, whatever the params are: it is evaluated, or it
// denies and says that it took too many. What the steps stand for is counted here as
// memory; CEL_TIMES=1 makes params of a mebibyte, and prints what the worst take of the
// processor.
func TestHostileRulesStayWithinTheirSteps(t *testing.T) {
	size := 1 << 13
	if os.Getenv("CEL_TIMES") != "" {
		size = 1 << 20
	}
	all := hostileParams(t, size)
	require.GreaterOrEqual(t, len(hostileRules()), 100)
	type took struct {
		cpu  time.Duration
		what string
	}
	var worst []took
	over := 0
	for i, when := range hostileRules() {
		g := gateOf(t, allow("hostile", when))
		for j, name := range slices.Sorted(maps.Keys(all)) {
			if (i+j)%3 != 0 && size < 1<<20 {
				continue
			}
			params := all[name]
			req := request(t, "tool.x", "null")
			req.Params = params
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			cpu := processor()
			d := g.Decide(req)
			cpu = processor() - cpu
			runtime.ReadMemStats(&after)
			if d.Verdict == Deny && strings.Contains(d.Reason, "it takes more than") {
				over++
				require.Equal(t, []string{"hostile"}, d.Rules)
				require.Equal(t, CodePolicyError, d.Code)
			}
			require.Less(t, len(d.Reason), 512)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(128<<20), "%s of %.200s", name, when)
			worst = append(worst, took{cpu, fmt.Sprintf("%s: %.150s %s", name, when, d.Reason)})
		}
	}
	require.Greater(t, over, 30, "denied for their steps")
	if os.Getenv("CEL_TIMES") != "" {
		slices.SortFunc(worst, func(x, y took) int { return cmp.Compare(y.cpu, x.cpu) })
		for _, x := range worst[:40] {
			t.Logf("%8s %.300s", x.cpu, x.what)
		}
	}
}

func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
