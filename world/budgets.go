package world

import (
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// BudgetView is a budget and its use in each bounded unit.
type BudgetView struct {
	Scope governance.Scope
	Name  string          // of the capability or the cell; empty for the world
	Limit manifest.Budget // a field that is 0 bounds nothing
	Spent receipt.Cost    // for good
	Held  receipt.Cost    // set aside for intents that have not ended, or whose cost nobody knows
	Kept  receipt.Cost    // of Held, what stays for good: for intents that ended, and nobody knows what they used
	Left  receipt.Cost    // of the units that are bounded

	Renews manifest.Tick // when all of it is there again but what is held by then; 0: never

	Holders []receipt.Entry // the intents that Held is for, in their order: Reserved is what each holds
	Waiters []receipt.Entry // those that wait for what others hold of it, in the order in which they go on
}

// Budgets returns the budgets of the manifest in force: the world's, then those of
// capabilities by name, then those of cells that have drawn on theirs, by name.
func (m *Moment) Budgets() []BudgetView {
	k, holders, waits := m.k, m.k.ledger.holders(), m.Waits()
	var out []BudgetView
	add := func(scope governance.Scope, name string, limit manifest.Budget, account *governance.Account) {
		if limit == (manifest.Budget{}) {
			return
		}
		v := BudgetView{Scope: scope, Name: name, Limit: limit, Left: governance.Left(limit, account, k.now), Renews: governance.Renews(limit, k.now)}
		is := account.At(&limit, k.now)
		v.Spent = governance.Bounded(limit, is.Spent)
		v.Held = governance.Bounded(limit, governance.Sum(is.Reserved, is.Kept))
		v.Kept = v.Held
		for _, e := range holders {
			e.Reserved = governance.Bounded(limit, e.Reserved)
			if e.Reserved != (receipt.Cost{}) && scope.Has(name, &e.Intent) {
				v.Holders, v.Kept = append(v.Holders, e), governance.Rest(v.Kept, e.Reserved)
			}
		}
		for _, e := range k.ledger.Open() {
			if w := waits[e.Intent.Key]; w.For(governance.Budgeted{Scope: scope, Name: name}) {
				v.Waiters = append(v.Waiters, *e)
			}
		}
		out = append(out, v)
	}
	rules := k.rules.manifest
	add(governance.ScopeWorld, "", rules.Budget, k.budgets.World)
	for _, name := range slices.Sorted(maps.Keys(rules.Caps)) {
		add(governance.ScopeCap, name, rules.Caps[name].Budget, k.budgets.Caps[name])
	}
	for _, c := range k.sortedCells(nil) {
		if account := c.asked().account; account != nil {
			add(governance.ScopeCell, c.name, rules.Reducers[c.id().Reducer].Budget, account)
		}
	}
	return out
}
