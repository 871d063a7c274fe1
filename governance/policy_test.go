package governance

import (
	"bytes"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func TestPolicyFaultsHaveTheirPlace(t *testing.T) {
	for _, c := range []struct {
		when         string
		line, column int
	}{
		{`intent.knd == "x"`, 1, 7},
		{`intent.amount > 1`, 1, 1},
		{`has(intent.tag)`, 1, 5},
		{"true &&\n  cell.name == ''", 2, 7},
		{`intent.kind == "é" && world.tick == 1`, 1, 28},
		{`budget.coins > 1`, 1, 7},
		{`effect.kind == ""`, 1, 1},
		{`receipt.status == ""`, 1, 1},
		{`intent`, 1, 1},
		{`intent.kind == 3`, 1, 13},
		{`intent.kind`, 1, 1},
		{`1`, 1, 1},
		{``, 1, 1},
		{`(`, 1, 2},
		{`intent.kind.matches("(")`, 1, 21},
		{`intent.kind.matches("((a{100}){100}){10}")`, 1, 21},
		{`intent.kind.matches("` + strings.Repeat("a{1000}", 11) + `")`, 1, 21},
		{`int("x") == 1`, 1, 4},
		{`timestamp("2026-01-01T00:00:00Z") == timestamp("2026-01-01T00:00:00Z")`, 1, 10},
		{`duration("1s") == duration("1s")`, 1, 9},
		{`google.protobuf.Timestamp{}.getHours("Europe/Paris") == 1`, 1, 37},
		{`google.protobuf.Struct{fields: {"b": 1, "a": 2}}.map(k, k)[0] == "a"`, 1, 23},
		{`now() == 1`, 1, 4},
		{strings.Repeat(" ", MaxPolicyLen) + anything, 1, 1},
		{strings.Repeat("(", 1000) + anything + strings.Repeat(")", 1000), 1, 1},
	} {
		err := CheckPolicy(c.when)
		var at *PolicyError
		require.ErrorAs(t, err, &at, "%.100s", c.when)
		require.NotEmpty(t, at.Msg)
		require.Equal(t, []int{c.line, c.column}, []int{at.Line, at.Column}, "%.100s: %s", c.when, err)
	}
}

func TestUnknownFieldIsExplained(t *testing.T) {
	for when, want := range map[string]string{
		`intent.knd == ""`:  "intent.kind",
		`intent.amount > 1`: "cap, class, kind, params, step, tag",
		`has(intent.tag)`:   "cap, class, kind, params, step, tag",
		`intent == 1`:       "cap, class, kind, params, step, tag",
	} {
		require.ErrorContains(t, CheckPolicy(when), want)
	}
}

func TestPolicySeesTheRequest(t *testing.T) {
	params := `{"amount": 500, "price": 1.5, "neg": -3, "huge": 18446744073709551615, "on": true, "none": null,
		"list": [1, "two", [3]], "map": {"k": {"deep": "v"}}, "text": "déjà"}`
	for _, when := range []string{
		`intent.kind == "tool.x" && intent.tag == "t" && intent.cap == "" && intent.step == 3`,
		`cell.reducer == "agent" && cell.key == "mia" && cell.id == "agent/mia"`,
		`cap.name == "all" && cap.type == "any" && cap.expires == 0`,
		`intent.class == "" && effect.adapter == "" && !effect.idempotent`,
		`budget.calls == 9223372036854775807 && budget.calls == budget.tokens && budget.bytes == budget.micros`,
		`world.name == "town" && world.time == 7 && world.time < 7.5`,
		`intent.params.amount == 500 && intent.params.amount > 499.5`,
		`intent.params.price == 1.5 && intent.params.neg == -3 && intent.params.neg < 0`,
		`intent.params.huge > 9223372036854775807 && intent.params.huge == 18446744073709551615u`,
		`intent.params.on && intent.params.none == null && !has(intent.params.other)`,
		`intent.params.on`,
		`intent.params.list == [1, "two", [3]] && size(intent.params.list) == 3 && 1 in intent.params.list`,
		`intent.params.map.k.deep == "v" && "k" in intent.params.map && has(intent.params.map.k)`,
		`intent.params.map == {"k": {"deep": "v"}} && {"k": {"deep": "v"}} == intent.params.map`,
		`size(intent.params.text) == 4 && intent.params.text.matches("^d.j")`,
		`intent.params.map.map(k, k) == ["k"] && intent.params.all(k, k != "missing")`,
		`{"small": 10, "great": 1000}["great"] > intent.params.amount`,
		`type(intent.params) == map && type(intent.params.price) == double`,
		`[1, 2].exists(intent, intent == 2)`,
		`{true: 1, "b": 2, 3: 4, "a": 5, 1u: 6, -1: 7}.map(k, string(k)) == ["true", "-1", "3", "a", "b", "1"]`,
	} {
		d := gateOf(t, allow("p", when)).Decide(request(t, "tool.x", params))
		require.Equal(t, Allow, d.Verdict, "%s: %s", when, d.Reason)
	}
	req := request(t, "tool.x", "null")
	req.Params = nil
	require.Equal(t, Allow, gateOf(t, allow("p", `intent.params == null`)).Decide(req).Verdict)
}

func TestPolicySeesWhatTheManifestSaysOfTheEffect(t *testing.T) {
	g, err := NewGate(&manifest.Manifest{
		Reducers: map[string]manifest.Reducer{"agent": {Grants: []string{"all"}}},
		Caps:     map[string]manifest.Cap{"all": capFor(0, "*")},
		Effects:  map[string]manifest.Effect{"tool.x": {Adapter: "stub", Class: manifest.ClassWrite, Idempotent: true}},
		Policies: []manifest.Policy{
			allow("p", `intent.class == "write" && effect.adapter == "stub" && effect.idempotent`),
		},
	}, nil)
	require.NoError(t, err)
	require.Equal(t, Allow, g.Decide(request(t, "tool.x", "{}")).Verdict)
	require.Equal(t, CodeNoPolicy, g.Decide(request(t, "tool.y", "{}")).Code)
}

// NaN has no place in an order, and lists are keys by identity: the library
// would iterate over such maps in another order every time.
func TestMapsWithKeysThatHaveNoOrderAreAnError(t *testing.T) {
	for _, when := range []string{
		`{0.0/0.0: 1, 2.0: 2, 1.0: 3}.map(k, k)[0] == 1.0`,
		`{dyn([1]): 1, dyn([2]): 1}.map(k, k)[0] == [1]`,
		`{dyn(null): 1} != {}`,
		`{dyn(b"a"): 1} != {}`,
		`{intent.params: 1} != {}`,
	} {
		for range 50 {
			d := gateOf(t, allow("p", when)).Decide(request(t, "tool.x", "{}"))
			require.Equal(t, CodePolicyError, d.Code, when)
		}
	}
}

func TestRuleThatCostsTooMuchIsDenied(t *testing.T) {
	items := strings.Repeat("1,", 999) + "1"
	req := request(t, "tool.x", `{"l": [`+items+`]}`)
	within := allow("within", `intent.params.l.all(x, x == 1)`)
	beyond := allow("beyond", `intent.params.l.all(x, intent.params.l.all(y, x == y))`)
	pattern := request(t, "tool.x", `{"p": "`+strings.Repeat("a{1000}", 11)+`"}`)
	// A cost that shows in the expression alone, and is beyond the limit.
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 20), ",") + "]"
	nested := "true"
	for i := range 6 {
		nested = fmt.Sprintf("%s.all(x%d, %s)", list, i, nested)
	}
	require.Equal(t, Allow, gateOf(t, within).Decide(req).Verdict)
	d := gateOf(t, within, beyond).Decide(req)
	require.Equal(t, CodePolicyError, d.Code)
	require.Equal(t, []string{"beyond"}, d.Rules)
	require.Contains(t, d.Reason, fmt.Sprint(StepLimit))
	require.Equal(t, CodePolicyError, gateOf(t, allow("p", `!intent.kind.matches(intent.params.p)`)).Decide(pattern).Code)
	require.Equal(t, CodePolicyError, gateOf(t, allow("p", nested)).Decide(req).Code)
}

