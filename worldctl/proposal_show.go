package worldctl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// proposalAnswer is all that a reviewer has to know of a proposal.
type proposalAnswer struct {
	proposalLine
	Version uint64 `json:"version"` // of the candidate
	view.ManifestChanges
	Code       string             `json:"code"`   // how the code of reducers differs, as unified diffs
	Report     *governance.Report `json:"report"` // of the last shadow; null: there is none, or it was redacted
	Approvals  []view.Approval    `json:"approvals"`
	Missing    []string           `json:"missing"` // before it can be applied
	WouldApply outlookAnswer      `json:"would_apply"`

	n   uint64 // its number
	was uint64 // the version of the base
}

// outlookAnswer is what apply would come to now.
type outlookAnswer struct {
	view.Outlook

	err error
}

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
		Args: args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.onProposal(args[0], func(lw *local.World, n uint64) error {
				a, err := proposalOf(lw, n)
				if err != nil {
					return err
				}
				return c.object("proposal", a, func() { c.showProposal(a) })
			})
		},
	}
}

// proposalOf returns a proposal as a reviewer sees it.
func proposalOf(lw *local.World, n uint64) (*proposalAnswer, error) {
	a := &proposalAnswer{n: n}
	var err error
	lw.View(func(w *world.Moment) {
		if a.Report, err = w.ReportOf(n); err != nil && !errors.Is(err, journal.ErrRedacted) {
			return
		}
		proposals, f := w.Proposals()
		p := proposals[n-1]
		a.ProposalLine, a.Missing, a.Approvals = view.LineOfProposal(p, f), missing(p, f), view.ApprovalsOf(p, f.Governance)
		a.WouldApply.Migrated, a.WouldApply.err = w.WouldApply(n)
		if a.WouldApply.OK = a.WouldApply.err == nil; !a.WouldApply.OK {
			a.WouldApply.Error = a.WouldApply.err.Error()
		}
		err = a.compare(lw)
	})
	return a, err
}

// compare finds what the candidate has otherwise than its base.
func (a *proposalAnswer) compare(lw *local.World) error {
	base, err := storedEdition(lw, "the base", a.Base)
	if err != nil {
		return err
	}
	candidate, err := storedEdition(lw, "the candidate", a.Candidate)
	if err != nil {
		return err
	}
	a.Version, a.was = candidate.manifest.Version, base.manifest.Version
	if a.ManifestChanges, err = view.ChangesOf(base.manifest, candidate.manifest); err != nil {
		return err
	}
	a.Code, err = view.CodeDiff(base.manifest, candidate.manifest, base.content, candidate.content)
	return err
}

// newVersion names the version of the candidate where it says more than the hash:
// people may leave it as it is.
func (a *proposalAnswer) newVersion() string {
	if a.Version == a.was {
		return ""
	}
	return fmt.Sprintf("version %d, ", a.Version)
}

// missing returns what a proposal needs before it can be applied, nothing where
// nothing would help.
func missing(p *governance.Proposal, f governance.InForce) []string {
	out := []string{}
	if !p.Open() || p.Base != f.Manifest {
		return out
	}
	if p.ReportAt == 0 || p.ReportAt < f.Since {
		out = append(out, fmt.Sprintf("a report of what it would have done: worldctl shadow %s", view.ProposalName(p.N)))
	}
	have, need := p.Counted(f.Governance), p.Needed(f.Governance)
	if have >= need {
		return out
	}
	text := fmt.Sprintf("%d of %d approvals, ", need-have, need)
	if who := whoMay(p, f.Governance); who == "" {
		text += "and no approver is left to give them: let another one propose it"
	} else {
		text += fmt.Sprintf("by %s: worldctl approve %s --key FILE", who, view.ProposalName(p.N))
	}
	return append(out, text)
}

// whoMay names the approvers whose signatures would count.
func whoMay(p *governance.Proposal, g manifest.Governance) string {
	if len(g.Approvers) == 0 {
		return "whoever has a key"
	}
	var names []string
	for _, who := range g.Approvers {
		own := g.FourEyes && p.Signature != nil && p.Signature.Key == who.Key
		has := slices.ContainsFunc(p.Approvals, func(a governance.Approval) bool {
			return a.Report == p.Report && a.Signature.Key == who.Key
		})
		if !own && !has {
			names = append(names, visible(who.Name, ""))
		}
	}
	return strings.Join(names, ", ")
}

func (c *cli) showProposal(a *proposalAnswer) {
	base := a.Base.String()
	if !a.BaseInForce && a.Ended == nil {
		base += ", which is not in force any more"
	} else if a.BaseInForce {
		base += ", which is in force"
	}
	facts := [][2]any{
		{"proposal", a.Proposal},
		{"stage", a.standing()},
		{"author", a.authorship()},
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
		c.showShadow(a.Proposal, a.Report)
	} else if a.ReportHash != nil {
		fmt.Fprintf(c.stdout, "\nreport %s, #%d: it was redacted\n", a.ReportHash, a.ReportRecord)
	}
	c.showApprovals(a)
	if a.Ended == nil {
		c.showOutlook(a)
	}
}

func (c *cli) showApprovals(a *proposalAnswer) {
	fmt.Fprintf(c.stdout, "\napprovals: %s\n", a.approvals())
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
func (c *cli) showOutlook(a *proposalAnswer) {
	if len(a.Missing) > 0 {
		fmt.Fprintf(c.stdout, "\nmissing:\n")
	}
	for _, what := range a.Missing {
		fmt.Fprintf(c.stdout, "- %s\n", c.inWorld(what))
	}
	if a.WouldApply.OK {
		fmt.Fprintf(c.stdout, "\nnow: %s\n", c.inWorld(fmt.Sprintf("worldctl apply %s would apply it; %d cells are migrated", a.Proposal, a.WouldApply.Migrated)))
		return
	}
	fmt.Fprintf(c.stdout, "\nnow: it would not be applied: %s\n", visible(a.WouldApply.Error, ""))
	if len(a.Missing) == 0 {
		_, hint := judge(&proposalError{a.n, a.WouldApply.err})
		c.note("next: %s", hint)
	}
}
