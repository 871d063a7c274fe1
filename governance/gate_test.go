package governance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

const anything = "true"

func allow(name, when string) manifest.Policy {
	return manifest.Policy{Name: name, When: when, Decide: manifest.DecideAllow}
}

func deny(name, when string) manifest.Policy {
	return manifest.Policy{Name: name, When: when, Decide: manifest.DecideDeny}
}

func requireApproval(name, when string) manifest.Policy {
	return manifest.Policy{Name: name, When: when, Decide: manifest.DecideRequireApproval}
}

func capFor(expires manifest.Tick, kinds ...string) manifest.Cap {
	return manifest.Cap{Type: manifest.CapAny, Params: manifest.CapParams{Kinds: kinds}, Expires: expires}
}

// gateOf returns the gate of a world whose reducer agent may do anything that
// the policies allow.
func gateOf(t require.TestingT, policies ...manifest.Policy) *Gate {
	g, err := NewGate(&manifest.Manifest{
		Reducers: map[string]manifest.Reducer{"agent": {Grants: []string{"all"}}},
		Caps:     map[string]manifest.Cap{"all": capFor(0, "*")},
		Policies: policies,
	}, nil)
	require.NoError(t, err)
	return g
}

// gateWith returns the gate of a world with one policy, which allows anything.
func gateWith(t *testing.T, caps map[string]manifest.Cap, grants ...string) *Gate {
	t.Helper()
	g, err := NewGate(&manifest.Manifest{
		Reducers: map[string]manifest.Reducer{"agent": {Grants: grants}},
		Caps:     caps,
		Policies: []manifest.Policy{allow("anything", anything)},
	}, nil)
	require.NoError(t, err)
	return g
}

func request(t require.TestingT, kind, params string) *Request {
	data, err := canon.FromJSON([]byte(params))
	require.NoError(t, err)
	return &Request{
		World: "town", Cell: reducer.Cell{Reducer: "agent", Key: "mia"}, Step: 3, Time: 7,
		Kind: kind, Params: data, Tag: "t",
	}
}

func TestNothingIsAllowedByDefault(t *testing.T) {
	d := gateOf(t).Decide(request(t, "tool.x", "{}"))
	require.Equal(t, Decision{
		Verdict: Deny, Code: CodeNoPolicy, Cap: "all",
		Reason: `no policy allows effect "tool.x"`,
	}, d)
	d = gateOf(t, allow("other", `intent.kind == "tool.y"`), deny("none", "false")).Decide(request(t, "tool.x", "{}"))
	require.Equal(t, CodeNoPolicy, d.Code)
	require.Empty(t, d.Rules)
}

func TestDenyWinsAndEveryDecidingRuleIsNamedInManifestOrder(t *testing.T) {
	rules := []manifest.Policy{
		allow("z", anything), allow("none", "false"), allow("a", `intent.kind.startsWith("tool.")`),
	}
	d := gateOf(t, rules...).Decide(request(t, "tool.x", "{}"))
	require.Equal(t, Decision{Verdict: Allow, Cap: "all", Rules: []string{"z", "a"}}, d)

	rules = append(rules, deny("second", anything), deny("none either", "false"), deny("fourth", `cell.key == "mia"`))
	d = gateOf(t, rules...).Decide(request(t, "tool.x", "{}"))
	require.Equal(t, Decision{
		Verdict: Deny, Code: CodePolicyDenied, Cap: "all", Rules: []string{"second", "fourth"},
		Reason: `effect "tool.x" is denied by policy "second", "fourth"`,
	}, d)
}

func TestRuleThatCannotBeEvaluatedCountsAsDeny(t *testing.T) {
	for _, broken := range []string{
		`intent.params.missing > 1`, `intent.params.text > 1`, `1 / (intent.step - 3) == 1`, `intent.params.text`,
		`intent.params.text + 1 == 2`, `intent.params.text[0] == "a"`, `intent.params[1] == 1`,
	} {
		req := request(t, "tool.x", `{"text": "a"}`)
		d := gateOf(t, allow("ok", anything), allow("broken", broken)).Decide(req)
		require.Equal(t, Deny, d.Verdict, broken)
		require.Equal(t, CodePolicyError, d.Code, broken)
		require.Equal(t, []string{"broken"}, d.Rules, broken)
		require.Contains(t, d.Reason, `"broken"`)
	}
	d := gateOf(t, allow("broken", `intent.params.x`), deny("no", anything)).Decide(request(t, "tool.x", "{}"))
	require.Equal(t, CodePolicyDenied, d.Code)
	require.Equal(t, []string{"broken", "no"}, d.Rules)
}

