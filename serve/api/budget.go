package api

// listBudgets answers with a page of the budgets of a world: the world's, those of capabilities, and
// those of cells that have drawn on theirs.
func listBudgets(c *call) error {
	page, next := pageOf(c, c.world.Budgets(), func(i int) uint64 { return uint64(i) + 1 })
	return c.list("budget-list", "budgets", page, next, nil)
}
