package governance_test

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

func namesManifest(when, params string) *manifest.Manifest {
	return &manifest.Manifest{
		World:    "shop",
		Reducers: map[string]manifest.Reducer{"desk": {}, "clerk": {}},
		Effects: map[string]manifest.Effect{
			"refund.pay":  {Adapter: "http", Class: manifest.ClassDestructive, Compensate: &manifest.Compensate{Kind: "mail.send", Params: params}},
			"refund.look": {Adapter: "http", Class: manifest.ClassRead},
			"mail.send":   {Adapter: "exec"},
		},
		Caps:     map[string]manifest.Cap{"till": {Type: manifest.CapHTTP}, "post": {Type: manifest.CapExec}},
		Policies: []manifest.Policy{{Name: "first", When: "true"}, {Name: "second", When: when}},
	}
}

// typosOf returns what is wrong with a policy, and with the params of a compensation.
func typosOf(t *testing.T, when, params string) (out []string) {
	t.Helper()
	require.NoError(t, governance.CheckPolicy(when), when)
	require.NoError(t, governance.CheckTransform(params), params)
	faults, err := governance.CheckRules(namesManifest(when, params), nil, nil)
	require.NoError(t, err)
	for _, f := range faults {
		require.Contains(t, []string{"/policies/1/when", "/effects/refund.pay/compensate/params"}, f.Path)
		out = append(out, fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Msg))
	}
	return out
}

// TestAGuardThatNamesNothingIsAFault is each variable that has names, in each form in which
// a rule can compare it, with a name that there is and with a slip.
func TestAGuardThatNamesNothingIsAFault(t *testing.T) {
	type variable struct{ name, good, slip string }
	forms := []string{
		`V == "X"`, `"X" == V`, `V != "X"`, `"X" != V`, `!(V == "X")`, `V in ["X"]`, `!(V in ["X", "X"])`, `"X" in [V]`, `[V] == ["X"]`,
		`V in ["X"] + []`, `V in (cell.key == "a" ? ["X"] : ["X"])`, `V in {"X": 1}`, `{"X": true}[V]`, `(cell.key == "a" ? "X" : V) == "X" && V == "X"`,
		`V == (cell.key == "a" ? "X" : "X")`, `V == "X" ? true : false`, `cell.key == "a" || (V == "X" ? intent.step > 1 : true)`,
		`V == {"a": "X"}[cell.key]`, `V in {"a": ["X"]}[cell.key]`, `V in {"a": ["X"]}.a`, `{"a": {"X": true}}.a[V]`,
		`["X"].exists(k, k == V)`, `["X"].exists(k, V != k)`, `["X"].all(k, k != V)`, `["X"].exists_one(k, k == V)`, `V in ["X"].map(k, k)`,
		`V in ["X"].filter(k, k != "")`, `[["X"]].exists(l, V in l)`, `{"X": 1}.exists(k, k == V)`, `["X"].filter(k, k == V).size() == 1`,
		`V.matches("^X$")`, `matches(V, "^(X|X)$")`, `V.startsWith("X")`, `V.endsWith("X")`, `V.contains("X")`, `"X".startsWith(V)`, `"X".endsWith(V)`,
		`dyn(V) == dyn("X")`, `string(V) == "X"`, `V + "!" == "X!"`, `"-" + V == "-" + "X"`,
		`[{"k": "X"}].exists(r, r.k == V)`, `[{"k": "X"}].exists(r, r["k"] == V)`, `[["X"]].exists(r, r[0] == V)`, `[["a", "X"]].exists(r, r[1] == V)`,
		`{"a": {"k": "X"}}.exists(a, {"a": {"k": "X"}}[a].k == V)`, `[{"k": ["X"]}].exists(r, V in r.k)`, `[{"k": "X"}].map(r, r.k).exists(k, k == V)`,
		`[V, cell.key] in [["X", "c"]]`, `[[V]] == [["X"]]`, `{"k": V} == {"k": "X"}`, `{"k": V} in [{"k": "X"}]`, `{V: 1} == {"X": 1}`, `[V] != ["X"]`,
		`bytes(V) == b"X"`, `b"X" == bytes(V)`, `bytes(V) in [bytes("X")]`, `string(bytes(V)) == "X"`, `[{"k": b"X"}].exists(r, r.k == bytes(V))`,
		`["X"].exists(k, k == V && intent.params.cents > 5)`, `intent.params.tags.exists(t, t == "a" && V == "X")`, `{"a": "X"}[intent.params.region] == V`,
		`"X".matches(V)`, `"X,X".contains(V)`, `"X|X".contains(V)`, `V >= "X" && V <= "X"`, `V in [{"k": "X"}].map(r, r.k)`,
		"V ==\n  'X'", `V == r"X"`, `V == """X"""`, `["X"].exists(p, V.startsWith(p))`, `.V == "X"`,
	}
	for _, v := range []variable{
		{name: "intent.kind", good: "refund.pay", slip: "refnd.pay"},
		{name: "intent.class", good: "destructive", slip: "destructve"},
		{name: "effect.adapter", good: "http", slip: "htpp"},
		{name: "intent.cap", good: "till", slip: "tlil"},
		{name: "cap.name", good: "post", slip: "pots"},
		{name: "cap.type", good: "exec", slip: "exce"},
		{name: "cell.reducer", good: "desk", slip: "dekc"},
		{name: "world.name", good: "shop", slip: "shpo"},
	} {
		for _, form := range forms {
			with := func(name string) string { return strings.NewReplacer("V", v.name, "X", name).Replace(form) }
			require.Empty(t, typosOf(t, with(v.good), "null"), with(v.good))
			faults := typosOf(t, with(v.slip), "null")
			require.NotEmpty(t, faults, with(v.slip))
			for _, f := range faults {
				require.Contains(t, f, v.slip)
			}
		}
	}
}

