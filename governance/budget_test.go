package governance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// budgetGate returns the gate of a world with these budgets, whose effect tool.x
// costs at most maxCost.
func budgetGate(t require.TestingT, ofCap, ofCell, ofWorld, maxCost manifest.Budget, policies ...manifest.Policy) *Gate {
	all := capFor(0, "*")
	all.Budget = ofCap
	g, err := NewGate(&manifest.Manifest{
		Reducers: map[string]manifest.Reducer{"agent": {Grants: []string{"all"}, Budget: ofCell}},
		Caps:     map[string]manifest.Cap{"all": all},
		Effects:  map[string]manifest.Effect{"tool.x": {Adapter: "stub", MaxCost: maxCostOf(maxCost)}},
		Policies: append(policies, allow("anything", anything)),
		Budget:   ofWorld,
	}, nil)
	require.NoError(t, err)
	return g
}

// maxCostOf says what an attempt costs at most, but of the units that are 0.
func maxCostOf(b manifest.Budget) manifest.MaxCost {
	of := func(n uint64) *uint64 {
		if n == 0 {
			return nil
		}
		return &n
	}
	return manifest.MaxCost{Tokens: of(b.Tokens), Bytes: of(b.Bytes), Micros: of(b.Micros)}
}

func TestBudgetDeniesWhatIsNotLeft(t *testing.T) {
	type budget = manifest.Budget
	used := func(spent, reserved, kept uint64) *Account {
		same := func(n uint64) receipt.Cost { return receipt.Cost{Calls: n, Tokens: n, Bytes: n, Micros: n} }
		return &Account{Spent: same(spent), Reserved: same(reserved), Kept: same(kept)}
	}
	for _, c := range []struct {
		name                       string
		ofCap, ofCell, ofWorld     budget
		maxCost                    budget
		accounts                   Accounts
		code                       Code
		need                       receipt.Cost
		scope, unit, reasonNumbers string
	}{
		{name: "nothing is bounded", maxCost: budget{Tokens: 5}},
		{name: "calls", ofCap: budget{Calls: 1}, need: receipt.Cost{Calls: 1}},
		{name: "units that are not bounded are not reserved", ofWorld: budget{Tokens: 9}, maxCost: budget{Tokens: 5, Micros: 7}, need: receipt.Cost{Calls: 1, Tokens: 5}},
		{name: "units bounded in different scopes", ofCap: budget{Bytes: 3}, ofCell: budget{Micros: 7}, maxCost: budget{Bytes: 3, Micros: 7}, need: receipt.Cost{Calls: 1, Bytes: 3, Micros: 7}},
		{name: "the last call", ofCell: budget{Calls: 3}, accounts: Accounts{Cell: used(1, 1, 0)}, need: receipt.Cost{Calls: 1}},
		{
			name: "no call left", ofCell: budget{Calls: 3}, accounts: Accounts{Cell: used(3, 0, 0)},
			code: CodeBudgetExceeded, scope: "cell agent/mia", unit: "calls", reasonNumbers: "has 0 calls left, effect \"tool.x\" asks for 1",
		},
		{
			name: "what nobody knows is gone, too", ofCell: budget{Calls: 3}, accounts: Accounts{Cell: used(1, 0, 2)},
			code: CodeBudgetExceeded, scope: "cell agent/mia", unit: "calls", reasonNumbers: "has 0 calls left",
		},
		{
			name: "more is gone than there was", ofCap: budget{Tokens: 3}, maxCost: budget{Tokens: 1}, accounts: Accounts{Cap: used(math.MaxUint64, 9, 9)},
			code: CodeBudgetExceeded, scope: `capability "all"`, unit: "tokens", reasonNumbers: "has 0 tokens left",
		},
		{
			name: "asks for more than is left", ofWorld: budget{Micros: 10}, maxCost: budget{Micros: 6}, accounts: Accounts{World: used(3, 0, 2)},
			code: CodeBudgetExceeded, scope: "the world", unit: "micros", reasonNumbers: "has 5 micros left, effect \"tool.x\" asks for 6",
		},
		{
			name: "the capability comes first", ofCap: budget{Bytes: 1}, ofCell: budget{Bytes: 1}, maxCost: budget{Bytes: 2},
			code: CodeBudgetExceeded, scope: `capability "all"`, unit: "bytes",
		},
		{name: "no max_cost", ofCell: budget{Tokens: 1}, code: CodeNoMaxCost, scope: "cell agent/mia", unit: "tokens"},
		{name: "no max_cost in one of two", ofCap: budget{Tokens: 5}, ofWorld: budget{Bytes: 5}, maxCost: budget{Tokens: 1}, code: CodeNoMaxCost, scope: "the world", unit: "bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := request(t, "tool.x", "{}")
			req.Accounts = c.accounts
			g := budgetGate(t, c.ofCap, c.ofCell, c.ofWorld, c.maxCost)
			d := g.Decide(req)
			require.Equal(t, c.code, d.Code, d.Reason)
			if c.code == "" {
				need, short, _ := g.Room(&receipt.Intent{Cell: "agent/mia", Kind: "tool.x", Cap: "all"}, c.accounts, receipt.Cost{}, nil, 0)
				require.Empty(t, short)
				require.Equal(t, c.need, need)
			}
			require.Equal(t, "all", d.Cap)
			require.Equal(t, c.code == "", d.Verdict == Allow)
			require.Equal(t, c.code == "", d.Rules != nil)
			require.Contains(t, d.Reason, c.scope)
			require.Contains(t, d.Reason, c.unit)
			require.Contains(t, d.Reason, c.reasonNumbers)
		})
	}
}

