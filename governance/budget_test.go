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
		Effects:  map[string]manifest.Effect{"tool.x": {Adapter: "stub", MaxCost: maxCost}},
		Policies: append(policies, allow("anything", anything)),
		Budget:   ofWorld,
	})
	require.NoError(t, err)
	return g
}

func TestBudgetDeniesWhatIsNotLeft(t *testing.T) {
	type budget = manifest.Budget
	used := func(spent, reserved, overrun uint64) *Account {
		same := func(n uint64) receipt.Cost { return receipt.Cost{Calls: n, Tokens: n, Bytes: n, Micros: n} }
		return &Account{Spent: same(spent), Reserved: same(reserved), Overrun: same(overrun)}
	}
	for _, c := range []struct {
		name                       string
		ofCap, ofCell, ofWorld     budget
		maxCost                    budget
		accounts                   Accounts
		code                       Code
		reserve                    receipt.Cost
		scope, unit, reasonNumbers string
	}{
		{name: "nothing is bounded", maxCost: budget{Tokens: 5}},
		{name: "calls", ofCap: budget{Calls: 1}, reserve: receipt.Cost{Calls: 1}},
		{name: "units that are not bounded are not reserved", ofWorld: budget{Tokens: 9}, maxCost: budget{Tokens: 5, Micros: 7}, reserve: receipt.Cost{Calls: 1, Tokens: 5}},
		{name: "units bounded in different scopes", ofCap: budget{Bytes: 3}, ofCell: budget{Micros: 7}, maxCost: budget{Bytes: 3, Micros: 7}, reserve: receipt.Cost{Calls: 1, Bytes: 3, Micros: 7}},
		{name: "the last call", ofCell: budget{Calls: 3}, accounts: Accounts{Cell: used(1, 1, 0)}, reserve: receipt.Cost{Calls: 1}},
		{
			name: "no call left", ofCell: budget{Calls: 3}, accounts: Accounts{Cell: used(1, 2, 0)},
			code: CodeBudgetExceeded, scope: "cell agent/mia", unit: "calls", reasonNumbers: "has 0 calls left, effect \"tool.x\" asks for 1",
		},
		{
			name: "overrun is gone, too", ofCell: budget{Calls: 3}, accounts: Accounts{Cell: used(1, 1, 1)},
			code: CodeBudgetExceeded, scope: "cell agent/mia", unit: "calls", reasonNumbers: "has 0 calls left",
		},
		{
			name: "more is gone than there was", ofCap: budget{Tokens: 3}, maxCost: budget{Tokens: 1}, accounts: Accounts{Cap: used(math.MaxUint64, 9, 9)},
			code: CodeBudgetExceeded, scope: `capability "all"`, unit: "tokens", reasonNumbers: "has 0 tokens left",
		},
		{
			name: "asks for more than is left", ofWorld: budget{Micros: 10}, maxCost: budget{Micros: 6}, accounts: Accounts{World: used(3, 2, 0)},
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
			d := budgetGate(t, c.ofCap, c.ofCell, c.ofWorld, c.maxCost).Decide(req)
			require.Equal(t, c.code, d.Code, d.Reason)
			require.Equal(t, c.reserve, d.Reserve)
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
		})
		require.NoError(t, err)
		req := request(t, kind, "{}")
		req.Accounts = spent
		return g.Decide(req)
	}
	require.Equal(t, CodeKindNotAllowed, judge("mail.send", deny("never", anything)).Code)
	require.Equal(t, CodePolicyDenied, judge("tool.x", deny("never", anything)).Code)
	// Who waits for approval reserves nothing, and is not denied for want of a budget.
	parked := judge("tool.x", requireApproval("person", anything))
	require.Equal(t, RequireApproval, parked.Verdict)
	require.Zero(t, parked.Reserve)
	require.Equal(t, CodeBudgetExceeded, judge("tool.x", allow("anything", anything)).Code)
}

