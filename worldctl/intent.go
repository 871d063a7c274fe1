package worldctl

import (
	"context"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

func newIntentCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "intent", Short: "Look at what was asked of the outside, and decide where a person has to"},
		newIntentListCommand(c), newIntentShowCommand(c), newIntentApproveCommand(c), newIntentDenyCommand(c),
		newIntentResolveCommand(c), newIntentRetryCommand(c), newIntentConfirmCommand(c))
}

func newIntentListCommand(c *cli) *cobra.Command {
	var state string
	var limit uint64
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List intents in the order in which they were made",
		Long: `List intents in the order in which they were made. A parked one waits for intent
approve or intent deny, one in doubt for intent resolve or intent retry unless
its verifier is being asked.`,
		Example: `  worldctl intent list
  worldctl intent list --state parked
  worldctl intent list --state denied -o jsonl`,
		Args: args(0, 0),
		RunE: c.onWorld(func(_ context.Context, lw *local.World, _ []string) error {
			entries, err := recordsOf(lw).InState(receipt.State(state))
			if err != nil {
				return err
			}
			lines, err := recordsOf(lw).IntentLines(entries)
			if err != nil {
				return err
			}
			return list(c, "intent-list", "intents", first(each(entries, lines.Line), limit), columns[view.IntentLine]{
				header: table.Row{"key", "cell", "kind", "state", "decision", "rules", "why"},
				row: func(l view.IntentLine) table.Row {
					return table.Row{view.Short(l.Key), l.Cell, l.Kind, l.State, l.Decision, strings.Join(l.Rules, ", "), visible(l.Reason, "")}
				},
				none: "no such intents",
			})
		}),
	}
	cmd.Flags().StringVar(&state, "state", "", "only those in `STATE`: open, in_flight, in_doubt, parked, committed, failed or denied")
	addLimit(cmd, &limit, "intents")
	return cmd
}