func TestParamsThatAreNotCanonicalAreDenied(t *testing.T) {
	req := request(t, "tool.x", "{}")
	req.Params = reducer.Data{0xff}
	g := gateOf(t, allow("looks", `has(intent.params.x) || true`), allow("blind", anything))
	require.Equal(t, Allow, gateOf(t, allow("blind", anything)).Decide(req).Verdict)
	require.Equal(t, Allow, g.Decide(req).Verdict) // CEL: error || true is true
	require.Equal(t, CodePolicyError, gateOf(t, allow("looks", `intent.params == 1`)).Decide(req).Code)
}

func TestCapabilityComesBeforePolicy(t *testing.T) {
	caps := map[string]manifest.Cap{
		"tools": capFor(0, "tool.*"),
		"model": capFor(10, "model.chat", "tool.late"),
		"empty": capFor(0),
		"typed": {Type: "http", Params: manifest.CapParams{Kinds: []string{"*"}}},
	}
	for _, c := range []struct {
		name   string
		grants []string
		kind   string
		cap    string
		time   manifest.Tick
		code   Code
		want   string // the capability
	}{
		{"no grants", nil, "tool.x", "", 1, CodeNoGrant, ""},
		{"wildcard covers", []string{"tools"}, "tool.x", "", 1, "", "tools"},
		{"wildcard does not cover another prefix", []string{"tools"}, "toolx", "", 1, CodeKindNotAllowed, "tools"},
		{"empty list covers nothing", []string{"empty"}, "tool.x", "", 1, CodeKindNotAllowed, "empty"},
		{"unknown type covers nothing", []string{"typed"}, "tool.x", "", 1, CodeKindNotAllowed, "typed"},
		{"undefined capability covers nothing", []string{"gone"}, "tool.x", "", 1, CodeKindNotAllowed, "gone"},
		{"none of several covers", []string{"tools", "model"}, "mail.send", "", 1, CodeKindNotAllowed, ""},
		{"first grant that covers", []string{"empty", "model", "tools"}, "tool.late", "", 1, "", "model"},
		{"expired is skipped", []string{"model", "tools"}, "tool.late", "", 10, "", "tools"},
		{"one tick before expiry", []string{"model"}, "model.chat", "", 9, "", "model"},
		{"expired at its tick", []string{"model"}, "model.chat", "", 10, CodeExpired, "model"},
		{"expired after its tick", []string{"empty", "model"}, "model.chat", "", 11, CodeExpired, "model"},
		{"asked for", []string{"model", "tools"}, "tool.late", "tools", 1, "", "tools"},
		{"asked for and not granted", []string{"tools"}, "tool.x", "model", 1, CodeUnknownCap, "model"},
		{"asked for and not covering", []string{"tools", "model"}, "tool.x", "model", 1, CodeKindNotAllowed, "model"},
		{"asked for and expired", []string{"tools", "model"}, "tool.late", "model", 10, CodeExpired, "model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := request(t, c.kind, "{}")
			req.Cap, req.Time = c.cap, c.time
			d := gateWith(t, caps, c.grants...).Decide(req)
			require.Equal(t, c.code, d.Code, d.Reason)
			require.Equal(t, c.want, d.Cap)
			require.Equal(t, c.code == "", d.Verdict == Allow)
			require.Equal(t, c.code == "", d.Reason == "")
		})
	}
}

func TestOperatorHoldsEveryCapabilityAndNamesOne(t *testing.T) {
	g := gateWith(t, map[string]manifest.Cap{"tools": capFor(0, "tool.*"), "mail": capFor(5, "mail.*")})
	ask := func(kind, capability string) Decision {
		req := request(t, kind, "{}")
		req.Cell, req.Cap = reducer.Cell{Reducer: reducer.Operator, Key: "ann"}, capability
		return g.Decide(req)
	}
	require.Equal(t, Decision{Verdict: Allow, Cap: "tools", Rules: []string{"anything"}}, ask("tool.x", "tools"))
	require.Equal(t, CodeKindNotAllowed, ask("tool.x", "mail").Code)
	require.Equal(t, CodeExpired, ask("mail.send", "mail").Code)
	require.Equal(t, CodeUnknownCap, ask("tool.x", "gone").Code)
	d := ask("tool.x", "")
	require.Equal(t, CodeUnknownCap, d.Code)
	require.Empty(t, d.Cap)
	require.NotEmpty(t, d.Reason)
}

