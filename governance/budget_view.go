package governance

import (
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
)

// Scope says whose a budget is.
type Scope string

// The scopes of budgets.
const (
	ScopeWorld Scope = "world"
	ScopeCap   Scope = "capability"
	ScopeCell  Scope = "cell"
)

// Has reports whether an intent draws on the budget of that name. Operators have no cell.
func (s Scope) Has(name string, in *receipt.Intent) bool {
	switch s {
	case ScopeCap:
		return in.Cap == name
	case ScopeCell:
		return in.Cell == name && !strings.HasPrefix(name, reducer.Operator+"/")
	default:
		return true
	}
}

// Sum returns what two costs are together.
func Sum(a, b receipt.Cost) receipt.Cost {
	for u := range unitCount {
		*u.Of(&a) = satAdd(*u.Of(&a), *u.Of(&b))
	}
	return a
}

// Rest returns what a cost is more than another, in each unit.
func Rest(a, b receipt.Cost) receipt.Cost {
	for u := range unitCount {
		*u.Of(&a) = satSub(*u.Of(&a), *u.Of(&b))
	}
	return a
}

// Bounded returns what of a cost is in units that a budget bounds.
func Bounded(limit manifest.Budget, c receipt.Cost) receipt.Cost {
	bounds := amounts(&limit)
	for u := range unitCount {
		if *u.Of(&bounds) == 0 {
			*u.Of(&c) = 0
		}
	}
	return c
}

// Left returns what may still be reserved of a budget at a tick; account may be nil:
// unused. Units that the budget does not bound are 0.
func Left(limit manifest.Budget, account *Account, now manifest.Tick) receipt.Cost {
	var out receipt.Cost
	s := newScope(Budgeted{}, limit, account, now)
	for u := range unitCount {
		*u.Of(&out), _ = s.left(u)
	}
	return out
}

// Amounts returns what a budget bounds, in each unit; 0: it does not.
func Amounts(limit manifest.Budget) receipt.Cost { return amounts(&limit) }

// Renews returns the tick at which a budget renews next; 0: never.
func Renews(limit manifest.Budget, now manifest.Tick) manifest.Tick { return renews(&limit, now) }
