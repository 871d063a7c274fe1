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
	intent   *receipt.Intent
	accounts Accounts
	reserved receipt.Cost
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
			accounts: map[string]*Account{}, want: map[*Account]*Account{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { b.check() }, "start": b.start, "settle": b.settle, "release": b.release, "keep": b.keep,
		})
	})
}

type books struct {
	t        *rapid.T
	gate     *Gate
	budgets  [3]manifest.Budget
	accounts map[string]*Account
	open     []*attempt
	want     map[*Account]*Account
}

func (b *books) account(name string, budgeted bool) *Account {
	if !budgeted {
		return nil
	}
	if b.accounts[name] == nil {
		account := new(Account)
		b.accounts[name], b.want[account] = account, new(Account)
	}
	return b.accounts[name]
}

func (b *books) start(t *rapid.T) {
	capability := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "cap")
	cell := reducer.Cell{Reducer: "agent", Key: rapid.SampledFrom([]string{"mia", "tom"}).Draw(t, "cell")}
	ofCap, ofCell, ofWorld := b.gate.Budgeted(capability, cell.Reducer)
	accounts := Accounts{b.account(capability, ofCap), b.account(cell.String(), ofCell), b.account("world", ofWorld)}
	kind := rapid.SampledFrom([]string{"cheap", "dear", "vague"}).Draw(t, "kind")
	d := b.gate.Decide(&Request{Cell: cell, Cap: capability, Kind: kind, Accounts: accounts})
	in := &receipt.Intent{Cell: cell.String(), Kind: kind, Cap: capability}
	need, short, _ := b.gate.Room(in, accounts, receipt.Cost{}, nil, 0)
	if d.Verdict != Allow {
		require.Contains(t, []Code{CodeBudgetExceeded, CodeNoMaxCost}, d.Code)
		require.NotEmpty(t, short)
	}
	if len(short) > 0 {
		return
	}
	accounts.Reserve(need)
	accounts.each(func(a *Account) { plus(&b.want[a].Reserved, need) })
	b.open = append(b.open, &attempt{in, accounts, need})
}

func plus(to *receipt.Cost, c receipt.Cost) {
	to.Calls, to.Tokens, to.Bytes, to.Micros = to.Calls+c.Calls, to.Tokens+c.Tokens, to.Bytes+c.Bytes, to.Micros+c.Micros
}

func minus(from *receipt.Cost, c receipt.Cost) {
	from.Calls, from.Tokens, from.Bytes, from.Micros = from.Calls-c.Calls, from.Tokens-c.Tokens, from.Bytes-c.Bytes, from.Micros-c.Micros
}

// pick takes out an open attempt, or skips the step where there is none.
func (b *books) pick(t *rapid.T) *attempt {
	if len(b.open) == 0 {
		t.Skip("no attempt")
	}
	i := rapid.IntRange(0, len(b.open)-1).Draw(t, "attempt")
	a := b.open[i]
	b.open = append(b.open[:i], b.open[i+1:]...)
	return a
}

func (b *books) settle(t *rapid.T) {
	a := b.pick(t)
	n := rapid.Uint64Range(0, 30)
	r := &receipt.Receipt{
		Status: rapid.SampledFrom([]receipt.Status{receipt.StatusOK, receipt.StatusError}).Draw(t, "status"),
		Cost:   receipt.Cost{Tokens: n.Draw(t, "tokens"), Bytes: n.Draw(t, "bytes"), Micros: n.Draw(t, "micros")},
		Exact:  rapid.Bool().Draw(t, "exact"), Unsent: rapid.Bool().Draw(t, "unsent"),
	}
	charged, _ := b.gate.Charged(a.intent, a.reserved, r)
	b.gate.Settle(a.intent, a.accounts, a.reserved, charged, r)
	var used, unknown receipt.Cost
	if !r.Unsent {
		if !r.Refused() {
			used.Calls = a.reserved.Calls
		}
		for u := UnitTokens; u < unitCount; u++ {
			*u.Of(&used) = min(*u.Of(&r.Cost), *u.Of(&a.reserved))
			if *u.Of(&used) == 0 && !r.Exact {
				*u.Of(&unknown) = *u.Of(&a.reserved)
			}
		}
	}
	a.accounts.each(func(account *Account) {
		minus(&b.want[account].Reserved, a.reserved)
		plus(&b.want[account].Spent, used)
		plus(&b.want[account].Kept, unknown)
	})
}

func (b *books) release(t *rapid.T) {
	a := b.pick(t)
	a.accounts.Release(a.reserved)
	a.accounts.each(func(account *Account) { minus(&b.want[account].Reserved, a.reserved) })
}

// keep ends an attempt that nobody has an answer to.
func (b *books) keep(t *rapid.T) {
	a := b.pick(t)
	a.accounts.Keep(a.reserved)
	rest := a.reserved
	rest.Calls = 0
	a.accounts.each(func(account *Account) {
		minus(&b.want[account].Reserved, a.reserved)
		plus(&b.want[account].Spent, receipt.Cost{Calls: a.reserved.Calls})
		plus(&b.want[account].Kept, rest)
	})
}

func (b *books) check() {
	for name, account := range b.accounts {
		require.Equal(b.t, b.want[account], account, name)
		budget := b.budgets[1]
		switch name {
		case "a", "b":
			budget = b.budgets[0]
		case "world":
			budget = b.budgets[2]
		}
		most, held := amounts(&budget), account.Spent
		plus(&held, account.Reserved)
		plus(&held, account.Kept)
		for u := range unitCount {
			if bound := *u.Of(&most); bound > 0 {
				require.LessOrEqual(b.t, *u.Of(&held), bound, "%s %s", name, u)
			}
		}
	}
}
