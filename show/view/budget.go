package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world"
)

// ErrNoBudget says that nothing of a name has a budget, or that no cell of it has drawn on
// its own.
var ErrNoBudget = errors.New("there is no such budget")

// Budget is a budget and its use.
type Budget struct {
	Scope   governance.Scope `json:"scope"`
	Name    string           `json:"name"` // of the capability or the cell; empty for the world
	Units   []BudgetUnit     `json:"units"`
	Kept    receipt.Cost     `json:"kept"`    // of what is held, for good: for effects that ended, and nobody knows what they used
	Time    manifest.Tick    `json:"time"`    // the tick as of which it is
	Renews  manifest.Tick    `json:"renews"`  // the tick; 0: never
	Holders []BudgetHolder   `json:"holders"` // the first governance.MaxListed
	More    int              `json:"more"`    // holders that are left out
	Waiters []BudgetWaiter   `json:"waiters"` // the first governance.MaxListed
	Waiting int              `json:"waiting"` // how many there are
}

// BudgetUnit is a budget's state in a bounded unit.
type BudgetUnit struct {
	Unit  string `json:"unit"`
	Limit uint64 `json:"limit"`
	Spent uint64 `json:"spent"` // beyond the limit where an effect used more than it may
	Held  uint64 `json:"held"`
	Left  uint64 `json:"left"`
}

// BudgetHolder is an intent that a part of a budget is set aside for.
type BudgetHolder struct {
	Key   receipt.Key   `json:"key"`
	Cell  string        `json:"cell"`
	Kind  string        `json:"kind"`
	State receipt.State `json:"state"`
	Holds receipt.Cost  `json:"holds"`
}

// BudgetWaiter is an intent that waits for what others hold of a budget.
type BudgetWaiter struct {
	Key  receipt.Key `json:"key"`
	Cell string      `json:"cell"`
	Kind string      `json:"kind"`
}

// BudgetFull is a Budget, and what its effects used.
type BudgetFull struct {
	Budget
	Used []Used `json:"used"`
}

// Used is what effects of a kind used, by the model that answered; empty: of none. It
// counts what receipts say, in parts that rollbacks left, too.
type Used struct {
	Kind  string       `json:"kind"`
	Model string       `json:"model"`
	Cost  receipt.Cost `json:"cost"`
}

// Budgets returns all budgets, as world.Moment has them.
func (j Journal) Budgets() (out []Budget) {
	j.Local.View(func(w *world.Moment) {
		for _, v := range w.Budgets() {
			b := budgetOf(&v)
			b.Time = w.Time()
			out = append(out, b)
		}
	})
	return out
}

func budgetOf(v *world.BudgetView) Budget {
	b := Budget{
		Scope: v.Scope, Name: v.Name, Kept: v.Kept, Renews: v.Renews, Waiting: len(v.Waiters),
		Units: []BudgetUnit{}, Holders: []BudgetHolder{}, Waiters: []BudgetWaiter{},
	}
	limit := governance.Amounts(v.Limit)
	for _, u := range governance.Units() {
		if n := *u.Of(&limit); n != 0 {
			b.Units = append(b.Units, BudgetUnit{u.String(), n, *u.Of(&v.Spent), *u.Of(&v.Held), *u.Of(&v.Left)})
		}
	}
	for _, e := range v.Holders[:min(len(v.Holders), governance.MaxListed)] {
		b.Holders = append(b.Holders, BudgetHolder{e.Intent.Key, e.Intent.Cell, e.Intent.Kind, e.State, e.Reserved})
	}
	b.More = len(v.Holders) - len(b.Holders)
	for _, e := range v.Waiters[:min(len(v.Waiters), governance.MaxListed)] {
		b.Waiters = append(b.Waiters, BudgetWaiter{e.Intent.Key, e.Intent.Cell, e.Intent.Kind})
	}
	return b
}

// Of names whose a budget is: world, or the name of a capability or a cell. A capability
// that is named world is cap:world.
func (b *Budget) Of() string {
	if b.Scope == governance.ScopeCap && b.Name == string(governance.ScopeWorld) {
		return "cap:" + b.Name
	}
	return cmp.Or(b.Name, string(b.Scope))
}

// Budget returns the budget of the world, a capability or a cell, and what was used under
// it. The error wraps ErrNoBudget.
func (j Journal) Budget(of string) (*BudgetFull, error) {
	all := j.Budgets()
	at := slices.IndexFunc(all, func(b Budget) bool { return b.Of() == of })
	if at < 0 {
		return nil, fmt.Errorf("%q: %w", of, ErrNoBudget)
	}
	out := &BudgetFull{Budget: all[at], Used: []Used{}}
	for a, err := range j.Answers() {
		if err != nil {
			return nil, err
		}
		if a.Raw != nil && !a.Late && out.Scope.Has(out.Name, &a.Intent.Intent) {
			out.use(a)
		}
	}
	slices.SortFunc(out.Used, func(a, b Used) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Model, b.Model)) })
	return out, nil
}

// use adds what a receipt says to have been used.
func (b *BudgetFull) use(a *Answer) {
	model := ""
	if raw, err := canon.Lookup(a.Payload, "model"); err == nil {
		r := canon.NewReader(raw)
		model = r.Text()
	}
	at := slices.IndexFunc(b.Used, func(u Used) bool { return u.Kind == a.Kind && u.Model == model })
	if at < 0 {
		at, b.Used = len(b.Used), append(b.Used, Used{Kind: a.Kind, Model: model})
	}
	b.Used[at].Cost = governance.Sum(b.Used[at].Cost, governance.UsedBy(&a.Receipt))
}
