package worldctl

import (
	"context"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newIntentCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "intent", Short: "Look at what was asked of the outside, and decide where a person has to"},
		newIntentListCommand(c), newIntentShowCommand(c), newIntentApproveCommand(c), newIntentDenyCommand(c), newIntentStopCommand(c),
		newIntentEditCommand(c), newIntentResolveCommand(c), newIntentRetryCommand(c), newIntentConfirmCommand(c), newIntentAnswerCommand(c))
}

func newIntentListCommand(c *cli) *cobra.Command {
	var state string
	var f view.IntentFilter
	var limit uint64
	cmd := &cobra.Command{
		Use: "list",
		Long: `List intents in the order in which they were made. Three states await a
person, together --state awaiting: awaiting_approval takes intent approve or intent deny,
awaiting_answer intent answer, awaiting_confirmation intent confirm. One in doubt waits for
intent resolve or intent retry, unless its verifier is being asked.`,
		Example: `  worldctl intent list
  worldctl intent list --state awaiting_approval
  worldctl intent list --state denied -o jsonl
  worldctl intent list --state awaiting_approval --kind 'bank.*' --since t5`,
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
