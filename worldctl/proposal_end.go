package worldctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newRejectCommand(c *cli) *cobra.Command {
	return c.ending((*world.World).Reject, &cobra.Command{
		Use:     "reject PROPOSAL -m TEXT",
		Long:    "Reject a proposed change of the rules, for good: what is to be better about it is\nproposed anew. PROPOSAL is p1 or 1.",
		Example: `  worldctl reject p1 -m "refunds are not to be automatic"`,
	})
}

func newWithdrawCommand(c *cli) *cobra.Command {
	return c.ending((*world.World).Withdraw, &cobra.Command{
		Use:  "withdraw PROPOSAL [-m TEXT]",
		Long: "Take back a proposed change of the rules, for good. PROPOSAL is p1 or 1.",
		Example: `  worldctl withdraw p1
  worldctl withdraw p1 -m "p2 says the same on the manifest in force"`,
	})
}

// ending makes cmd the verb that ends a proposal as end does.
func (c *cli) ending(end func(w *world.World, ctx context.Context, n uint64, actor, reason string) (journal.Seq, error), cmd *cobra.Command) *cobra.Command {
	var reason, as string
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		by, err := c.actor(as)
		if err != nil {
			return err
		}
		return c.onProposal(args[0], func(lw *local.World, n uint64) error {
			err := lw.Update(func(w *world.World) error {
				_, err := end(w, cmd.Context(), n, by, reason)
				return err
			})
			if err != nil {
				return err
			}
			return answer(c, "proposal", c.showEnded)(recordsOf(lw).Proposal(cmd.Context(), n))
		})
	}
	addMessage(cmd, &reason)
	addActor(cmd, &as)
	return cmd
}

func (c *cli) showEnded(a *view.Proposal) {
	fmt.Fprintf(c.stdout, "#%d %s is %s by %s\n", a.Ended.Record, a.Proposal, a.Stage, a.Ended.By)
}