func TestCapabilityThenPolicyThenBudget(t *testing.T) {
	spent := Accounts{World: &Account{Spent: receipt.Cost{Calls: 1}}}
	judge := func(kind string, policies ...manifest.Policy) Decision {
		all := capFor(0, "tool.*")
		g, err := NewGate(&manifest.Manifest{
			Reducers: map[string]manifest.Reducer{"agent": {Grants: []string{"all"}}},
			Caps:     map[string]manifest.Cap{"all": all},
			Policies: policies,
			Budget:   manifest.Budget{Calls: 1},
		}, nil)
		require.NoError(t, err)
		req := request(t, kind, "{}")
		req.Accounts = spent
		return g.Decide(req)
	}
	require.Equal(t, CodeKindNotAllowed, judge("mail.send", deny("never", anything)).Code)
	require.Equal(t, CodePolicyDenied, judge("tool.x", deny("never", anything)).Code)
	// Who waits for approval is not denied for want of a budget.
	require.Equal(t, RequireApproval, judge("tool.x", requireApproval("person", anything)).Verdict)
	require.Equal(t, CodeBudgetExceeded, judge("tool.x", allow("anything", anything)).Code)
}

func TestApprovedEffectStillNeedsItsBudget(t *testing.T) {
	g := budgetGate(t, manifest.Budget{Calls: 1}, manifest.Budget{}, manifest.Budget{}, manifest.Budget{}, requireApproval("person", anything))
	req := request(t, "tool.x", "{}")
	req.Approved = true
	require.Equal(t, Allow, g.Decide(req).Verdict)
	req.Accounts.Cap = &Account{Spent: receipt.Cost{Calls: 1}}
	require.Equal(t, CodeBudgetExceeded, g.Decide(req).Code)
}

func TestOperatorHasNoCellBudget(t *testing.T) {
	g := budgetGate(t, manifest.Budget{}, manifest.Budget{Calls: 1}, manifest.Budget{Calls: 2}, manifest.Budget{})
	req := request(t, "tool.x", "{}")
	req.Cell, req.Cap = reducer.Cell{Reducer: reducer.Operator, Key: "ann"}, "all"
	req.Accounts = Accounts{Cell: &Account{Spent: receipt.Cost{Calls: 1}}, World: &Account{Spent: receipt.Cost{Calls: 1}}}
	require.Equal(t, Allow, g.Decide(req).Verdict)
	req.Accounts.World.Spent.Calls = 2
	require.Equal(t, CodeBudgetExceeded, g.Decide(req).Code)
}

func TestPoliciesSeeWhatTheTightestBudgetHasLeft(t *testing.T) {
	g := budgetGate(t, manifest.Budget{Calls: 10, Bytes: 5}, manifest.Budget{Calls: 4}, manifest.Budget{Tokens: 9}, manifest.Budget{Tokens: 1, Bytes: 1},
		deny("left", `!(budget.calls == 3 && budget.tokens == 9 && budget.bytes == 0 && budget.micros == 9223372036854775807)`))
	req := request(t, "tool.x", "{}")
	req.Accounts = Accounts{Cap: &Account{Spent: receipt.Cost{Bytes: 6}}, Cell: &Account{Reserved: receipt.Cost{Calls: 1}}}
	require.Equal(t, CodeBudgetExceeded, g.Decide(req).Code) // not policy_denied: the rule saw these numbers
	req.Accounts.Cell.Reserved.Calls = 2
	require.Equal(t, CodePolicyDenied, g.Decide(req).Code)
}

