package api

import "github.com/worldkernel/worldkernel/show/view"

// Budgets is a page of the budgets of a world: the world's, those of capabilities, and
// those of cells that have drawn on theirs.
type Budgets struct {
	Schema  string        `json:"schema"`
	Budgets []view.Budget `json:"budgets"`
	Next    *string       `json:"next"` // the path of what comes after it; null: nothing does
}

func listBudgets(c *call) error {
	all := c.world.Budgets()
	numbered := make([]uint64, len(all))
	for i := range all {
		numbered[i] = uint64(i + 1)
	}
	page, next, err := pageOf(c, numbered, func(n *uint64) uint64 { return *n })
	if err != nil {
		return err
	}
	out := Budgets{Schema: view.SchemaOf("budget-list"), Budgets: []view.Budget{}, Next: next}
	for _, n := range page {
		out.Budgets = append(out.Budgets, all[n-1])
	}
	return c.ok(out)
}