// Nothing makes a value, or a decision, of what was not evaluated any more.
func TestWhatWasNotEvaluatedDecidesNothing(t *testing.T) {
	req := request(t, "tool.x", `{"l": [`+strings.Repeat("1,", 999)+`1]}`)
	const costly = `intent.params.l.all(x, intent.params.l.all(y, x == y))`
	for _, when := range []string{
		costly + " || true", "true && (" + costly + " || true)", costly + " ? true : true", "[" + costly + "].all(x, true) || true",
		"[1, 2].exists(x, " + costly + " || x == 1)", "!(" + costly + ") || true", "{1: " + costly + "} != {}",
	} {
		d := gateOf(t, allow("p", when)).Decide(req)
		require.Equal(t, CodePolicyError, d.Code, when)
		require.Contains(t, d.Reason, `policy "p"`)
		require.Contains(t, d.Reason, "more than 400000 steps")
	}
}

// The same request takes the same steps, whatever was evaluated before it.
func TestStepsAreTheRulesOwn(t *testing.T) {
	req := request(t, "tool.x", `{"m": {"a": [1, 2, {"b": "c"}], "d": 18446744073709551616}, "t": "text"}`)
	const when = `intent.params.m.a[2].b == "c" && intent.params.m.map(k, k).size() == 2 && intent.params.t.matches("x.*")`
	steps := func(before ...string) (left uint64) {
		vars := newActivation(ofPolicies())
		vars.subject = subject{gate: gateOf(t), req: req}
		c, err := newCompiler(ofPolicies())
		require.NoError(t, err)
		for _, expr := range append(before, when) {
			checked, err := c.check(expr)
			require.NoError(t, err)
			p, err := c.plan(checked)
			require.NoError(t, err)
			_, err = p.eval(&vars)
			require.NoError(t, err)
			left = vars.frame.left
		}
		return left
	}
	require.Equal(t, steps(), steps(when, `intent.params.m == intent.params.m`, `intent.params.map(k, k).size() == 2`))
	require.Less(t, steps(), uint64(StepLimit))
}