func TestBudgetedNamesTheScopesWithABudget(t *testing.T) {
	one := manifest.Budget{Micros: 1}
	scopes := func(g *Gate, capability, reducer string) [3]bool {
		ofCap, ofCell, ofWorld := g.Budgeted(capability, reducer)
		return [3]bool{ofCap, ofCell, ofWorld}
	}
	none := manifest.Budget{}
	require.Equal(t, [3]bool{true, false, false}, scopes(budgetGate(t, one, none, none, none), "all", "agent"))
	require.Equal(t, [3]bool{false, true, false}, scopes(budgetGate(t, none, one, none, none), "all", "agent"))
	require.Equal(t, [3]bool{false, false, true}, scopes(budgetGate(t, none, none, one, none), "all", "agent"))
	require.Equal(t, [3]bool{}, scopes(budgetGate(t, one, one, none, none), "other", reducer.Operator))
}

func TestSettleKeepsWhatNobodyKnows(t *testing.T) {
	g := budgetGate(t, manifest.Budget{}, manifest.Budget{Calls: 9, Tokens: 99, Micros: 99}, manifest.Budget{}, manifest.Budget{Tokens: 10, Micros: 5})
	in := &receipt.Intent{Cell: "agent/mia", Kind: "tool.x", Cap: "all"}
	has := receipt.Cost{Calls: 1, Tokens: 10, Micros: 5}
	for name, c := range map[string]struct {
		receipt receipt.Receipt
		beyond  bool
		want    Account
	}{
		"it tells nothing": {want: Account{Spent: receipt.Cost{Calls: 1}, Kept: receipt.Cost{Tokens: 10, Micros: 5}}},
		"it tells some": {
			receipt: receipt.Receipt{Cost: receipt.Cost{Tokens: 4, Bytes: 99}},
			want:    Account{Spent: receipt.Cost{Calls: 1, Tokens: 4}, Kept: receipt.Cost{Micros: 5}},
		},
		"it tells all": {
			receipt: receipt.Receipt{Status: receipt.StatusOK, Exact: true, Cost: receipt.Cost{Tokens: 4}},
			want:    Account{Spent: receipt.Cost{Calls: 1, Tokens: 4}},
		},
		"it tells more than it may cost": {
			receipt: receipt.Receipt{Cost: receipt.Cost{Tokens: 12, Micros: 5}}, beyond: true,
			want: Account{Spent: receipt.Cost{Calls: 1, Tokens: 10, Micros: 5}},
		},
		"it was refused": {receipt: receipt.Receipt{Status: receipt.StatusError, Exact: true}},
		"it never left":  {receipt: receipt.Receipt{Unsent: true}},
	} {
		account := new(Account)
		a := Accounts{Cell: account} // the others have no budget
		a.Reserve(has)
		require.Equal(t, Account{Reserved: has}, *account)
		charged, beyond := g.Charged(in, has, &c.receipt)
		g.Settle(in, a, has, charged, &c.receipt)
		require.Equal(t, c.want, *account, name)
		require.Equal(t, c.beyond, beyond, name)
	}
}

// TestResultThatComesLateIsCharged: nothing is set aside for what the outside has accepted.
func TestResultThatComesLateIsCharged(t *testing.T) {
	g := budgetGate(t, manifest.Budget{Calls: 9, Tokens: 99}, manifest.Budget{}, manifest.Budget{}, manifest.Budget{Tokens: 10, Micros: 5})
	in := &receipt.Intent{Cell: "agent/mia", Kind: "tool.x", Cap: "all"}
	r := &receipt.Receipt{Cost: receipt.Cost{Tokens: 12, Micros: 5}}
	charged, beyond := g.Charged(in, receipt.Cost{}, r)
	require.True(t, beyond)
	account := new(Account)
	g.Settle(in, Accounts{Cap: account}, receipt.Cost{}, charged, r)
	require.Equal(t, Account{Spent: receipt.Cost{Tokens: 10}}, *account, "its call was counted when it was accepted")
}

