package worldctl

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newProposalCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "proposal", Short: "Look at proposed changes of the rules, as who has to approve them"},
		newProposalListCommand(c), newProposalShowCommand(c))
}

func newProposalListCommand(c *cli) *cobra.Command {
	var closed bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the proposals that are open, from the oldest",
		Example: `  worldctl proposal list
  worldctl proposal list --all -o jsonl`,
		RunE: c.onWorld(func(_ context.Context, lw *local.World, _ []string) error {
			return list(c, "proposals", "proposals", allItems(recordsOf(lw).Proposals(closed)), columns[view.ProposalLine]{
				header: table.Row{"proposal", "stage", "author", "record", "candidate", "approvals", "reason"},
				row: func(l view.ProposalLine) table.Row {
					return table.Row{
						l.Proposal, stageOf(&l), visible(l.Author, ""), fmt.Sprintf("#%d", l.Record), l.Candidate.String()[:12],
						approvals(&l), visible(l.Reason, ""),
					}
				},
				none: "no proposals are open: worldctl propose makes one; worldctl proposal list --all shows those that are closed",
			})
		}),
	}
	cmd.Flags().BoolVar(&closed, "all", false, "those too that were applied, rejected or withdrawn")
	return cmd
}

// nameOf says who holds a key.
func nameOf(s *view.Signer) string {
	if s.Name == "" {
		return s.Fingerprint
	}
	return visible(s.Name, "") + " (" + s.Fingerprint + ")"
}

// stageOf is the stage, and whether it can get any further.
func stageOf(l *view.ProposalLine) string {
	if l.Ended == nil && !l.BaseInForce {
		return string(l.Stage) + ", stale"
	}
	return string(l.Stage)
}

func approvals(l *view.ProposalLine) string {
	if l.Ended != nil {
		return strconv.FormatUint(l.Approved, 10)
	}
	return fmt.Sprintf("%d of %d", l.Approved, l.Needed)
}

// authorship is who proposed it, and how anybody knows.
func authorship(l *view.ProposalLine) string {
	if l.SignedBy == nil {
		return visible(l.Author, "") + ", not signed"
	}
	return fmt.Sprintf("%s, signed with the key of %s", visible(l.Author, ""), nameOf(l.SignedBy))
}

// proposalError is an error about a proposal, so that what to do about it can
// name it.
type proposalError struct {
	n   uint64
	err error
}

func (e *proposalError) Error() string { return e.err.Error() }
func (e *proposalError) Unwrap() error { return e.err }

// onProposal lets use work with the world and the proposal that a person named.
func (c *cli) onProposal(name string, use func(lw *local.World, n uint64) error) error {
	n, err := view.ParseProposal(name)
	if err != nil {
		return usagef("worldctl proposal list --all", "%q is no proposal: they are p1, p2 and so on", name)
	}
	return c.with(func(lw *local.World) error {
		if err := use(lw, n); err != nil {
			return &proposalError{n, err}
		}
		return nil
	})
}

// addMessage adds the flag that says why, for the journal.
func addMessage(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVarP(reason, "message", "m", "", "why, for those who read the journal: `TEXT`")
}