func TestUnknownReducerHoldsNothing(t *testing.T) {
	req := request(t, "tool.x", "{}")
	req.Cell.Reducer = "stranger"
	require.Equal(t, CodeNoGrant, gateOf(t, allow("anything", anything)).Decide(req).Code)
}

func TestGateRefusesWhatItCannotJudge(t *testing.T) {
	_, err := NewGate(&manifest.Manifest{Policies: []manifest.Policy{allow("typo", "intent.knd == ''")}}, nil)
	var at *PolicyError
	require.ErrorAs(t, err, &at)
	_, err = NewGate(&manifest.Manifest{Policies: []manifest.Policy{{Name: "p", When: anything, Decide: "perhaps"}}}, nil)
	require.Error(t, err)
}

func TestDecisionsDoNotDependOnEachOther(t *testing.T) {
	g := gateOf(t, allow("small", `intent.params.amount < 10`))
	small, great := request(t, "tool.x", `{"amount": 1}`), request(t, "tool.x", `{"amount": 11}`)
	first := g.Decide(small)
	require.Equal(t, CodeNoPolicy, g.Decide(great).Code)
	require.Equal(t, first, g.Decide(small))
	require.Equal(t, []string{"small"}, first.Rules)
}

func TestSameRequestSameDecision(t *testing.T) {
	policies := []manifest.Policy{
		allow("keys", `intent.params.map(k, k) == ["a", "b", "bb", "c", "d"]`),
		allow("literal", `{"z": 1, "y": 2, "x": 3}.map(k, k)[0] == "x"`),
		deny("sum", `intent.params.exists(k, k == "c" && intent.params[k] / 0 == 1)`),
		deny("some", `intent.params.exists_one(k, intent.params[k] > 3)`),
	}
	req := request(t, "tool.x", `{"d": 4, "bb": 1, "a": 1, "c": 3, "b": 2}`)
	allowing, all := gateOf(t, policies[:2]...), gateOf(t, policies...)
	allowed, denied := allowing.Decide(req), all.Decide(req)
	require.Equal(t, []string{"keys", "literal"}, allowed.Rules)
	require.Equal(t, []string{"sum", "some"}, denied.Rules)
	for range 1000 {
		require.Equal(t, allowed, allowing.Decide(req))
		require.Equal(t, denied, all.Decide(req))
	}
}

func TestApprovalStandsBetweenDenyAndAllow(t *testing.T) {
	rules := []manifest.Policy{
		allow("tools", anything), requireApproval("great", `intent.params.amount > 500`), requireApproval("pay", `intent.kind == "tool.pay"`),
	}
	small, great := request(t, "tool.pay", `{"amount": 500}`), request(t, "tool.pay", `{"amount": 501}`)
	require.Equal(t, Decision{
		Verdict: RequireApproval, Cap: "all", Rules: []string{"great", "pay"}, Asks: true,
		Reason: `effect "tool.pay" needs approval by policy "great", "pay"`,
	}, gateOf(t, rules...).Decide(great))
	require.Equal(t, []string{"pay"}, gateOf(t, rules...).Decide(small).Rules)
	require.Equal(t, []string{"tools"}, gateOf(t, rules...).Decide(request(t, "tool.x", `{"amount": 1}`)).Rules)
	// Without any allow: a person's approval is one.
	require.Equal(t, RequireApproval, gateOf(t, rules[1:]...).Decide(great).Verdict)

	denied := gateOf(t, append(rules, deny("never", anything))...).Decide(great)
	require.Equal(t, CodePolicyDenied, denied.Code)
	require.Equal(t, []string{"never"}, denied.Rules)
	require.Equal(t, CodePolicyError, gateOf(t, append(rules, allow("broken", `intent.params.x`))...).Decide(great).Code)
}

