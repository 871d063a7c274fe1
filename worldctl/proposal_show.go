package worldctl

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newProposalShowCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "show PROPOSAL",
		Short: "Show a proposal: what changes, what it would have done, who approves, what is missing",
		Long: `Show all that a reviewer has to know of a proposal, on a page: who proposes it and why,
what changes, risk first, how the code differs, what the last shadow says that it would
have done, who has approved that, what is missing, and what apply would come to now.
PROPOSAL is p1 or 1.`,
		Example: `  worldctl proposal show p1
  worldctl proposal show 1 -o json`,
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
