package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/sshkey"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// proposalLine is a proposal in a list.
type proposalLine struct {
	Proposal     string           `json:"proposal"`
	Stage        governance.Stage `json:"stage"`
	Author       string           `json:"author"`
	SignedBy     *signerAnswer    `json:"signed_by"` // null: a name is all there is
	Reason       string           `json:"reason"`
	Record       world.Seq        `json:"record"`
	Time         manifest.Tick    `json:"time"`
	Base         manifest.Hash    `json:"base"`
	BaseInForce  bool             `json:"base_in_force"`
	Candidate    manifest.Hash    `json:"candidate"`
	ReportHash   *manifest.Hash   `json:"report_hash"` // of the last shadow; null: there is none
	ReportRecord world.Seq        `json:"report_record"`
	Approved     uint64           `json:"approved"` // by how many that count
	Needed       uint64           `json:"needed"`   // 0: it is closed
	Ended        *endedAnswer     `json:"ended"`    // null: it is open
}

// signerAnswer is who holds a key.
type signerAnswer struct {
	Name        string             `json:"name"` // as an approver; empty: the key is not listed
	Key         manifest.PublicKey `json:"key"`
	Fingerprint string             `json:"fingerprint"` // as ssh-keygen -l prints it
}

// endedAnswer says how a proposal was closed.
type endedAnswer struct {
	Record world.Seq `json:"record"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

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
		Args: args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return c.with(func(lw *local.World) error {
				return list(c, "proposals", "proposals", all(proposalsOf(lw, closed)), columns[proposalLine]{
					header: table.Row{"proposal", "stage", "author", "record", "candidate", "approvals", "reason"},
					row: func(l proposalLine) table.Row {
						return table.Row{
							l.Proposal, l.standing(), visible(l.Author, ""), fmt.Sprintf("#%d", l.Record), l.Candidate.String()[:12],
							l.approvals(), visible(l.Reason, ""),
						}
					},
					none: "no proposals are open: worldctl propose makes one; worldctl proposal list --all shows those that are closed",
				})
			})
		},
	}
	cmd.Flags().BoolVar(&closed, "all", false, "those too that were applied, rejected or withdrawn")
	return cmd
}

// proposalsOf returns the proposals of a world, the closed ones where they are
// wanted.
func proposalsOf(lw *local.World, closed bool) []proposalLine {
	out := []proposalLine{}
	_ = lw.View(func(w *world.World) error { // the function never errs
		proposals, f := w.Proposals()
		for _, p := range proposals {
			if p.Open() || closed {
				out = append(out, lineOf(p, f))
			}
		}
		return nil
	})
	return out
}

func lineOf(p *governance.Proposal, f governance.InForce) proposalLine {
	l := proposalLine{
		Proposal: proposalName(p.N), Stage: p.Stage, Author: p.Author, Reason: p.Reason, Record: world.Seq(p.Record), Time: p.Time,
		Base: p.Base, BaseInForce: p.Base == f.Manifest, Candidate: p.Candidate, ReportRecord: world.Seq(p.ReportAt),
	}
	if p.Signature != nil {
		who := signer(p.Signature.Key, f.Governance)
		l.SignedBy = &who
	}
	if p.ReportAt != 0 {
		report := p.Report // which another shadow changes
		l.ReportHash = &report
	}
	if p.Open() {
		l.Approved, l.Needed = p.Counted(f.Governance), p.Needed(f.Governance)
		return l
	}
	l.Ended = &endedAnswer{Record: world.Seq(p.Ended), By: p.By, Reason: p.Why}
	for i := range p.Approvals { // by what the rules were then
		if p.Approvals[i].Report == p.Report {
			l.Approved++
		}
	}
	return l
}

// signer returns who holds a key under rules.
func signer(key manifest.PublicKey, g manifest.Governance) signerAnswer {
	listed, _ := g.Approver(key)
	return signerAnswer{Name: listed.Name, Key: key, Fingerprint: fingerprint(key)}
}

func fingerprint(key manifest.PublicKey) string { return sshkey.Fingerprint(key[:]) }

func (s signerAnswer) String() string {
	if s.Name == "" {
		return s.Fingerprint
	}
	return visible(s.Name, "") + " (" + s.Fingerprint + ")"
}

// standing is the stage, and whether it can get any further.
func (l *proposalLine) standing() string {
	if l.Ended == nil && !l.BaseInForce {
		return string(l.Stage) + ", stale"
	}
	return string(l.Stage)
}

func (l *proposalLine) approvals() string {
	if l.Ended != nil {
		return strconv.FormatUint(l.Approved, 10)
	}
	return fmt.Sprintf("%d of %d", l.Approved, l.Needed)
}

// authorship is who proposed it, and how anybody knows.
func (l *proposalLine) authorship() string {
	if l.SignedBy == nil {
		return visible(l.Author, "") + ", not signed"
	}
	return fmt.Sprintf("%s, signed with the key of %s", visible(l.Author, ""), l.SignedBy)
}

func proposalName(n uint64) string { return fmt.Sprintf("p%d", n) }

// parseProposal returns the number of the proposal that a person named.
func parseProposal(name string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, "p"), 10, 64)
	if err != nil || n == 0 {
		return 0, usagef("worldctl proposal list --all", "%q is no proposal: they are p1, p2 and so on", name)
	}
	return n, nil
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
	n, err := parseProposal(name)
	if err != nil {
		return err
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
