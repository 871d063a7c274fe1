package governance

import (
	"math"
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// The versions of how budgets are counted.
const (
	budgetVersion1 = "budget/1" // what an attempt may cost is set aside when it is asked for
	budgetVersion2 = "budget/2" // when it starts: docs/adr/0034-what-an-attempt-may-cost-is-set-aside-when-it-starts.md
)

// BudgetVersions returns the versions of [manifest.EngineBudget] that there are, oldest
// first.
func BudgetVersions() []string { return []string{budgetVersion1, budgetVersion2} }

// Account is what one budget has been used for, since it renewed. The zero value is
// unused. For every unit that the budget bounds, Spent + Reserved + Kept never exceeds it
// while every Reserve was a Decision's, or Room's.
type Account struct {
	Spent    receipt.Cost `cbor:"spent,omitzero" json:"spent,omitzero"`       // used, as far as it was reserved; never comes back but by Return
	Reserved receipt.Cost `cbor:"reserved,omitzero" json:"reserved,omitzero"` // set aside for effects that are not settled
	Overrun  receipt.Cost `cbor:"overrun,omitzero" json:"overrun,omitzero"`   // used beyond what was reserved; gone like Spent

	// Set aside for attempts that are over, of which nobody knows what they used: gone,
	// too. Under version 1 it is a part of Reserved.
	Kept  receipt.Cost  `cbor:"kept,omitzero" json:"kept,omitzero"`
	Since manifest.Tick `cbor:"since,omitempty" json:"since,omitempty"` // when the budget renewed last before it was drawn on
}

// window returns the tick at which a budget renewed last; 0 where it never does.
func window(limit *manifest.Budget, now manifest.Tick) manifest.Tick {
	if limit.Per == 0 {
		return 0
	}
	return now - now%limit.Per
}

// renews returns the tick at which a budget renews next; 0: never.
func renews(limit *manifest.Budget, now manifest.Tick) manifest.Tick {
	if limit.Per == 0 {
		return 0
	}
	return window(limit, now).Plus(limit.Per)
}

// At returns what a budget has been used for at a tick; a may be nil: for nothing. Where
// it has renewed, all that is gone is there again, and what is reserved stays so: it is
// counted when the attempt ends.
func (a *Account) At(limit *manifest.Budget, now manifest.Tick) Account {
	began := window(limit, now)
	switch {
	case a == nil:
		return Account{Since: began}
	case a.Since < began:
		return Account{Reserved: a.Reserved, Since: began}
	default:
		return *a
	}
}

// Accounts are those of the three budgets that an effect has to fit in: of its
// capability, of its cell and of the world. An account that is nil is unused
// and stays so; Gate.Budgeted says which ones are needed.
//
// Under version 1 every attempt goes Reserve, Start, Settle; or Reserve, Release where it
// is not started after all; or Reserve, Start, Return and Release of the rest where
// nothing had left. Under version 2 it goes Reserve when it starts, and Gate.Settle, Keep
// or Release when it is over.
type Accounts struct{ Cap, Cell, World *Account }

// Reserve sets aside what a Decision says.
func (a Accounts) Reserve(c receipt.Cost) {
	a.each(func(a *Account) {
		for u := range unitCount {
			*u.Of(&a.Reserved) = satAdd(*u.Of(&a.Reserved), *u.Of(&c))
		}
	})
}

// Start spends the call of an attempt for which c was reserved.
func (a Accounts) Start(c receipt.Cost) {
	a.each(func(a *Account) { UnitCalls.move(a, min(c.Calls, 1)) })
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
			set, used := *u.Of(&reserved), *u.Of(&actual)
			if set == 0 || used == 0 {
				continue
			}
			spent := u.move(a, min(used, set))
			*u.Of(&a.Reserved) = satSub(*u.Of(&a.Reserved), set-min(used, set))
			*u.Of(&a.Overrun) = satAdd(*u.Of(&a.Overrun), used-spent)
		}
	})
}