func TestIntegersOfAnySizeAreOneType(t *testing.T) {
	ints := []string{
		"-1" + strings.Repeat("0", 400), "-18446744073709551617", "-9223372036854775809", "-9223372036854775808", "-1", "0", "1",
		"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "1" + strings.Repeat("0", 400),
	}
	for i, a := range ints {
		for j, b := range ints {
			params := `{"a": ` + a + `, "b": ` + b + `, "l": [` + b + `]}`
			for when, want := range map[string]bool{
				`intent.params.a < intent.params.b`: i < j, `intent.params.a <= intent.params.b`: i <= j,
				`intent.params.a > intent.params.b`: i > j, `intent.params.a >= intent.params.b`: i >= j,
				`intent.params.a == intent.params.b`: i == j, `intent.params.a != intent.params.b`: i != j,
				`intent.params.a in intent.params.l`: i == j, `[intent.params.a] == intent.params.l`: i == j,
				`{"k": intent.params.a} == {"k": intent.params.b}`: i == j, `string(intent.params.a) == string(intent.params.b)`: i == j,
			} {
				d := gateOf(t, allow("p", when)).Decide(request(t, "tool.x", params))
				require.Equal(t, want, d.Verdict == Allow, "%s of %.80s: %s", when, params, d.Reason)
			}
		}
		for _, when := range []string{
			`type(intent.params.a) == int`, `int(intent.params.a) == intent.params.a`, `intent.params.a < 1.0 / 0.0`, `intent.params.a > -1.0 / 0.0`,
			`intent.params.a != 0.5`, `intent.params.a < double(intent.params.a) || intent.params.a >= double(intent.params.a)`,
		} {
			d := gateOf(t, allow("p", when)).Decide(request(t, "tool.x", `{"a": `+a+`}`))
			require.Equal(t, Allow, d.Verdict, "%s of %.80s: %s", when, a, d.Reason)
		}
	}
	for _, when := range []string{ // what does not fit in 64 bits is an overflow, of whatever integers
		`intent.params.a + 1 != 0`, `1 + intent.params.a != 0`, `intent.params.a - intent.params.a == 0`, `intent.params.a * 0 == 0`,
		`intent.params.a / 10 > 0`, `intent.params.a % 10 >= 0`, `-intent.params.a < 0`, `9223372036854775807 + intent.params.one > 0`,
		`intent.params.a + "1" != ""`, `intent.params.a == 0.0 / 0.0 || intent.params.a < 0.0 / 0.0`, `uint(intent.params.a) > 0u`,
		`intent.params.long > 0`, `intent.params[intent.params.a] == 1`, `[1][intent.params.a] == 1`,
	} {
		params, err := canon.FromJSON([]byte(`{"a": 18446744073709551616, "one": 1, "long": 0}`))
		require.NoError(t, err)
		req := request(t, "tool.x", "{}")
		req.Params = bytes.ReplaceAll(params, []byte("dlong\x00"), canon.AppendBig([]byte("dlong"), new(big.Int).Lsh(big.NewInt(1), 20_000)))
		require.Equal(t, CodePolicyError, gateOf(t, allow("p", when)).Decide(req).Code, when)
	}
	d := gateOf(t, allow("p", `{18446744073709551615u: 1}[intent.params] == 1 && intent.params == 18446744073709551615u && uint(intent.params) > 0u`))
	require.Equal(t, Allow, d.Decide(request(t, "tool.x", "18446744073709551615")).Verdict)
}

