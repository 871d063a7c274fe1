package worldctl

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newIntentShowCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY",
		Short: "Show an intent: what was asked, what the gate decided, and where it stands",
		Long: `Show an intent: what was asked, what the gate decided, who decided what about it, where
it stands and every attempt. KEY may be cut short, to no less than 8 digits.`,
		Example: "  worldctl intent show 9f86d081884c",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, args []string) error {
			e, err := recordsOf(lw).FindIntent(args[0])
			if err != nil {
				return err
			}
			return answer(c, "intent", c.showIntent)(recordsOf(lw).Intent(e))
		}),
	}
}

func (c *cli) showIntent(a *view.Intent) {
	params, err := indented(a.Params)
	if err != nil {
		params = err.Error()
	}
	facts := [][2]any{
		{"key", a.Key}, {"cell", a.Cell}, {"kind", a.Kind}, {"state", a.Standing()},
	}
	if a.Reason != "" {
		facts = append(facts, [2]any{"why", visible(a.Reason, "\n")})
	}
	facts = append(facts, [2]any{"decision", a.Decision}, [2]any{"rules", strings.Join(a.Rules, ", ")}, [2]any{"capability", a.Cap},
		[2]any{"attempt", a.Attempt}, [2]any{"step", a.StepID}, [2]any{"external key", a.ExternalKey},
		[2]any{"emitted", numbered(a.Emitted)}, [2]any{"started", numbered(a.Started)}, [2]any{"finished", numbered(a.Finished)},
		[2]any{"cost", view.Cost(a.Cost)}, [2]any{"reserved", view.Cost(a.Reserved)})
	if a.Deadline != 0 {
		facts = append(facts, [2]any{"deadline", fmt.Sprintf("tick %d", a.Deadline)})
	}
	if a.For != nil {
		facts = append(facts, [2]any{"compensates", *a.For})
	}
	if a.Instead != nil {
		facts = append(facts, [2]any{"in its place", *a.Instead})
	}
	if a.InsteadOf != nil {
		facts = append(facts, [2]any{"instead of", *a.InsteadOf})
	}
	if a.Repeats != nil {
		facts = append(facts, [2]any{"repeats", *a.Repeats}, [2]any{"reused", a.Reused})
	}
	if a.Accepted != nil {
		facts = append(facts, [2]any{"outside", accepted(a.Accepted)})
	}
	c.facts(append(facts, [2]any{"params hash", a.ParamsHash}, [2]any{"params", params})...)
	c.showAsks(a.Asks)
	c.showDecisions(a.Decisions)
	if len(a.Attempts) == 0 {
		return
	}
	rows := []table.Row{{"attempt", "started", "receipt", "status", "outcome", "cost", "given up"}}
	for _, x := range a.Attempts {
		given := visible(x.Reason, "")
		if x.Late {
			given += " (and its receipt came late)"
		}
		cost := view.Cost(x.Cost)
		if x.Charged != nil {
			cost += ", which it cannot have used: charged " + view.Cost(*x.Charged)
		}
		rows = append(rows, table.Row{x.Attempt, numbered(x.Started), numbered(x.Receipt), x.Status, x.Outcome, cost, given})
	}
	c.rows(rows)
}

// showDecisions prints who decided what about an intent, and why.
func (c *cli) showDecisions(all []view.IntentDecision) {
	if len(all) == 0 {
		return
	}
	rows := []table.Row{{"decided", "record", "by", "params hash", "payload", "reason"}}
	for _, d := range all {
		payload := ""
		if len(d.Payload) > 0 {
			payload = view.Describer{Full: c.verbose}.Data(d.Payload)
		}
		rows = append(rows, table.Row{d.How, numbered(d.Record), visible(d.Actor, ""), d.ParamsHash.String()[:12], payload, visible(d.Reason, "")})
	}
	c.rows(rows)
}

// accepted says what the outside calls what it works on, and what it has said of it.
func accepted(a *view.Accepted) string {
	text := fmt.Sprintf("%q (#%d): %s", a.ID, a.Record, visible(a.Message, " "))
	if a.Until != 0 {
		text += "; asked until " + time.Unix(0, a.Until).UTC().Format(time.RFC3339)
	}
	if !a.Wanted {
		text += "; its cell has cancelled it"
	}
	return text
}

// showAsks prints what an intent has asked persons, and what they said.
func (c *cli) showAsks(asks []view.Asked) {
	for _, x := range asks {
		for _, r := range x.Requests {
			fmt.Fprintf(c.stdout, "asks %s: %s\nschema: %s\n", visible(r.Name, ""), visible(r.Message, ""), view.Describer{Full: c.verbose}.Data(r.Schema))
		}
		fmt.Fprintf(c.stdout, "answer: %s\n", view.Describer{Full: c.verbose}.Data(x.Answer))
	}
}

func numbered(id journal.Seq) string {
	if id == 0 {
		return "not yet"
	}
	return fmt.Sprintf("#%d", id)
}