func TestSlipsInRulesAreToldWithWhatWasMeant(t *testing.T) {
	for when, want := range map[string][]string{
		`intent.kind == "refnd.pay"`:                                                                              {`1:16: intent.kind is never "refnd.pay": did you mean "refund.pay"?`},
		`intent.kind in ["refund.pay", "mial.send", "refund.lok"]`:                                                {`1:31: intent.kind is never "mial.send": did you mean "mail.send"?`, `1:44: intent.kind is never "refund.lok": did you mean "refund.look"?`},
		`intent.kind.startsWith("refnd.")`:                                                                        {`1:24: intent.kind never starts with "refnd.": did you mean "refund."?`},
		`intent.kind.endsWith(".snd")`:                                                                            {`1:22: intent.kind never ends with ".snd": did you mean ".send"?`},
		`intent.kind.contains("refnd")`:                                                                           {`1:22: intent.kind never contains "refnd": did you mean "refund"?`},
		`intent.kind.matches("refund[.]pay|mial[.]send")`:                                                         {`1:21: intent.kind never matches "mial\\.send"; declared: mail.send, refund.look, refund.pay`},
		`"refnd.pay".startsWith(intent.kind)`:                                                                     {`1:1: "refnd.pay" never starts with intent.kind: did you mean "refund.pay"?`},
		`cell.id == "dsk/ada"`:                                                                                    {`1:12: cell.id is never "dsk/ada"; declared: clerk/, desk/, operator/`},
		`cell.id.startsWith("dsk/")`:                                                                              {`1:20: cell.id never starts with "dsk/": did you mean "desk/"?`},
		`"^refnd[.]pay$".matches(intent.kind)`:                                                                    {`1:1: "^refnd[.]pay$" never matches intent.kind; declared: mail.send, refund.look, refund.pay`},
		`"refund.pay,refnd.pay".contains(intent.kind)`:                                                            {`1:1: "refnd.pay" never contains intent.kind: did you mean "refund.pay"?`},
		`"refund.pay refund.look".contains(intent.kind)`:                                                          nil,
		`",refund.pay,mail.send,".contains("," + intent.kind + ",")`:                                              nil,
		`"|desk|clerk|".contains("|" + cell.reducer + "|")`:                                                       nil,
		`"desk refund.pay, clerk mail.send".contains(cell.reducer + " " + intent.kind)`:                           nil,
		`"refund.pay,mail.send".contains("," + intent.kind + ",")`:                                                {`1:1: "refund.pay,mail.send" never contains what it is compared with; declared: ,mail.send,, ,refund.look,, ,refund.pay,`},
		`",refund.pay,mial.send,".contains("," + intent.kind + ",")`:                                              {`1:1: "mial.send" never contains what it is compared with: did you mean "mail.send"?`},
		`"desk refnd.pay, clerk mail.snd".contains(cell.reducer + " " + intent.kind)`:                             {`1:1: "desk refnd.pay, clerk mail.snd" never contains what it is compared with; there are clerk mail.send, clerk refund.look, clerk refund.pay, desk mail.send, desk refund.look, desk refund.pay, operator mail.send, operator refund.look and 1 more`},
		`"|dekc|clerk|".contains("|" + cell.reducer + "|")`:                                                       {`1:1: "dekc" never contains what it is compared with: did you mean "desk"?`},
		`cell.id.matches("^d/.*")`:                                                                                {`1:17: cell.id never matches "^d/.*"; declared: clerk/, desk/, operator/`},
		`cell.id.matches("^(desk|clrk)/[0-9]+$")`:                                                                 {`1:17: cell.id never matches "(?-m:\\A(clrk)/[0-9]+$)"; declared: clerk/, desk/, operator/`},
		`cell.id.matches("^(?i:DESK)/[0-9]+$")`:                                                                   nil,
		`cell.id.matches("ada$") || cell.id.matches("/x\\\\b.*y")`:                                                nil,
		`cell.id.startsWith("d/")`:                                                                                {`1:20: cell.id never starts with "d/"; declared: clerk/, desk/, operator/`},
		`["d/"].exists(p, cell.id.startsWith(p))`:                                                                 {`1:2: cell.id never starts with "d/"; declared: clerk/, desk/, operator/`},
		`[{"k": "a", "c": "refnd.pay"}].exists(r, r.k == cell.key && r.c == intent.kind)`:                         {`1:18: intent.kind is never "refnd.pay": did you mean "refund.pay"?`},
		`[["refund.pay", "desk"], ["desk", "refund.pay"]].exists(r, r[0] == intent.kind && r[1] == cell.reducer)`: {`1:27: intent.kind is never "desk"; declared: mail.send, refund.look, refund.pay`, `1:35: cell.reducer is never "refund.pay"; declared: clerk, desk, operator`},
		`[intent.kind, cell.reducer] in [["refnd.pay", "desk"]]`:                                                  {`1:34: intent.kind is never "refnd.pay": did you mean "refund.pay"?`},
		`cell.reducer == "operater"`:                                                                              {`1:17: cell.reducer is never "operater": did you mean "operator"?`},
		`intent.kind == ""`:                                                                                       {`1:16: intent.kind is never ""; declared: mail.send, refund.look, refund.pay`},
		`intent.class == "write"`:                                                                                 {`1:17: intent.class is never "write"; declared: destructive, read`},
		`intent.kind == "refnd" + ".pay"`:                                                                         {`1:24: intent.kind is never "refnd.pay": did you mean "refund.pay"?`},
		`"refnd." + intent.tag == intent.kind`:                                                                    {`1:10: intent.kind never starts with "refnd.": did you mean "refund."?`},
		`intent.kind + "/" + cell.reducer == "refund.pay/dekc"`:                                                   {`1:37: what it is compared with is never "refund.pay/dekc": did you mean "refund.pay/desk"?`},
		`["refnd", "mail"].exists(p, intent.kind == p + ".send")`:                                                 {`1:2: intent.kind is never "refnd.send"; declared: mail.send, refund.look, refund.pay`},
		`["refund", "mail"].exists(p, ["pay", "snd"].exists(s, intent.kind == p + "." + s))`:                      {`1:12: intent.kind is never "mail.snd": did you mean "mail.send"?`, `1:38: intent.kind is never "mail.snd": did you mean "mail.send"?`},
		`["refund", "mail"].exists(p, ["pay", "send"].exists(s, intent.kind == p + "." + s))`:                     nil,
		`(cell.key == "a" ? "refnd" : "mail") + ".send" == intent.kind`:                                           {`1:20: intent.kind is never "refnd.send"; declared: mail.send, refund.look, refund.pay`},
		"intent.kind == \"refund.pay\" &&\n  cap.name == \"tlil\"":                                                {`2:15: cap.name is never "tlil": did you mean "till"?`},

		// What is known of nothing, or can be.
		`intent.class == "" && intent.cap == ""`:                                             nil,
		`cell.reducer == "operator" && cell.id == "operator/ada" || cell.id == "desk/a/b"`:   nil,
		`cell.id.startsWith("desk/A-") || cell.id.endsWith("/ada") || cell.id.contains("x")`: nil,
		`cell.id.startsWith("de") || cell.id.matches("^d.*x$")`:                              nil,
		`intent.tag == "x" || cell.key == "y" || intent.params.kind == "z"`:                  nil,
		`intent.kind.startsWith("refund.") || intent.kind.startsWith("")`:                    nil,
		`intent.kind.matches("^refund[.](pay|look)$") || intent.kind.matches("(?i)^REFUND")`: nil,
		`intent.kind > "refnd" || size(intent.kind) == 3`:                                    nil,
		`["desk", "refund.pay"].exists(x, x == intent.kind || x == cell.reducer)`:            nil,
		`["desk", "anybody"].exists(x, x == intent.tag || x == cell.reducer)`:                nil,
		`intent.kind in intent.params.kinds || intent.params.m[intent.kind] == "x"`:          nil,
		`"a" == "b" || "a" in ["b"]`:                                                         nil,
		`{"refund.pay": 100, "mail.send": 5}[intent.kind] > 3`:                               nil,
		`intent.kind == "mail" + ".send" || "mail." + intent.tag == intent.kind`:             nil,
	} {
		require.Equal(t, want, typosOf(t, when, "null"), when)
	}
	for params, want := range map[string][]string{
		`intent.kind == "refund.pay" && receipt.status == "error" ? {"a": intent.cell.startsWith("desk/")} : {}`: nil,
		`receipt.external_ref == "x" || receipt.payload.status == "eror" ? 1 : 2`:                                nil,
		`intent.kind == "refnd.pay" ? 1 : 2`:                                                                     {`1:16: intent.kind is never "refnd.pay": did you mean "refund.pay"?`},
		`receipt.status != "eror" ? 1 : 2`:                                                                       {`1:19: receipt.status is never "eror": did you mean "error"?`},
		`intent.cell == "dekc/a" ? 1 : 2`:                                                                        {`1:16: intent.cell is never "dekc/a"; declared: clerk/, desk/, operator/`},
	} {
		require.Equal(t, want, typosOf(t, "true", params), params)
	}
}

