package worldctl

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newIntentCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "intent"},
		newIntentListCommand(c), newIntentShowCommand(c), newIntentApproveCommand(c), newIntentDenyCommand(c), newIntentStopCommand(c),
		newIntentEditCommand(c), newIntentResolveCommand(c), newIntentRetryCommand(c), newIntentConfirmCommand(c), newIntentAnswerCommand(c))
}

func newIntentListCommand(c *cli) *cobra.Command {
	var state string
	var f view.IntentFilter
	var limit uint64
	cmd := &cobra.Command{
		Use: "list",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, _ []string) error {
			f.State = receipt.State(state)
			entries, err := recordsOf(lw).Selected(f)
			if err != nil {
				return err
			}
			lines, err := recordsOf(lw).IntentLines(entries)
			if err != nil {
				return err
			}
			return list(c, "intent-list", "intents", first(each(entries, lines.Line), limit), columns[view.IntentLine]{
				header: intentHeader(),
				row: func(l view.IntentLine) table.Row {
					return c.intentRow(l, l.State.AwaitsPerson() || l.State == receipt.StateInDoubt)
				},
				none: recordsOf(lw).NoneSelected(f),
			})
		}),
	}
	addFilter(cmd, &f)
	cmd.Flags().StringVar(&state, "state", "", "only those in `STATE`: open, in_flight, in_doubt, awaiting_approval, awaiting_answer, awaiting_confirmation, committed, failed, denied, cancelled, or awaiting, which is the three together")
	addLimit(cmd, &limit, "intents")
	return cmd
}

// addFilter adds the flags that select intents.
func addFilter(cmd *cobra.Command, f *view.IntentFilter) {
	cmd.Flags().StringVar(&f.Cell, "cell", "", "only those of this `CELL`, or with a * behind of all whose names begin so")
	cmd.Flags().StringVar(&f.Kind, "kind", "", "only those of this `KIND`, or with a * behind of all that begin so")
	cmd.Flags().StringVar(&f.Since, "since", "", "only those that were made at this `MOMENT` or later")
}

func intentHeader() table.Row {
	return table.Row{"key", "cell", "kind", "state", "decision", "rules", "params", "why"}
}

// intentRow is a line of a table of intents; decides: a person is to decide about it.
func (c *cli) intentRow(l view.IntentLine, decides bool) table.Row {
	params := ""
	if decides {
		params = view.Describer{Full: c.verbose}.Data(l.Params)
	}
	return table.Row{view.Short(l.Key), l.Cell, l.Kind, l.Standing(), l.Decision, strings.Join(l.Rules, ", "), params, visible(l.Reason, "")}
}

func newIntentShowCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "show KEY",
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
	c.facts([][2]any{
		{"key", a.Key},
		{"cell", a.Cell},
		{"kind", a.Kind},
		{"state", a.Standing()},
		when(a.Reason != "", "why", visible(a.Reason, "\n")),
		{"decision", a.Decision},
		{"rules", strings.Join(a.Rules, ", ")},
		{"capability", a.Cap},
		{"attempt", a.Attempt},
		{"step", a.StepID},
		{"external key", a.ExternalKey},
		{"emitted", numbered(a.Emitted)},
		{"started", numbered(a.Started)},
		{"finished", numbered(a.Finished)},
		{"cost", view.Cost(a.Cost)},
		{"reserved", view.Cost(a.Reserved)},
		when(a.Deadline != 0, "deadline", fmt.Sprintf("tick %d", a.Deadline)),
		when(a.For != nil, "compensates", a.For),
		when(a.Instead != nil, "in its place", a.Instead),
		when(a.InsteadOf != nil, "instead of", a.InsteadOf),
		when(a.Repeats != nil, "repeats", a.Repeats), when(a.Repeats != nil, "reused", a.Reused),
		when(a.Accepted != nil, "outside", accepted(a.Accepted)),
		{"params hash", a.ParamsHash},
		{"params", params},
	}...)
	c.showAsks(a.Asks)
	c.showDecisions(a.Decisions)
	tabulate(c, table.Row{"attempt", "started", "receipt", "status", "outcome", "cost", "given up"}, a.Attempts, func(x *view.Attempt) table.Row {
		given, cost := visible(x.Reason, ""), view.Cost(x.Cost)
		if x.Late {
			given += " (and its receipt came late)"
		}
		if x.Charged != nil {
			cost += ", which it cannot have used: charged " + view.Cost(*x.Charged)
		}
		return table.Row{x.Attempt, numbered(x.Started), numbered(x.Receipt), x.Status, x.Outcome, cost, given}
	})
}

// showDecisions prints who decided what about an intent, and why.
func (c *cli) showDecisions(all []view.IntentDecision) {
	tabulate(c, table.Row{"decided", "record", "by", "params hash", "payload", "reason"}, all, func(d *view.IntentDecision) table.Row {
		payload := ""
		if len(d.Payload) > 0 {
			payload = view.Describer{Full: c.verbose}.Data(d.Payload)
		}
		return table.Row{d.How, numbered(d.Record), visible(d.Actor, ""), d.ParamsHash.String()[:12], payload, visible(d.Reason, "")}
	})
}

// accepted says what the outside calls what it works on, and what it has said of it.
func accepted(a *view.Accepted) string {
	if a == nil {
		return ""
	}
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