func TestApprovedIsAllowedUnlessTheRulesNowDeny(t *testing.T) {
	rules := []manifest.Policy{allow("tools", anything), requireApproval("pay", `intent.kind == "tool.pay"`)}
	req := request(t, "tool.pay", "{}")
	req.Approved = true
	want := Decision{Verdict: Allow, Cap: "all", Rules: []string{"pay"}, Asks: true}
	require.Equal(t, want, gateOf(t, rules...).Decide(req))
	require.Equal(t, want, gateOf(t, rules[1:]...).Decide(req))

	require.Equal(t, CodePolicyDenied, gateOf(t, append(rules, deny("never", anything))...).Decide(req).Code)
	require.Equal(t, CodeNoPolicy, gateOf(t).Decide(req).Code)
	require.Equal(t, CodeKindNotAllowed, gateWith(t, map[string]manifest.Cap{"a": capFor(0)}, "a").Decide(req).Code)
}

// Rules of which each matches, does not match or fails.
var conditions = []string{anything, "false", `intent.kind == "tool.x"`, `intent.params.missing == 1`, `intent.params.n > 1`}

func policiesOf(t *rapid.T) []manifest.Policy {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) manifest.Policy {
		when := rapid.SampledFrom(conditions).Draw(t, "when")
		decide := rapid.SampledFrom([]func(string, string) manifest.Policy{allow, deny, requireApproval}).Draw(t, "decide")
		return decide(when, when)
	}), 0, 6).Draw(t, "policies")
}

func TestNoRuleUndoesADeny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies := policiesOf(t)
		req := request(t, "tool.x", rapid.SampledFrom([]string{`{"n": 1}`, `{"n": 2}`, `{}`}).Draw(t, "params"))
		before := gateOf(t, policies...).Decide(req)
		extra := rapid.SampledFrom([]func(string, string) manifest.Policy{allow, requireApproval}).Draw(t, "decide")("extra", rapid.SampledFrom(conditions).Draw(t, "extra"))
		at := rapid.IntRange(0, len(policies)).Draw(t, "at")
		after := gateOf(t, append(append(append([]manifest.Policy(nil), policies[:at]...), extra), policies[at:]...)...).Decide(req)

		if before.Code == CodePolicyDenied || before.Code == CodePolicyError {
			require.Equal(t, Deny, after.Verdict)
			require.Subset(t, after.Rules, before.Rules)
		}
		if before.Verdict == RequireApproval {
			require.NotEqual(t, Allow, after.Verdict)
		}
		forbidden := gateOf(t, append(policies, deny("never", anything))...).Decide(req)
		require.Equal(t, CodePolicyDenied, forbidden.Code)
	})
}

// TestGateIsNotMadeForNobody: thousands of policies take seconds.
func TestGateIsNotMadeForNobody(t *testing.T) {
	m := &manifest.Manifest{}
	for i := range 1000 {
		m.Policies = append(m.Policies, allow(fmt.Sprint("p", i), anything))
	}
	asked := 0
	_, err := NewGate(m, func() bool { asked++; return asked > 3 })
	require.ErrorIs(t, err, reducer.ErrBound)
	require.Equal(t, 4, asked)
}

// TestDecisionsKeepWhatTheyWereGiven: a gate decides in the memory of the decision before.
func TestDecisionsKeepWhatTheyWereGiven(t *testing.T) {
	g := gateOf(t, allow("tools", `intent.kind.startsWith("tool.")`), allow("books", `intent.kind == "tool.book"`), allow("mail", `intent.kind == "mail.send"`))
	kinds := []string{"tool.book", "mail.send", "tool.look", "tool.book"}
	var got [][]string
	for _, kind := range kinds {
		d := g.Decide(request(t, kind, `1`))
		require.Equal(t, Allow, d.Verdict, d.Reason)
		require.Len(t, d.Rules, cap(d.Rules), "an append copies")
		got = append(got, d.Rules)
	}
	require.Equal(t, [][]string{{"tools", "books"}, {"mail"}, {"tools"}, {"tools", "books"}}, got)
}

// TestDecisionLikeTheOneBeforeTakesNoMemory: every effect has one.
func TestDecisionLikeTheOneBeforeTakesNoMemory(t *testing.T) {
	g := gateOf(t, allow("tools", `intent.kind.startsWith("tool.")`), deny("operators", `cell.reducer == "operator"`))
	req := request(t, "tool.look", `1`)
	require.Zero(t, testing.AllocsPerRun(100, func() { g.Decide(req) }))
}
