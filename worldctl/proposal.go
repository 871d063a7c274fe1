package worldctl

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newProposalCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "proposal"},
		newProposalListCommand(c), newProposalShowCommand(c))
}

func newProposalListCommand(c *cli) *cobra.Command {
	var closed bool
	cmd := &cobra.Command{
		Use: "list",
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

func newProposalShowCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "show PROPOSAL",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onProposal(args[0], func(lw *local.World, n uint64) error {
				return answer(c, "proposal", c.showProposal)(recordsOf(lw).Proposal(cmd.Context(), n))
			})
		},
	}
}

// newVersion names the version of the candidate where it says more than the hash:
// people may leave it as it is.
func newVersion(a *view.Proposal) string {
	if a.Version == a.BaseVersion {
		return ""
	}
	return fmt.Sprintf("version %d, ", a.Version)
}

// missing returns what a proposal needs before it can be applied, and the command
// that brings it.
func missing(a *view.Proposal) (out []string) {
	for _, lack := range a.Lacks {
		text := visible(lack.Text, "")
		if lack.Step == governance.Shadowed {
			text += ": worldctl shadow " + a.Proposal
		}
		if lack.Step == governance.Approved {
			text += fmt.Sprintf(": worldctl approve %s --key FILE", a.Proposal)
		}
		out = append(out, text)
	}
	return out
}

func (c *cli) showProposal(a *view.Proposal) {
	base := a.Base.String()
	if !a.BaseInForce && a.Ended == nil {
		base += ", which is not in force any more"
	} else if a.BaseInForce {
		base += ", which is in force"
	}
	facts := [][2]any{
		{"proposal", a.Proposal},
		{"stage", stageOf(&a.ProposalLine)},
		{"author", authorship(&a.ProposalLine)},
		{"reason", visible(a.Reason, "\n")},
		{"proposed", fmt.Sprintf("#%d, in tick %d", a.Record, a.Time)},
		{"base", base},
		{"candidate", fmt.Sprintf("%s, version %d", a.Candidate, a.Version)},
	}
	if x := a.Ended; x != nil {
		text := fmt.Sprintf("#%d, by %s", x.Record, visible(x.By, ""))
		if x.Reason != "" {
			text += ": " + visible(x.Reason, "\n")
		}
		facts = append(facts, [2]any{string(a.Stage), text})
	}
	c.facts(facts...)
	c.showChanges(&a.ManifestChanges, a.Code)
	if a.Report != nil {
		fmt.Fprintf(c.stdout, "\nreport %s, #%d:\n", a.ReportHash, a.ReportRecord)
		c.showShadow(a.Proposal, a.Report, a.Migration)
	} else if a.ReportHash != nil {
		fmt.Fprintf(c.stdout, "\nreport %s, #%d: it was redacted\n", a.ReportHash, a.ReportRecord)
	}
	c.showApprovals(a)
	if a.Ended == nil {
		c.warnOfCandidate(a)
		c.showOutlook(a)
	}
}

// warnOfCandidate tells what a candidate hardly means.
func (c *cli) warnOfCandidate(a *view.Proposal) {
	for _, says := range a.Warnings {
		c.note("warning: %s", visible(says, ""))
	}
}

func (c *cli) showApprovals(a *view.Proposal) {
	fmt.Fprintf(c.stdout, "\napprovals: %s\n", approvals(&a.ProposalLine))
	for _, x := range a.Approvals {
		text := nameOf(&x.Signer) + fmt.Sprintf(", #%d, says %s", x.Record, visible(x.Actor, ""))
		if x.Reason != "" {
			text += ": " + visible(x.Reason, "")
		}
		if !x.Current {
			text += "; it is for another report, and does not count"
		}
		fmt.Fprintf(c.stdout, "+ %s\n", text)
	}
}

// showOutlook says what is missing, and what apply would come to.
func (c *cli) showOutlook(a *view.Proposal) {
	lacks := missing(a)
	if len(lacks) > 0 {
		fmt.Fprintf(c.stdout, "\nmissing:\n")
	}
	for _, what := range lacks {
		fmt.Fprintf(c.stdout, "- %s\n", c.inWorld(what))
	}
	if a.WouldApply.OK {
		fmt.Fprintf(c.stdout, "\nnow: %s\n", c.inWorld(fmt.Sprintf("worldctl apply %s would apply it, and migrate %s",
			a.Proposal, cmp.Or(view.Count(uint64(a.WouldApply.Migrated), "cell", ""), "no cells"))))
		return
	}
	fmt.Fprintf(c.stdout, "\nnow: it would not be applied: %s\n", visible(inPlain(a.WouldApply.Error), ""))
	if len(lacks) == 0 {
		_, hint := judge(&proposalError{a.N, a.WouldApply.Err})
		c.hintNext("%s", hint)
	}
}

func newRejectCommand(c *cli) *cobra.Command {
	return c.ending((*world.World).Reject, &cobra.Command{Use: "reject PROPOSAL -m TEXT"})
}

func newWithdrawCommand(c *cli) *cobra.Command {
	return c.ending((*world.World).Withdraw, &cobra.Command{Use: "withdraw PROPOSAL [-m TEXT]"})
}

// ending makes cmd the verb that ends a proposal as end does.
func (c *cli) ending(end func(w *world.World, ctx context.Context, n uint64, actor, reason string) (journal.Seq, error), cmd *cobra.Command) *cobra.Command {
	var reason string
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.onProposal(args[0], func(lw *local.World, n uint64) error {
			err := lw.Update(func(w *world.World) error {
				_, err := end(w, cmd.Context(), n, c.by, reason)
				return err
			})
			if err != nil {
				return err
			}
			return answer(c, "proposal", c.showEnded)(recordsOf(lw).Proposal(cmd.Context(), n))
		})
	}
	addMessage(cmd, &reason)
	addActor(cmd, "does it")
	return cmd
}

func (c *cli) showEnded(a *view.Proposal) {
	fmt.Fprintf(c.stdout, "#%d %s is %s by %s\n", a.Ended.Record, a.Proposal, a.Stage, a.Ended.By)
}