func TestApprovedEffectStillNeedsItsBudget(t *testing.T) {
	g := budgetGate(t, manifest.Budget{Calls: 1}, manifest.Budget{}, manifest.Budget{}, manifest.Budget{}, requireApproval("person", anything))
	req := request(t, "tool.x", "{}")
	req.Approved = true
	require.Equal(t, receipt.Cost{Calls: 1}, g.Decide(req).Reserve)
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
	req.Accounts = Accounts{Cap: &Account{Overrun: receipt.Cost{Bytes: 6}}, Cell: &Account{Reserved: receipt.Cost{Calls: 1}}}
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
	account := new(Account)
	a := Accounts{Cell: account} // the others have no budget
	reserved := receipt.Cost{Calls: 1, Tokens: 10, Micros: 5}
	a.Reserve(reserved)
	a.Start(reserved)
	started := Account{Spent: receipt.Cost{Calls: 1}, Reserved: receipt.Cost{Tokens: 10, Micros: 5}}
	require.Equal(t, started, *account)
	a.Settle(reserved, receipt.Cost{Calls: 1})
	require.Equal(t, started, *account)
	a.Settle(reserved, receipt.Cost{Tokens: 12, Bytes: 99})
	require.Equal(t, Account{Spent: receipt.Cost{Calls: 1, Tokens: 10}, Overrun: receipt.Cost{Tokens: 2}}, *account)
	a.Return()
	a.Return()
	require.Equal(t, Account{Spent: receipt.Cost{Tokens: 10}, Overrun: receipt.Cost{Tokens: 2}}, *account)
}

func TestAccountsStopAtTheEnds(t *testing.T) {
	great := receipt.Cost{Calls: math.MaxUint64, Tokens: math.MaxUint64, Bytes: math.MaxUint64, Micros: math.MaxUint64}
	account := new(Account)
	a := Accounts{World: account}
	a.Release(great)
	a.Return()
	a.Start(great)
	require.Zero(t, *account)
	a.Reserve(great)
	a.Reserve(great)
	require.Equal(t, Account{Reserved: great}, *account)
	a.Settle(great, great)
	a.Settle(great, great)
	spent := great
	spent.Calls = 0
	require.Equal(t, spent, account.Spent)
	require.Equal(t, spent, account.Overrun)
	require.Equal(t, receipt.Cost{Calls: math.MaxUint64}, account.Reserved)
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

// attempt is one that reserved something, as a ledger would know it.
type attempt struct {
	accounts Accounts
	reserved receipt.Cost
	started  bool
}

// TestBudgetsAreConserved drives two capabilities, two cells and the world
// through attempts in any order, as the kernel does, beside plain sums of what
// every account should hold.
func TestBudgetsAreConserved(t *testing.T) {
	bound := rapid.Custom(func(t *rapid.T) manifest.Budget {
		n := rapid.SampledFrom([]uint64{0, 1, 7, 40, math.MaxInt64})
		return manifest.Budget{Calls: n.Draw(t, "calls"), Tokens: n.Draw(t, "tokens"), Bytes: n.Draw(t, "bytes"), Micros: n.Draw(t, "micros")}
	})
	rapid.Check(t, func(t *rapid.T) {
		budgets := [3]manifest.Budget{bound.Draw(t, "cap"), bound.Draw(t, "cell"), bound.Draw(t, "world")}
		m := &manifest.Manifest{
			Reducers: map[string]manifest.Reducer{"agent": {Grants: []string{"a", "b"}, Budget: budgets[1]}},
			Caps:     map[string]manifest.Cap{"a": capFor(0, "*"), "b": capFor(0, "*")},
			Policies: []manifest.Policy{allow("anything", anything)},
			Effects: map[string]manifest.Effect{
				"cheap": {MaxCost: manifest.Budget{Tokens: 1, Bytes: 1, Micros: 1}},
				"dear":  {MaxCost: manifest.Budget{Tokens: 5, Bytes: 3, Micros: 20}},
				"vague": {MaxCost: manifest.Budget{Tokens: 2}},
			},
			Budget: budgets[2],
		}
		for name, c := range m.Caps {
			c.Budget = budgets[0]
			m.Caps[name] = c
		}
		g, err := NewGate(m)
		require.NoError(t, err)
		b := &books{
			t: t, gate: g, budgets: budgets,
			accounts: map[string]*Account{}, want: map[*Account]*Account{}, used: map[*Account]*receipt.Cost{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { b.check() }, "ask": b.ask, "start": b.start, "settle": b.settle, "release": b.release, "return": b.giveBack,
		})
	})
}

type books struct {
	t        *rapid.T
	gate     *Gate
	budgets  [3]manifest.Budget
	accounts map[string]*Account
	open     []*attempt
	want     map[*Account]*Account      // Spent.Calls and Reserved are exact
	used     map[*Account]*receipt.Cost // Spent + Overrun of the other units
}

func (b *books) account(name string, budgeted bool) *Account {
	if !budgeted {
		return nil
	}
	if b.accounts[name] == nil {
		account := new(Account)
		b.accounts[name], b.want[account], b.used[account] = account, new(Account), new(receipt.Cost)
	}
	return b.accounts[name]
}

func (b *books) ask(t *rapid.T) {
	capability := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "cap")
	cell := reducer.Cell{Reducer: "agent", Key: rapid.SampledFrom([]string{"mia", "tom"}).Draw(t, "cell")}
	ofCap, ofCell, ofWorld := b.gate.Budgeted(capability, cell.Reducer)
	accounts := Accounts{b.account(capability, ofCap), b.account(cell.String(), ofCell), b.account("world", ofWorld)}
	d := b.gate.Decide(&Request{
		Cell: cell, Cap: capability, Kind: rapid.SampledFrom([]string{"cheap", "dear", "vague"}).Draw(t, "kind"), Accounts: accounts,
	})
	if d.Verdict != Allow {
		require.Contains(t, []Code{CodeBudgetExceeded, CodeNoMaxCost}, d.Code)
		return
	}
	accounts.Reserve(d.Reserve)
	accounts.each(func(a *Account) { plus(&b.want[a].Reserved, d.Reserve) })
	b.open = append(b.open, &attempt{accounts: accounts, reserved: d.Reserve})
}