func TestAccountsStopAtTheEnds(t *testing.T) {
	great := receipt.Cost{Calls: math.MaxUint64, Tokens: math.MaxUint64, Bytes: math.MaxUint64, Micros: math.MaxUint64}
	account := new(Account)
	a := Accounts{World: account}
	a.Release(great)
	require.Zero(t, *account)
	a.Reserve(great)
	a.Reserve(great)
	require.Equal(t, Account{Reserved: great}, *account)
	for range 2 {
		a.Keep(great)
	}
	rest := great
	rest.Calls = 0
	require.Equal(t, Account{Spent: receipt.Cost{Calls: math.MaxUint64}, Kept: rest}, *account)
	Accounts{}.Reserve(great) // no budgets, no accounts
}

func TestAccountRoundTrips(t *testing.T) {
	empty, err := canon.Marshal(Account{})
	require.NoError(t, err)
	require.Equal(t, []byte{0xa0}, empty)
	rapid.Check(t, func(t *rapid.T) {
		account := rapid.Make[Account]().Draw(t, "account")
		data, err := canon.Marshal(account)
		require.NoError(t, err)
		var again Account
		require.NoError(t, canon.Unmarshal(data, &again))
		require.Equal(t, account, again)
	})
}

func TestAnotherAttemptNeedsItsBudgetAgain(t *testing.T) {
	none := manifest.Budget{}
	in := &receipt.Intent{Cell: "agent/mia", Kind: "tool.x", Cap: "all"}
	g := budgetGate(t, manifest.Budget{Tokens: 10}, none, manifest.Budget{Calls: 3}, manifest.Budget{Tokens: 4, Bytes: 1})
	a := Accounts{Cap: new(Account), World: new(Account)}
	attempt := receipt.Cost{Calls: 1, Tokens: 4}
	for range 2 {
		need, short, _ := g.Room(in, a, receipt.Cost{}, nil, 0)
		require.Empty(t, short)
		require.Equal(t, attempt, need)
		a.Reserve(need)
	}
	_, short, _ := g.Room(in, a, receipt.Cost{}, nil, 0) // 2 tokens are left
	require.Len(t, short, 1)
	require.False(t, short[0].Gone, "what is set aside may come back")
	require.Nil(t, g.Gone(in, a, 0))
	require.True(t, g.CanRepeat(in, a, attempt, 0), "4 tokens may be used up, 6 are left")
	a.Keep(attempt)
	require.False(t, g.CanRepeat(in, a, attempt, 0), "8 tokens may be used up, 2 are left")
	a.Keep(attempt)
	require.Equal(t, UnitTokens, g.Gone(in, a, 0).Unit)

	need, short, _ := budgetGate(t, none, none, none, manifest.Budget{Tokens: 4}).Room(in, Accounts{}, receipt.Cost{}, nil, 0)
	require.Empty(t, short)
	require.Zero(t, need)
	require.True(t, budgetGate(t, none, manifest.Budget{Bytes: 9}, none, none).Gone(in, Accounts{}, 0).Unknown)
	require.NotNil(t, budgetGate(t, none, manifest.Budget{Calls: 1}, none, none).Gone(in, Accounts{Cell: &Account{Spent: receipt.Cost{Calls: 1}}}, 0))
}

func TestBudgetIsThatOfTheCapabilityInUse(t *testing.T) {
	tools, mail := capFor(0, "tool.*"), capFor(0, "*")
	tools.Budget, mail.Budget = manifest.Budget{Calls: 1}, manifest.Budget{Calls: 2}
	g := gateWith(t, map[string]manifest.Cap{"tools": tools, "mail": mail}, "tools", "mail")
	req := request(t, "tool.x", "{}")
	req.Caps = map[string]*Account{"mail": {Spent: receipt.Cost{Calls: 2}}}
	require.Equal(t, Allow, g.Decide(req).Verdict)
	req.Kind = "mail.send"
	require.Equal(t, CodeBudgetExceeded, g.Decide(req).Code)
	// The capability is chosen before its budget is looked at.
	req.Kind, req.Caps = "tool.x", map[string]*Account{"tools": {Spent: receipt.Cost{Calls: 1}}}
	d := g.Decide(req)
	require.Equal(t, CodeBudgetExceeded, d.Code)
	require.Equal(t, "tools", d.Cap)
}