// TestSidesThatAreNeverTrueTogetherAreAFault is comparisons that can each be true.
// TestWhatChoicesAddUpToIsCounted: each term doubles what the sum can be.
func TestWhatChoicesAddUpToIsCounted(t *testing.T) {
	const terms = 24
	nested := strings.Repeat("[[x, x]].exists(x, ", terms) + "x == x" + strings.Repeat(")", terms)
	require.Empty(t, typosOf(t, `intent.kind == "mail.send" && [intent.params.a].exists(x, `+nested+")", "null"), "lists of lists")
	for _, term := range []string{
		`(intent.params.a ? intent.params.b : intent.params.c)`, `(intent.params.a ? "x" : intent.params.c)`, `(intent.params.a ? ["x"] : [])`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Empty(t, typosOf(t, `intent.kind == "mail.send" && `+strings.Repeat(term+" + ", terms)+term+" == intent.params.d", "null"), term)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20), term)
	}
}

func TestSidesThatAreNeverTrueTogetherAreAFault(t *testing.T) {
	const whatever = " are never true together, whatever intent.kind is"
	for when, want := range map[string][]string{
		`intent.kind == "mail.send" && intent.kind == "refund.pay"`:                            {"1:28: the two sides of &&" + whatever},
		`intent.kind == "mail.send" && intent.params.cents > 5 && intent.kind == "refund.pay"`: {"1:55: the two sides of &&" + whatever},
		`intent.kind >= "refnd.pay" && intent.kind < "refnd.paz"`:                              {"1:28: the two sides of &&" + whatever + `: did you mean "refund.pay", not "refnd.pay"?`},
		`bytes(intent.kind) >= b"refnd.pay" && bytes(intent.kind) < b"refnd.paz"`:              {"1:36: the two sides of &&" + whatever + `: did you mean "refund.pay", not "refnd.pay"?`},
		`intent.kind > "z"`: {`1:15: intent.kind is never greater than "z"; declared: mail.send, refund.look, refund.pay`},
		`!(intent.kind < "refund.l" || intent.kind >= "refund.lo")`:                               {`1:28: the two sides of || are never false together, whatever intent.kind is: did you mean "refund.look", not "refund.l"?`},
		`intent.kind.startsWith("mail.") && intent.kind.endsWith(".pay")`:                         {"1:33: the two sides of &&" + whatever},
		`intent.kind == "mail.send" && (intent.kind != "mail.send" || intent.kind > "refund.")`:   {"1:28: the two sides of &&" + whatever},
		`intent.kind == "mail.send" ? intent.kind == "refund.pay" : false`:                        {"1:28: the two sides of ?" + whatever},
		`intent.kind != "mail.send" ? false : intent.kind == "refund.pay"`:                        {"1:28: the two sides of ?" + whatever},
		`["mail.send"].exists(k, intent.kind == k && intent.kind in ["refund.pay"])`:              {"1:42: the two sides of &&" + whatever},
		`intent.params.tags.exists(t, intent.kind == "mail.send" && intent.kind == "refund.pay")`: {"1:57: the two sides of &&" + whatever},

		`intent.kind == "mail.send" && intent.class == "destructive"`:                                            nil, // an effect can get another class
		`intent.kind == "mail.send" && !(intent.kind in ["mail.send", "refund.pay"])`:                            {"1:28: the two sides of &&" + whatever},
		`intent.kind == "mail.send" && !(intent.kind in (cell.key == "a" ? ["mail.send"] : []))`:                 nil,
		`intent.kind == "mail.send" || intent.kind == "refund.pay"`:                                              nil,
		`intent.kind >= "refund." && intent.kind < "refund/"`:                                                    nil,
		`intent.kind != "mail.send" && intent.kind != "refund.pay" && intent.kind != "refund.look"`:              {"1:59: the two sides of &&" + whatever},
		`intent.kind == "mail.send" ? intent.params.to == "x" : intent.kind == "refund.pay"`:                     nil,
		`world.name != "shop" && intent.kind == "mail.send"`:                                                     nil, // it is of one world
		`!(intent.kind == "mail.send" || cell.reducer == "clerk")`:                                               nil,
		`[{"k": "mail.send", "c": 1}, {"k": "refund.pay", "c": 2}].exists(r, r.k == intent.kind && r.c == 2)`:    nil,
		`cell.id.startsWith("desk/") && cell.id.endsWith("/ada") && cell.reducer == "desk" && cell.key == "ada"`: nil,
		`intent.kind in ["mail.send", "refund.pay"] && !(intent.kind in ["mail.send"])`:                          nil,
		`["mail.send", "refund.pay"].all(k, k != intent.kind) && ["refund.look"].exists(k, k == intent.kind)`:    nil,
		`(intent.kind == "mail.send" ? "a" : "b") == "b" && intent.kind.startsWith("refund.")`:                   nil,
	} {
		require.Equal(t, want, typosOf(t, when, "null"), when)
	}
}