func TestLibraryDecidesAlike(t *testing.T) {
	values := []string{
		"null", "true", "0", "-3", "9223372036854775807", "1.0", "1.5", "-0.25", `""`, `"a"`, `"é"`, `"12"`, "[]", "[1]", `[1, 2.0, "a", [null], {"k": 1}]`, "{}",
		`{"a": 1}`, `{"a": {"b": [1]}, "bb": 2, "c": "x"}`,
	}
	const a, b = "intent.params.a", "intent.params.b"
	exprs := []string{
		a + ".a == 1", "has(" + a + ".a)", a + ".a.b[0] == 1", a + "[0] == " + b, a + "[" + b + "] == 1", b + " in " + a, a + " in [" + b + ", 1, \"a\"]",
		a + " in {1: 2, \"a\": 3, true: 4}", "{1: 2, \"a\": 3, true: 4}[" + a + "] > 1", a + ".all(x, x == " + b + ")", a + ".exists(x, x == " + b + ")",
		a + ".exists_one(x, x == " + b + ")", a + ".map(x, x) == " + b, a + ".map(x, x != " + b + ", [x]) == [[1]]", a + ".filter(x, x != 1).size() == 1",
		"size(" + a + ") == 1", a + ".size() > 1", "type(" + a + ") == type(" + b + ")", a + " ? true : " + b, a + " || " + b, a + " && " + b, "!" + a,
		a + ".contains(\"a\")", a + ".startsWith(" + b + ")", a + ".endsWith(\"2\")", a + ".matches(\"^[0-9]+$\")", "\"abc\".matches(" + a + ")", "-" + a + " < 3",
		"int(" + a + ") == 12", "uint(" + a + ") == 0u", "double(" + a + ") > 0.5", "string(" + a + ") == \"1.5\"", "bytes(" + a + ") == b\"a\"", "bool(" + a + ")",
		"string(bytes(" + a + ")) == " + a, "dyn(" + a + ") == " + b, "[" + a + ", " + b + "] == [" + b + ", " + a + "]", "{\"x\": " + a + "} == {\"x\": " + b + "}",
		"{\"x\": " + a + "}.x == " + b, a + ".map(k, k).map(k, " + a + "[k]) == " + b, "[" + a + "] + [" + b + "] == [1, 1]", a + " == null", "(" + a + " == 1 || " + b + ") && true",
		"[[1, 2], [3]].all(x, x.exists(y, y == " + a + "))", "[1, 2, 3].exists(i, i == " + a + " || " + b + ")", "[1, 2].map(x, [3, 4].map(y, x + y)) == [[4, 5], [5, 6]] && " + a + " == " + b,
	}
	for _, op := range []string{"==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"} {
		exprs = append(exprs, a+" "+op+" "+b)
		if !strings.ContainsAny(op, "<>=!") {
			exprs = append(exprs, "("+a+" "+op+" "+b+") == 2", "("+a+" "+op+" "+b+") > 0.5", "("+a+" "+op+" "+b+") == \"aa\"")
		}
	}
	tried := 0
	for _, expr := range exprs {
		rule, gate := libraryRuleOf(t, allow("p", expr)), gateOf(t, allow("p", expr))
		for _, x := range values {
			for _, y := range values {
				req := request(t, "tool.x", `{"a": `+x+`, "b": `+y+`}`)
				vars := newActivation(ofPolicies())
				vars.subject = subject{gate: gate, req: req}
				want := CodeNoPolicy
				if matches, err := rule.eval(&vars); err != nil {
					want = CodePolicyError
				} else if matches {
					want = ""
				}
				d := gate.Decide(req)
				require.Equal(t, want, d.Code, "%s of a = %s, b = %s: %s", expr, x, y, d.Reason)
				tried++
			}
		}
	}
	require.Greater(t, tried, 20_000)
}

func TestReasonsAreShortAndText(t *testing.T) {
	when := fmt.Sprintf("intent.params[%q] == 1", strings.Repeat("é", 10_000))
	d := gateOf(t, allow("p", when)).Decide(request(t, "tool.x", "{}"))
	require.Equal(t, CodePolicyError, d.Code)
	require.Less(t, len(d.Reason), 512)
	require.True(t, utf8.ValidString(d.Reason))
	require.True(t, utf8.ValidString(shortened(strings.Repeat("\xbf", 1000))))
}

func FuzzCheckPolicy(f *testing.F) {
	for _, s := range []string{
		`intent.kind.startsWith("tool.")`, `intent.params.l.all(x, x > 1.5e3)`, `{"a": b'\x00'}["a"] == b""`,
		`has(intent.params.x) ? cell.id : "" in [1u, -2]`, `intent.kind.matches("^a{3}(")`, "\xff\n'", `dyn([])[0]`,
	} {
		f.Add(s)
	}
	req := request(f, "tool.x", `{"x": 1, "l": [1, {"y": null}]}`)
	f.Fuzz(func(t *testing.T, when string) {
		err := CheckPolicy(when)
		if err != nil {
			var at *PolicyError
			require.ErrorAs(t, err, &at)
			require.Positive(t, at.Line)
			require.Positive(t, at.Column)
			return
		}
		p := allow("p", when)
		first, second := gateOf(t, p).Decide(req), gateOf(t, p).Decide(req)
		require.Equal(t, first, second)
	})
}
