package governance

import (
	"fmt"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// OfCells reports whether there are budgets of single cells: intents of two cells that ask
// for the same may draw on other accounts then.
func (g *Gate) OfCells() bool { return g.ofCells }

// Budgeted names a budget.
type Budgeted struct {
	Scope Scope
	Name  string // of the capability or the cell; empty for the world
}

// String returns a budget's name for a sentence.
func (b Budgeted) String() string {
	switch b.Scope {
	case ScopeCap:
		return fmt.Sprintf("capability %q", b.Name)
	case ScopeCell:
		return "cell " + b.Name
	default:
		return "the world"
	}
}

// Shortage is a unit of which a budget has less left than the next attempt of an intent
// may cost.
type Shortage struct {
	Of      Budgeted
	Unit    Unit
	Left    uint64        // where it is Gone: also if all came back that is set aside
	Ask     uint64        // what the attempt may cost
	Unknown bool          // the effect does not say what it may cost: it is Gone, too
	Gone    bool          // what is used up leaves no room; else only what is set aside for others does not
	Renews  manifest.Tick // when the budget does; 0: never
}

// Denies returns why the shortage denies an effect of a kind.
func (s *Shortage) Denies(kind string) (Code, string) {
	if s.Unknown {
		return CodeNoMaxCost, fmt.Sprintf("effect %q declares no max_cost in %s, which the budget of %s bounds", kind, s.Unit, s.Of)
	}
	text := fmt.Sprintf("the budget of %s has %d %s left, effect %q asks for %d", s.Of, s.Left, s.Unit, kind, s.Ask)
	if s.Renews != 0 {
		text += fmt.Sprintf("; it renews at tick %d", s.Renews)
	}
	return CodeBudgetExceeded, text
}

// Want is a unit of a budget that an attempt needs.
type Want struct {
	Of   Budgeted
	Unit Unit
}

// Claims are the needs of older waiting intents: younger intents have the rest of a budget.
type Claims map[Want]uint64

// Add adds the need of an intent.
func (c Claims) Add(x Want, need receipt.Cost) { c[x] = satAdd(c[x], *x.Unit.Of(&need)) }

// Wants returns what need is wanted of, by an intent.
func (g *Gate) Wants(in *receipt.Intent, need receipt.Cost) (out []Want) {
	scopes := g.scopesOf(in, Accounts{}, 0)
	for i := range scopes {
		for u := range unitCount {
			if *u.Of(&need) > 0 && scopes[i].bounds(u) != 0 {
				out = append(out, Want{scopes[i].of, u})
			}
		}
	}
	return out
}

// Room returns what has to be set aside for the next attempt of an intent that the gate
// has allowed, beside what is set aside for it already; of what its budgets have not
// enough left; and of what they have not enough beside the claims of others. The attempt
// can start where there is nothing of both.
func (g *Gate) Room(
	in *receipt.Intent, a Accounts, has receipt.Cost, claims Claims, now manifest.Tick,
) (need receipt.Cost, short []Shortage, behind []Want) {
	if !g.bounded {
		return receipt.Cost{}, nil, nil
	}
	scopes := g.scopesOf(in, a, now)
	need, short = room(&scopes, g.effect(in.Kind), in.Params, has)
	if len(claims) == 0 {
		return need, short, nil
	}
	for i := range scopes {
		for u := range unitCount {
			x := Want{scopes[i].of, u}
			left, bounded := scopes[i].left(u)
			if bounded && claims[x] > 0 && *u.Of(&need) > satSub(left, claims[x]) {
				behind = append(behind, x)
			}
		}
	}
	return need, short, behind
}

func room(scopes *[3]scope, e *manifest.Effect, params receipt.Data, has receipt.Cost) (need receipt.Cost, short []Shortage) {
	if unbounded(scopes) {
		return receipt.Cost{}, nil
	}
	need.Calls = satSub(1, has.Calls)
	for i := range scopes {
		for u := range unitCount {
			s := &scopes[i]
			left, bounded := s.left(u)
			if !bounded {
				continue
			}
			ask, known := most(e, params, u)
			known = known || !canUse(e.Adapter, u)
			*u.Of(&need) = satSub(ask, *u.Of(&has))
			if !known || ask > s.rest(u) {
				short = append(short, Shortage{Of: s.of, Unit: u, Left: s.rest(u), Ask: ask, Unknown: !known, Gone: true, Renews: s.renews})
			} else if *u.Of(&need) > left {
				short = append(short, Shortage{Of: s.of, Unit: u, Left: left, Ask: ask, Renews: s.renews})
			}
		}
	}
	return need, short
}

// canUse reports whether effects of an adapter can use a unit, as far as that is known.
func canUse(adapter string, u Unit) bool {
	uses := adapterOf(adapter).uses
	return uses == nil || uses(u)
}

func firstGone(all []Shortage) *Shortage {
	for i := range all {
		if all[i].Gone {
			return &all[i]
		}
	}
	return nil
}

// Gone returns a shortage that denies another attempt, whatever comes back of what is set
// aside; nil: there is none.
func (g *Gate) Gone(in *receipt.Intent, a Accounts, now manifest.Tick) *Shortage {
	_, short, _ := g.Room(in, a, receipt.Cost{}, nil, now)
	return firstGone(short)
}

// CanRepeat reports whether there is room for another attempt of an intent in doubt
// though what is set aside for its last one may be used up.
func (g *Gate) CanRepeat(in *receipt.Intent, a Accounts, has receipt.Cost, now manifest.Tick) bool {
	scopes := g.scopesOf(in, a, now)
	for i := range scopes {
		scopes[i].account.Kept = Sum(scopes[i].account.Kept, has)
	}
	_, short := room(&scopes, g.effect(in.Kind), in.Params, receipt.Cost{})
	return firstGone(short) == nil
}

// UsedBy returns what an attempt used, as far as its receipt tells. One that never left, or
// that the outside refused, is no call.
func UsedBy(r *receipt.Receipt) receipt.Cost {
	used := r.Cost
	used.Calls = 1
	if r.Unsent || r.Refused() {
		used.Calls = 0
	}
	return used
}

// Charged returns what an attempt for which has was set aside is charged, of the units that
// a budget of the intent bounds: what its receipt says, and of each unit no more than was set
// aside for it, or than max_cost where nothing was. beyond reports whether the receipt says
// more. It is the word of a server: nobody else's budget is used up by it.
func (g *Gate) Charged(in *receipt.Intent, has receipt.Cost, r *receipt.Receipt) (charged receipt.Cost, beyond bool) {
	scopes, e := g.scopesOf(in, Accounts{}, 0), g.effect(in.Kind)
	for _, u := range []Unit{UnitTokens, UnitBytes, UnitMicros} {
		if scopes[0].bounds(u) == 0 && scopes[1].bounds(u) == 0 && scopes[2].bounds(u) == 0 {
			continue
		}
		said, limit := *u.Of(&r.Cost), *u.Of(&has)
		if limit == 0 {
			limit, _ = most(e, in.Params, u)
		}
		*u.Of(&charged) = min(said, limit)
		beyond = beyond || said > limit
	}
	return charged, beyond
}

// Settle ends an attempt for which has was set aside, with what it is [Gate.Charged]: that is
// spent. Of what its receipt does not tell nobody knows what it used, and it is kept, unless
// the receipt says that it tells all. A call that the outside refused, or that never left, is
// none.
func (g *Gate) Settle(in *receipt.Intent, a Accounts, has, charged receipt.Cost, r *receipt.Receipt) {
	if r.Unsent {
		a.Release(has)
		return
	}
	charged.Calls = UsedBy(r).Calls
	scopes := g.scopesOf(in, a, 0)
	for i, account := range [...]*Account{a.Cap, a.Cell, a.World} {
		if account == nil {
			continue
		}
		for u := range unitCount {
			set, n := *u.Of(&has), *u.Of(&charged)
			*u.Of(&account.Reserved) = satSub(*u.Of(&account.Reserved), set)
			switch {
			case set == 0 && (u == UnitCalls || scopes[i].bounds(u) == 0): // it was counted before, or is not
			case n > 0:
				*u.Of(&account.Spent) = satAdd(*u.Of(&account.Spent), n)
			case !r.Exact:
				*u.Of(&account.Kept) = satAdd(*u.Of(&account.Kept), set)
			}
		}
	}
}

// Keep ends an attempt without an answer: its reservation counts as spent.
func (a Accounts) Keep(has receipt.Cost) {
	a.Release(has)
	call := receipt.Cost{Calls: has.Calls}
	has.Calls = 0
	a.each(func(a *Account) { a.Spent, a.Kept = Sum(a.Spent, call), Sum(a.Kept, has) })
}

// Reckon holds an account against what is set aside for intents that have not ended:
// other rules may draw on it than before. What was set aside for others is kept.
func (a *Account) Reckon(held receipt.Cost) {
	a.Kept = Sum(a.Kept, Rest(a.Reserved, held))
	a.Reserved = held
}
