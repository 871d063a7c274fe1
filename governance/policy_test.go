package governance

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

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
	})
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

func TestIntegersOutside64BitsAreAnError(t *testing.T) {
	for _, n := range []string{"18446744073709551616", "-9223372036854775809", "1" + strings.Repeat("0", 400)} {
		for _, params := range []string{n, `{"a": [{"n": ` + n + `}]}`} {
			d := gateOf(t, allow("p", `intent.params != 1`)).Decide(request(t, "tool.x", params))
			require.Equal(t, CodePolicyError, d.Code, n)
			require.Less(t, len(d.Reason), 512)
		}
	}
	req := request(t, "tool.x", "{}")
	req.Step = 1 << 63
	require.Equal(t, CodePolicyError, gateOf(t, allow("p", `intent.step > 0`)).Decide(req).Code)
}

func TestRuleThatCostsTooMuchIsDenied(t *testing.T) {
	items := strings.Repeat("1,", 999) + "1"
	req := request(t, "tool.x", `{"l": [`+items+`]}`)
	within := allow("within", `intent.params.l.all(x, x == 1)`)
	require.Equal(t, Allow, gateOf(t, within).Decide(req).Verdict)

	beyond := allow("beyond", `intent.params.l.all(x, intent.params.l.all(y, x == y))`)
	d := gateOf(t, within, beyond).Decide(req)
	require.Equal(t, CodePolicyError, d.Code)
	require.Equal(t, []string{"beyond"}, d.Rules)
	require.Contains(t, d.Reason, fmt.Sprint(CostLimit))

	pattern := request(t, "tool.x", `{"p": "`+strings.Repeat("a{1000}", 11)+`"}`)
	require.Equal(t, CodePolicyError, gateOf(t, allow("p", `!intent.kind.matches(intent.params.p)`)).Decide(pattern).Code)

	// A cost that shows in the expression alone, and is beyond the limit.
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 20), ",") + "]"
	nested := "true"
	for i := range 6 {
		nested = fmt.Sprintf("%s.all(x%d, %s)", list, i, nested)
	}
	require.Equal(t, CodePolicyError, gateOf(t, allow("p", nested)).Decide(req).Code)
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
