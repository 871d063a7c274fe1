package governance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

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
				"cheap": {MaxCost: maxCostOf(manifest.Budget{Tokens: 1, Bytes: 1, Micros: 1})},
				"dear":  {MaxCost: maxCostOf(manifest.Budget{Tokens: 5, Bytes: 3, Micros: 20})},
				"vague": {MaxCost: maxCostOf(manifest.Budget{Tokens: 2})},
			},
			Budget: budgets[2],
		}
		for name, c := range m.Caps {
			c.Budget = budgets[0]
			m.Caps[name] = c
		}
		g, err := NewGate(m, nil)
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
	rest := a.reserved // what is settled: a unit without a cost stays reserved, for good
	rest.Calls = 0
	for u := UnitTokens; u < unitCount; u++ {
		if *u.Of(&rest) == 0 || *u.Of(&actual) == 0 {
			*u.Of(&rest), *u.Of(&actual) = 0, 0 // bounded nowhere, or nobody knows
		}
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
		most, held := amounts(&budget), account.Spent
		plus(&held, account.Reserved)
		for u := range unitCount {
			if bound := *u.Of(&most); bound > 0 {
				require.LessOrEqual(b.t, *u.Of(&held), bound, "%s %s", name, u)
			}
		}
	}
}
