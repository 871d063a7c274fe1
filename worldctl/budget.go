package worldctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newBudgetCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "budget"},
		newBudgetListCommand(c), newBudgetShowCommand(c))
}

func newBudgetListCommand(c *cli) *cobra.Command {
	var limit uint64
	cmd := &cobra.Command{
		Use: "list",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, _ []string) error {
			all := recordsOf(lw).Budgets()
			if c.output != formTable {
				return list(c, "budget-list", "budgets", first(allItems(all), limit), columns[view.Budget]{})
			}
			if ago := since(lw); ago != "" {
				c.note("as of %s%s", recordsOf(lw).Tick(lw.Status().Time), ago)
			}
			var rows []budgetRow
			for _, b := range all {
				for _, u := range b.Units {
					rows = append(rows, budgetRow{b.Of(), u, len(b.Holders) + b.More, b.Waiting, renewal(lw, &b)})
				}
			}
			return list(c, "budget-list", "budgets", first(allItems(rows), limit), columns[budgetRow]{
				header: table.Row{"of", "unit", "limit", "spent", "held", "left", "holders", "waiting", "renews"},
				row: func(r budgetRow) table.Row {
					return table.Row{r.of, r.Unit, r.Limit, r.Spent, r.Held, r.Left, r.holders, r.waiting, r.renews}
				},
				none: "no budgets: budget in world.yaml bounds the world, a capability or the cells of a reducer",
			})
		}),
	}
	addLimit(cmd, &limit, "budgets")
	return cmd
}

// budgetRow is a line about a budget in one unit.
type budgetRow struct {
	of string
	view.BudgetUnit
	holders int
	waiting int
	renews  string
}

// renewal is when what is spent of a budget is there again; empty: never.
func renewal(lw *local.World, b *view.Budget) string {
	if b.Renews == 0 {
		return ""
	}
	if lw.IsReal() {
		return calendar(lw, b.Renews)
	}
	return fmt.Sprintf("tick %d", b.Renews)
}

func newBudgetShowCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, args []string) error {
			b, err := recordsOf(lw).Budget(args[0])
			if errors.Is(err, view.ErrNoBudget) {
				err = hinted(err, "worldctl budget list")
			}
			return answer(c, "budget", func(b *view.BudgetFull) { c.showBudget(lw, b) })(b, err)
		}),
	}
}

func (c *cli) showBudget(lw *local.World, b *view.BudgetFull) {
	if ago := since(lw); ago != "" {
		fmt.Fprintf(c.stdout, "as of %s%s\n", recordsOf(lw).Tick(b.Time), ago)
	}
	for _, u := range b.Units {
		fmt.Fprintf(c.stdout, "%s: %d of %d left, %d spent, %d held\n", u.Unit, u.Left, u.Limit, u.Spent, u.Held)
	}
	for _, h := range b.Holders {
		fmt.Fprintf(c.stdout, "held by %s %s %s, %s: %s\n", view.Short(h.Key), h.Cell, h.Kind, h.State, view.Cost(h.Holds))
	}
	if b.More > 0 {
		fmt.Fprintf(c.stdout, "held by %d more\n", b.More)
	}
	for _, w := range b.Waiters {
		fmt.Fprintf(c.stdout, "waited for by %s %s %s\n", view.Short(w.Key), w.Cell, w.Kind)
	}
	if more := b.Waiting - len(b.Waiters); more > 0 {
		fmt.Fprintf(c.stdout, "waited for by %d more\n", more)
	}
	if b.Renews > 0 {
		fmt.Fprintf(c.stdout, "renews at tick %d, %s\n", b.Renews, calendar(lw, b.Renews))
	}
	if b.Kept != (receipt.Cost{}) {
		fmt.Fprintf(c.stdout, "held for good, for effects that ended and of which nobody knows what they used: %s\n", view.Cost(b.Kept))
	}
	for _, u := range b.Used {
		fmt.Fprintf(c.stdout, "used by %s: %s\n", joined(u.Kind, u.Model), view.Cost(u.Cost))
	}
}

// joined returns the words that are there.
func joined(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}
