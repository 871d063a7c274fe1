package governance

import (
	"fmt"
	"math"
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// Account is what one budget has been used for. The zero value is unused. For
// every unit that the budget bounds, Spent + Reserved never exceeds it while
// every Reserve was a Decision's.
type Account struct {
	Spent    receipt.Cost `cbor:"spent,omitzero" json:"spent,omitzero"`       // used, as far as it was reserved; never comes back but by Return
	Reserved receipt.Cost `cbor:"reserved,omitzero" json:"reserved,omitzero"` // set aside for effects that are not settled
	Overrun  receipt.Cost `cbor:"overrun,omitzero" json:"overrun,omitzero"`   // used beyond what was reserved; gone like Spent
}

// Accounts are those of the three budgets that an effect has to fit in: of its
// capability, of its cell and of the world. An account that is nil is unused
// and stays so; Gate.Budgeted says which ones are needed.
//
// Every attempt goes Reserve, Start, Settle; or Reserve, Release where it is
// not started after all; or Reserve, Start, Return and Release of the rest where
// nothing had left.
type Accounts struct{ Cap, Cell, World *Account }

// Reserve sets aside what a Decision says.
func (a Accounts) Reserve(c receipt.Cost) {
	a.each(func(a *Account) {
		for u := range unitCount {
			*u.of(&a.Reserved) = satAdd(*u.of(&a.Reserved), *u.of(&c))
		}
	})
}

// Start spends the call of an attempt for which c was reserved.
func (a Accounts) Start(c receipt.Cost) {
	a.each(func(a *Account) { unitCalls.move(a, min(c.Calls, 1)) })
}

// Return takes the call of a started attempt back: nothing had left.
func (a Accounts) Return() {
	a.each(func(a *Account) { a.Spent.Calls = satSub(a.Spent.Calls, 1) })
}

// Settle ends a started attempt for which reserved was set aside and that used
// actual; its calls are settled by Start. Of a unit without an actual cost nobody
// knows what it used, and what was reserved stays so, unless Free follows: not every
// adapter can tell money. A unit of which nothing was reserved is bounded nowhere and not counted.
func (a Accounts) Settle(reserved, actual receipt.Cost) {
	actual.Calls, reserved.Calls = 0, 0
	a.each(func(a *Account) {
		for u := range unitCount {
			set, used := *u.of(&reserved), *u.of(&actual)
			if set == 0 || used == 0 {
				continue
			}
			spent := u.move(a, min(used, set))
			*u.of(&a.Reserved) = satSub(*u.of(&a.Reserved), set-min(used, set))
			*u.of(&a.Overrun) = satAdd(*u.of(&a.Overrun), used-spent)
		}
	})
}

// Free gives back what was reserved for a settled attempt in units that its actual cost
// does not name, where that is known to be all.
func (a Accounts) Free(reserved, actual receipt.Cost) {
	for u := range unitCount {
		if *u.of(&actual) != 0 {
			*u.of(&reserved) = 0
		}
	}
	reserved.Calls = 0
	a.Release(reserved)
}

// Release gives back what was reserved: all of it where the attempt is not
// started, all but the call after a Return.
func (a Accounts) Release(c receipt.Cost) {
	a.each(func(a *Account) {
		for u := range unitCount {
			*u.of(&a.Reserved) = satSub(*u.of(&a.Reserved), *u.of(&c))
		}
	})
}

func (a Accounts) each(f func(*Account)) {
	for _, account := range [...]*Account{a.Cap, a.Cell, a.World} {
		if account != nil {
			f(account)
		}
	}
}

// unit is one of those that budgets are in.
type unit uint8

const (
	unitCalls unit = iota
	unitTokens
	unitBytes
	unitMicros
	unitCount
)

func (u unit) String() string { return [unitCount]string{"calls", "tokens", "bytes", "micros"}[u] }

// of returns the field of a cost that is in u.
func (u unit) of(c *receipt.Cost) *uint64 {
	return [unitCount]*uint64{&c.Calls, &c.Tokens, &c.Bytes, &c.Micros}[u]
}

// move spends as much of n as is reserved, and returns how much that is.
func (u unit) move(a *Account, n uint64) uint64 {
	reserved, spent := u.of(&a.Reserved), u.of(&a.Spent)
	n = min(n, *reserved)
	*reserved -= n
	*spent = satAdd(*spent, n)
	return n
}

// satAdd and satSub stop at the ends of what there is.
func satAdd(a, b uint64) uint64 { return a + min(b, math.MaxUint64-a) }
func satSub(a, b uint64) uint64 { return a - min(a, b) }

// scope is one of the three budgets of an effect; its account may be nil.
type scope struct {
	budget  *manifest.Budget
	account *Account
}

// left returns what may still be reserved, and whether the scope bounds u.
func (s scope) left(u unit) (uint64, bool) {
	budget := receipt.Cost(*s.budget)
	n := *u.of(&budget)
	if n == 0 || s.account == nil {
		return n, n != 0
	}
	for _, gone := range [...]*receipt.Cost{&s.account.Spent, &s.account.Reserved, &s.account.Overrun} {
		n = satSub(n, *u.of(gone))
	}
	return n, true
}

// reserve returns what an effect has to reserve that costs at most maxCost:
// nothing where no budget bounds anything. Else it says what is lacking.
func reserve(scopes *[3]scope, maxCost manifest.Budget) (receipt.Cost, *shortage) {
	var none manifest.Budget
	if *scopes[0].budget == none && *scopes[1].budget == none && *scopes[2].budget == none {
		return receipt.Cost{}, nil
	}
	most, out := receipt.Cost(maxCost), receipt.Cost{Calls: 1}
	most.Calls = 1
	for i, s := range scopes {
		for u := range unitCount {
			left, bounded := s.left(u)
			if !bounded {
				continue
			}
			ask := *u.of(&most)
			if ask == 0 || ask > left {
				return receipt.Cost{}, &shortage{scope: i, unit: u, left: left, ask: ask}
			}
			*u.of(&out) = ask
		}
	}
	return out, nil
}

// shortage is what one of the three budgets has not enough of.
type shortage struct {
	scope     int
	unit      unit
	left, ask uint64 // ask is 0 where the effect does not say how much
}

// budget turns an Allow into a denial where one of the three budgets has not
// enough left, and else says what to reserve.
func (a *activation) budget(allowed Decision) Decision {
	scopes := a.scopes()
	cost, short := reserve(&scopes, a.gate.effect(a.req.Kind).MaxCost)
	if short == nil {
		allowed.Reserve = cost
		return allowed
	}
	scope := [...]string{fmt.Sprintf("capability %q", a.grant.name), "cell " + a.req.Cell.String(), "the world"}[short.scope]
	d := Decision{Code: CodeBudgetExceeded, Cap: a.grant.name}
	d.Reason = fmt.Sprintf("the budget of %s has %d %s left, effect %q asks for %d", scope, short.left, short.unit, a.req.Kind, short.ask)
	if short.ask == 0 {
		d.Code = CodeNoMaxCost
		d.Reason = fmt.Sprintf("effect %q declares no max_cost in %s, which the budget of %s bounds", a.req.Kind, short.unit, scope)
	}
	return d
}

// scopes returns the budgets of the capability, the cell and the world.
func (a *activation) scopes() [3]scope {
	return [3]scope{
		{&a.grant.Budget, a.capAccount()},
		{&a.holder.budget, a.req.Accounts.Cell},
		{&a.gate.manifest.Budget, a.req.Accounts.World},
	}
}

// left returns what the tightest of the three budgets has left.
func (a *activation) left(u unit) uint64 {
	least := uint64(math.MaxInt64)
	for _, s := range a.scopes() {
		if n, bounded := s.left(u); bounded {
			least = min(least, n)
		}
	}
	return least
}

// Budgeted reports which of the accounts of an effect there is a budget for:
// of a capability, of a cell of a reducer, and of the world.
func (g *Gate) Budgeted(capability, reducer string) (ofCap, ofCell, ofWorld bool) {
	var none manifest.Budget
	return g.manifest.Caps[capability].Budget != none, g.manifest.Reducers[reducer].Budget != none, g.manifest.Budget != none
}

// capAccount returns the account of the capability at hand.
func (a *activation) capAccount() *Account {
	if a.req.Accounts.Cap != nil {
		return a.req.Accounts.Cap
	}
	return a.req.Caps[a.grant.name]
}

// HasCall reports whether the budgets of an intent that the gate has allowed
// have a call left for another attempt.
func (g *Gate) HasCall(in *receipt.Intent, a Accounts) bool {
	for _, s := range g.scopesOf(in, a) {
		if left, bounded := s.left(unitCalls); bounded && left == 0 {
			return false
		}
	}
	return true
}

// Again returns what to reserve for another attempt of an intent that the gate
// has allowed, or false where its budgets have not enough left.
func (g *Gate) Again(in *receipt.Intent, a Accounts) (receipt.Cost, bool) {
	scopes := g.scopesOf(in, a)
	cost, short := reserve(&scopes, g.effect(in.Kind).MaxCost)
	return cost, short == nil
}

func (g *Gate) scopesOf(in *receipt.Intent, a Accounts) [3]scope {
	asker, _, _ := strings.Cut(in.Cell, "/")
	ofCap, ofCell := g.manifest.Caps[in.Cap].Budget, g.manifest.Reducers[asker].Budget
	return [3]scope{{&ofCap, a.Cap}, {&ofCell, a.Cell}, {&g.manifest.Budget, a.World}}
}
