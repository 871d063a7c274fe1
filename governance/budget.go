package governance

import (
	"math"
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// BudgetVersion is the last version of how budgets are counted: what an attempt may cost is
// set aside when it starts, and an intent that waits holds nothing.
// See docs/adr/0034-what-an-attempt-may-cost-is-set-aside-when-it-starts.md.
const BudgetVersion = "budget/1"

// BudgetVersions returns the versions of [manifest.EngineBudget] that there are, oldest
// first.
func BudgetVersions() []string { return []string{BudgetVersion} }

// Account is the use of a budget since its last renewal. The zero value is unused. For every unit
// that the budget bounds, Spent + Reserved + Kept never exceeds it while every Reserve was Room's,
// and every attempt that is charged had one.
type Account struct {
	Spent    receipt.Cost `cbor:"spent,omitzero" json:"spent,omitzero"`       // used; never comes back
	Reserved receipt.Cost `cbor:"reserved,omitzero" json:"reserved,omitzero"` // set aside for effects that are not settled
	Kept     receipt.Cost `cbor:"kept,omitzero" json:"kept,omitzero"`         // set aside for attempts that are over, of which nobody knows what they used: gone, too

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
// Every attempt goes Reserve when it starts, and Gate.Settle, Keep or Release when it is
// over.
type Accounts struct{ Cap, Cell, World *Account }

// Reserve sets aside what Gate.Room says.
func (a Accounts) Reserve(c receipt.Cost) {
	a.each(func(a *Account) { a.Reserved = Sum(a.Reserved, c) })
}

// Release gives back what was reserved.
func (a Accounts) Release(c receipt.Cost) {
	a.each(func(a *Account) { a.Reserved = Rest(a.Reserved, c) })
}

func (a Accounts) each(f func(*Account)) {
	for _, account := range [...]*Account{a.Cap, a.Cell, a.World} {
		if account != nil {
			f(account)
		}
	}
}

// Unit is a unit of budgets.
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
	budget  manifest.Budget
	account Account // of now
	renews  manifest.Tick
}

func newScope(of Budgeted, limit manifest.Budget, account *Account, now manifest.Tick) scope {
	return scope{of, limit, account.At(&limit, now), renews(&limit, now)}
}

// bounds returns how much of a unit there is; 0: it is not bounded.
func (s *scope) bounds(u Unit) uint64 {
	all := amounts(&s.budget)
	return *u.Of(&all)
}

// left returns what may still be reserved, and whether the scope bounds u.
func (s *scope) left(u Unit) (uint64, bool) {
	return satSub(s.rest(u), *u.Of(&s.account.Reserved)), s.bounds(u) != 0
}

// rest returns what would be left if all that is reserved came back.
func (s *scope) rest(u Unit) uint64 {
	n := s.bounds(u)
	for _, gone := range [...]*receipt.Cost{&s.account.Spent, &s.account.Kept} {
		n = satSub(n, *u.Of(gone))
	}
	return n
}

func unbounded(scopes *[3]scope) bool {
	var none manifest.Budget
	return scopes[0].budget == none && scopes[1].budget == none && scopes[2].budget == none
}

// most returns how much of a unit an attempt of an effect costs at most, and whether the
// effect says so, or for a model call its params and the prices in its config.
func most(e *manifest.Effect, params receipt.Data, u Unit) (uint64, bool) {
	if u == UnitCalls {
		return 1, true
	}
	n := [unitCount]*uint64{UnitTokens: e.MaxCost.Tokens, UnitBytes: e.MaxCost.Bytes, UnitMicros: e.MaxCost.Micros}[u]
	if n != nil {
		return *n, true
	}
	costs := adapterOf(e.Adapter).costs
	if costs == nil {
		return 0, false
	}
	return costs(e.Config, params, u)
}

// MostOf returns what an attempt of an effect costs at most, as far as that is known.
func MostOf(e *manifest.Effect, params receipt.Data) (cost receipt.Cost) {
	for u := range unitCount {
		*u.Of(&cost), _ = most(e, params, u)
	}
	return cost
}

// budget turns an Allow into a denial where one of the three budgets has not
// enough left.
func (a *activation) budget(allowed Decision) Decision {
	scopes, e := a.scopes(), a.gate.effect(a.req.Kind)
	_, all := room(&scopes, e, a.req.Params, receipt.Cost{})
	short := firstGone(all)
	if short == nil {
		return allowed
	}
	d := Decision{Cap: a.grant.name}
	d.Code, d.Reason = short.Denies(a.req.Kind)
	return d
}

// scopes returns the budgets of the capability, the cell and the world.
func (a *activation) scopes() [3]scope {
	accounts := a.req.Accounts
	if accounts.Cap == nil {
		accounts.Cap = a.req.Caps[a.grant.name]
	}
	return a.gate.scopes(a.grant.name, a.req.Cell.Reducer, a.req.Cell.String(), accounts, a.req.Time)
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

func (g *Gate) scopesOf(in *receipt.Intent, a Accounts, now manifest.Tick) [3]scope {
	asker, _, _ := strings.Cut(in.Cell, "/")
	return g.scopes(in.Cap, asker, in.Cell, a, now)
}

func (g *Gate) scopes(capability, reducer, cell string, a Accounts, now manifest.Tick) [3]scope {
	return [3]scope{
		newScope(Budgeted{ScopeCap, capability}, g.manifest.Caps[capability].Budget, a.Cap, now),
		newScope(Budgeted{ScopeCell, cell}, g.manifest.Reducers[reducer].Budget, a.Cell, now),
		newScope(Budgeted{ScopeWorld, ""}, g.manifest.Budget, a.World, now),
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
