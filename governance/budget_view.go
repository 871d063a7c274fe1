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

// Used returns what is gone of a budget, within what was reserved and beyond.
func (a *Account) Used() receipt.Cost {
	used := a.Spent
	for u := range unitCount {
		*u.of(&used) = satAdd(*u.of(&used), *u.of(&a.Overrun))
	}
	return used
}

// Sum returns what two costs are together.
func Sum(a, b receipt.Cost) receipt.Cost {
	for u := range unitCount {
		*u.of(&a) = satAdd(*u.of(&a), *u.of(&b))
	}
	return a
}

// Rest returns what a cost is more than another, in each unit.
func Rest(a, b receipt.Cost) receipt.Cost {
	for u := range unitCount {
		*u.of(&a) = satSub(*u.of(&a), *u.of(&b))
	}
	return a
}

// Bounded returns what of a cost is in units that a budget bounds.
func Bounded(limit manifest.Budget, c receipt.Cost) receipt.Cost {
	bounds := receipt.Cost(limit)
	for u := range unitCount {
		if *u.of(&bounds) == 0 {
			*u.of(&c) = 0
		}
	}
	return c
}

// Left returns what may still be reserved of a budget; account may be nil: unused. Units
// that the budget does not bound are 0.
func Left(limit manifest.Budget, account *Account) receipt.Cost {
	var out receipt.Cost
	for u := range unitCount {
		*u.of(&out), _ = scope{&limit, account}.left(u)
	}
	return out
}