func plus(to *receipt.Cost, c receipt.Cost) {
	to.Calls, to.Tokens, to.Bytes, to.Micros = to.Calls+c.Calls, to.Tokens+c.Tokens, to.Bytes+c.Bytes, to.Micros+c.Micros
}

func minus(from *receipt.Cost, c receipt.Cost) {
	from.Calls, from.Tokens, from.Bytes, from.Micros = from.Calls-c.Calls, from.Tokens-c.Tokens, from.Bytes-c.Bytes, from.Micros-c.Micros
}

// pick takes out an open attempt, or skips the step where there is none.
func (b *books) pick(t *rapid.T, started bool) *attempt {
	var fit []int
	for i, a := range b.open {
		if a.started == started {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		t.Skip("no such attempt")
	}
	i := rapid.SampledFrom(fit).Draw(t, "attempt")
	a := b.open[i]
	b.open = append(b.open[:i], b.open[i+1:]...)
	return a
}

func (b *books) start(t *rapid.T) {
	a := b.pick(t, false)
	a.accounts.Start(a.reserved)
	a.started = true
	b.open = append(b.open, a)
	call := receipt.Cost{Calls: a.reserved.Calls}
	a.accounts.each(func(account *Account) {
		minus(&b.want[account].Reserved, call)
		plus(&b.want[account].Spent, call)
	})
}

func (b *books) settle(t *rapid.T) {
	a := b.pick(t, true)
	n := rapid.Uint64Range(0, 30)
	actual := receipt.Cost{Tokens: n.Draw(t, "tokens"), Bytes: n.Draw(t, "bytes"), Micros: n.Draw(t, "micros")}
	if rapid.Bool().Draw(t, "unknown") {
		actual = receipt.Cost{}
	}
	a.accounts.Settle(a.reserved, actual)
	if actual == (receipt.Cost{}) {
		return // all stays reserved, for good
	}
	rest := a.reserved
	rest.Calls = 0
	if rest.Tokens == 0 {
		actual.Tokens = 0 // bounded nowhere
	}
	if rest.Bytes == 0 {
		actual.Bytes = 0
	}
	if rest.Micros == 0 {
		actual.Micros = 0
	}
	a.accounts.each(func(account *Account) {
		minus(&b.want[account].Reserved, rest)
		plus(b.used[account], actual)
	})
}

func (b *books) release(t *rapid.T) {
	a := b.pick(t, false)
	a.accounts.Release(a.reserved)
	a.accounts.each(func(account *Account) { minus(&b.want[account].Reserved, a.reserved) })
}

// giveBack ends a started attempt of which nothing had left.
func (b *books) giveBack(t *rapid.T) {
	a := b.pick(t, true)
	rest := a.reserved
	rest.Calls = 0
	a.accounts.Return()
	a.accounts.Release(rest)
	a.accounts.each(func(account *Account) {
		minus(&b.want[account].Spent, receipt.Cost{Calls: 1})
		minus(&b.want[account].Reserved, rest)
	})
}

func (b *books) check() {
	for name, account := range b.accounts {
		want, used := b.want[account], b.used[account]
		require.Equal(b.t, want.Reserved, account.Reserved, name)
		require.Equal(b.t, want.Spent.Calls, account.Spent.Calls, name)
		sum := account.Spent
		plus(&sum, account.Overrun)
		sum.Calls = 0
		require.Equal(b.t, *used, sum, name)
		budget := b.budgets[1]
		switch name {
		case "a", "b":
			budget = b.budgets[0]
		case "world":
			budget = b.budgets[2]
		}
		most, held := receipt.Cost(budget), account.Spent
		plus(&held, account.Reserved)
		for u := range unitCount {
			if bound := *u.of(&most); bound > 0 {
				require.LessOrEqual(b.t, *u.of(&held), bound, "%s %s", name, u)
			}
		}
	}
}