// Free gives back what was reserved for a settled attempt in units that its actual cost
// does not name, where that is known to be all.
func (a Accounts) Free(reserved, actual receipt.Cost) {
	for u := range unitCount {
		if *u.Of(&actual) != 0 {
			*u.Of(&reserved) = 0
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
			*u.Of(&a.Reserved) = satSub(*u.Of(&a.Reserved), *u.Of(&c))
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

// Unit is one of those that budgets are in.
type Unit uint8

// The units.
const (
	UnitCalls Unit = iota
	UnitTokens
	UnitBytes
	UnitMicros
	unitCount
)

// String returns the name of a unit, as manifests have it.
func (u Unit) String() string { return [unitCount]string{"calls", "tokens", "bytes", "micros"}[u] }

// Units returns all units.
func Units() []Unit { return []Unit{UnitCalls, UnitTokens, UnitBytes, UnitMicros} }

// Of returns the field of a cost that is in u.
func (u Unit) Of(c *receipt.Cost) *uint64 {
	return [unitCount]*uint64{&c.Calls, &c.Tokens, &c.Bytes, &c.Micros}[u]
}

// move spends as much of n as is reserved, and returns how much that is.
func (u Unit) move(a *Account, n uint64) uint64 {
	reserved, spent := u.Of(&a.Reserved), u.Of(&a.Spent)
	n = min(n, *reserved)
	*reserved -= n
	*spent = satAdd(*spent, n)
	return n
}

// satAdd and satSub stop at the ends of what there is.
func satAdd(a, b uint64) uint64 { return a + min(b, math.MaxUint64-a) }
func satSub(a, b uint64) uint64 { return a - min(a, b) }

// amounts returns what a budget bounds, in each unit; 0: it does not.
func amounts(b *manifest.Budget) receipt.Cost {
	return receipt.Cost{Calls: b.Calls, Tokens: b.Tokens, Bytes: b.Bytes, Micros: b.Micros}
}

// scope is one of the three budgets of an effect.
type scope struct {
	of      Budgeted
	budget  *manifest.Budget
	account Account // of now
	renews  manifest.Tick
}

func newScope(of Budgeted, limit *manifest.Budget, account *Account, now manifest.Tick) scope {
	return scope{of, limit, account.At(limit, now), renews(limit, now)}
}

// bounds returns how much of a unit there is; 0: it is not bounded.
func (s *scope) bounds(u Unit) uint64 {
	all := amounts(s.budget)
	return *u.Of(&all)
}

// left returns what may still be reserved, and whether the scope bounds u.
func (s *scope) left(u Unit) (uint64, bool) {
	return satSub(s.rest(u), *u.Of(&s.account.Reserved)), s.bounds(u) != 0
}

// rest returns what would be left if all that is reserved came back.
func (s *scope) rest(u Unit) uint64 {
	n := s.bounds(u)
	for _, gone := range [...]*receipt.Cost{&s.account.Spent, &s.account.Overrun, &s.account.Kept} {
		n = satSub(n, *u.Of(gone))
	}
	return n
}

// reserve returns what an effect has to reserve under version 1: nothing where no
// budget bounds anything. Else it says what is lacking.
func reserve(scopes *[3]scope, e *manifest.Effect) (receipt.Cost, *Shortage) {
	if unbounded(scopes) {
		return receipt.Cost{}, nil
	}
	out := receipt.Cost{Calls: 1}
	for i := range scopes {
		for u := range unitCount {
			s := &scopes[i]
			left, bounded := s.left(u)
			if !bounded {
				continue
			}
			ask, known := most(e, u)
			if !known || ask > left {
				return receipt.Cost{}, &Shortage{Of: s.of, Unit: u, Left: left, Ask: ask, Unknown: !known, Gone: true, Renews: s.renews}
			}
			*u.Of(&out) = ask
		}
	}
	return out, nil
}

func unbounded(scopes *[3]scope) bool {
	var none manifest.Budget
	return *scopes[0].budget == none && *scopes[1].budget == none && *scopes[2].budget == none
}

// most returns how much of a unit an attempt of an effect costs at most, and whether the
// effect says so.
func most(e *manifest.Effect, u Unit) (uint64, bool) {
	if u == UnitCalls {
		return 1, true
	}
	n := [unitCount]*uint64{UnitTokens: e.MaxCost.Tokens, UnitBytes: e.MaxCost.Bytes, UnitMicros: e.MaxCost.Micros}[u]
	if n == nil {
		return 0, false
	}
	return *n, true
}

// budget turns an Allow into a denial where one of the three budgets has not
// enough left, and else says what to reserve.
func (a *activation) budget(allowed Decision) Decision {
	scopes, e := a.scopes(), a.gate.effect(a.req.Kind)
	var short *Shortage
	if a.gate.AtStart() {
		_, all := room(&scopes, e, receipt.Cost{})
		short = firstGone(all)
	} else {
		allowed.Reserve, short = reserve(&scopes, e)
	}
	if short == nil {
		return allowed
	}
	d := Decision{Cap: a.grant.name}
	d.Code, d.Reason = short.Denies(a.req.Kind)
	return d
}

// scopes returns the budgets of the capability, the cell and the world.
func (a *activation) scopes() [3]scope {
	now := a.req.Time
	return [3]scope{
		newScope(Budgeted{ScopeCap, a.grant.name}, &a.grant.Budget, a.capAccount(), now),
		newScope(Budgeted{ScopeCell, a.req.Cell.String()}, &a.holder.budget, a.req.Accounts.Cell, now),
		newScope(Budgeted{ScopeWorld, ""}, &a.gate.manifest.Budget, a.req.Accounts.World, now),
	}
}

// left returns what the tightest of the three budgets has left.
func (a *activation) left(u Unit) uint64 {
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
func (g *Gate) HasCall(in *receipt.Intent, a Accounts, now manifest.Tick) bool {
	for _, s := range g.scopesOf(in, a, now) {
		if left, bounded := s.left(UnitCalls); bounded && left == 0 {
			return false
		}
	}
	return true
}

// Again returns what to reserve for another attempt of an intent that the gate
// has allowed, or false where its budgets have not enough left.
func (g *Gate) Again(in *receipt.Intent, a Accounts, now manifest.Tick) (receipt.Cost, bool) {
	scopes := g.scopesOf(in, a, now)
	cost, short := reserve(&scopes, g.effect(in.Kind))
	return cost, short == nil
}

func (g *Gate) scopesOf(in *receipt.Intent, a Accounts, now manifest.Tick) [3]scope {
	asker, _, _ := strings.Cut(in.Cell, "/")
	ofCap, ofCell := g.manifest.Caps[in.Cap].Budget, g.manifest.Reducers[asker].Budget
	return [3]scope{
		newScope(Budgeted{ScopeCap, in.Cap}, &ofCap, a.Cap, now),
		newScope(Budgeted{ScopeCell, in.Cell}, &ofCell, a.Cell, now),
		newScope(Budgeted{ScopeWorld, ""}, &g.manifest.Budget, a.World, now),
	}
}

// Renew brings the accounts of an intent to a tick.
func (g *Gate) Renew(in *receipt.Intent, a Accounts, now manifest.Tick) {
	scopes := g.scopesOf(in, a, now)
	for i, account := range [...]*Account{a.Cap, a.Cell, a.World} {
		if account != nil {
			*account = scopes[i].account
		}
	}
}