func TestCapabilitiesNameWhatThereIs(t *testing.T) {
	config := func(text string) canon.Raw {
		data, err := canon.FromJSON([]byte(text))
		require.NoError(t, err)
		return data
	}
	llm := manifest.Effect{Adapter: manifest.CapLLM, Config: config(`{"base_url": "https://a.example/v1", "model": "small-1"}`)}
	mcp := manifest.Effect{Adapter: manifest.CapMCP, Config: config(`{"command": ["x"], "tool": "search"}`)}
	anyModel := manifest.Effect{Adapter: manifest.CapLLM, Config: config(`{"base_url": "https://a.example/v1"}`)}
	anyTool := manifest.Effect{Adapter: manifest.CapMCP, Config: config(`{"command": ["x"]}`)}
	for name, x := range map[string]struct {
		cap     manifest.Cap
		effects map[string]manifest.Effect
		want    string
	}{
		"kind":                  {manifest.Cap{Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"web.search", "web.serach"}}}, nil, `/caps/c/params/kinds/1: no declared kind of effect matches "web.serach": did you mean "web.search"?`},
		"prefix of a kind":      {manifest.Cap{Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"*", "web.*", "wbe.*"}}}, nil, `/caps/c/params/kinds/2: no declared kind of effect matches "wbe.*": did you mean "web.*"?`},
		"prefix of no kind":     {manifest.Cap{Type: manifest.CapAny, Params: manifest.CapParams{Kinds: []string{"bank.*"}}}, nil, `/caps/c/params/kinds/0: no declared kind of effect matches "bank.*"; declared: model.ask, web.search`},
		"tool":                  {manifest.Cap{Type: manifest.CapMCP, Params: manifest.CapParams{Tools: []string{"*", "sea*", "serch"}}}, nil, `/caps/c/params/tools/2: no tool of an effect matches "serch": did you mean "search"?`},
		"model":                 {manifest.Cap{Type: manifest.CapLLM, Params: manifest.CapParams{Models: []string{"small-*", "smal-1"}}}, nil, `/caps/c/params/models/1: no model of an effect matches "smal-1": did you mean "small-1"?`},
		"tool that params say":  {manifest.Cap{Type: manifest.CapMCP, Params: manifest.CapParams{Tools: []string{"serch"}}}, map[string]manifest.Effect{"a.b": anyTool}, ""},
		"model that params say": {manifest.Cap{Type: manifest.CapLLM, Params: manifest.CapParams{Models: []string{"x"}}}, map[string]manifest.Effect{"a.b": anyModel}, ""},
	} {
		m := namesManifest("true", "null")
		m.Effects = map[string]manifest.Effect{"model.ask": llm, "web.search": mcp}
		maps.Copy(m.Effects, x.effects)
		m.Caps = map[string]manifest.Cap{"c": x.cap}
		found, err := governance.CheckRules(m, nil, nil)
		require.NoError(t, err, name)
		if x.want == "" {
			require.Empty(t, found, name)
			continue
		}
		require.Len(t, found, 1, name)
		require.Equal(t, x.want, found[0].Path+": "+found[0].Msg, name)
	}
}
