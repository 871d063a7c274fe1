package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/view"
)

// Proposals is a page of proposals, from the oldest.
type Proposals struct {
	Schema    string              `json:"schema"`
	Proposals []view.ProposalLine `json:"proposals"`
	Next      *string             `json:"next"` // the path of what comes after it; null: nothing does
}

// Proposal is all that a reviewer has to know of a proposal.
type Proposal struct {
	Schema string `json:"schema"`
	view.ProposalLine
	Version uint64 `json:"version"` // of the candidate
	view.ManifestChanges
	Code       string             `json:"code"`      // how the code of reducers differs, as unified diffs
	Report     *governance.Report `json:"report"`    // of the last shadow; null: there is none, or it was redacted
	Statement  *string            `json:"statement"` // what an approval signs; null: nobody can approve it now
	Approvals  []view.Approval    `json:"approvals"`
	Missing    []string           `json:"missing"` // before it can be applied
	WouldApply view.Outlook       `json:"would_apply"`
}

func listProposals(c *call) error {
	closed, err := c.flag("all")
	if err != nil {
		return err
	}
	after, err := c.number("after")
	if err != nil {
		return err
	}
	limit, err := c.limit()
	if err != nil {
		return err
	}
	out := Proposals{Schema: schemaOf("proposals"), Proposals: []view.ProposalLine{}}
	c.world.Local.View(func(w *world.Moment) {
		all, f := w.Proposals()
		last := uint64(0)
		for _, p := range all {
			if p.N <= after || !p.Open() && !closed {
				continue
			}
			if len(out.Proposals) == limit {
				out.Next = c.next(strconv.FormatUint(last, 10))
				break
			}
			out.Proposals, last = append(out.Proposals, view.LineOfProposal(p, f)), p.N
		}
	})
	return c.ok(out)
}

// proposal returns the number of the proposal that the path names: 1 or p1.
func (c *call) proposal() (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(c.PathValue("n"), "p"), 10, 64)
	if err != nil || n == 0 {
		return 0, governance.ErrNoProposal
	}
	return n, nil
}

func showProposal(c *call) error {
	n, err := c.proposal()
	if err != nil {
		return err
	}
	out, err := c.world.proposal(n)
	if err != nil {
		return err
	}
	return c.ok(out)
}

// proposal returns a proposal as a reviewer sees it.
func (j records) proposal(n uint64) (*Proposal, error) {
	a := &Proposal{Schema: schemaOf("proposal")}
	var err error
	j.Local.View(func(w *world.Moment) {
		if a.Report, err = w.ReportOf(n); err != nil && !errors.Is(err, journal.ErrRedacted) {
			return
		}
		err = nil
		proposals, f := w.Proposals()
		p := proposals[n-1]
		a.ProposalLine, a.Missing = view.LineOfProposal(p, f), missing(p, f)
		a.Approvals = view.ApprovalsOf(p, f.Governance)
		if terms, err := w.Terms(n); err == nil {
			statement := string(terms.Statement())
			a.Statement = &statement
		}
		migrated, refused := w.WouldApply(n)
		if a.WouldApply = (view.Outlook{OK: refused == nil, Migrated: migrated}); refused != nil {
			a.WouldApply.Error = refused.Error()
		}
	})
	if err != nil {
		return nil, err
	}
	return a, j.compare(a)
}

// missing returns what a proposal needs before it can be applied, nothing where
// nothing would help.
func missing(p *governance.Proposal, f governance.InForce) []string {
	out := []string{}
	if !p.Open() || p.Base != f.Manifest {
		return out
	}
	if p.ReportAt == 0 || p.ReportAt < f.Since {
		out = append(out, "a report of what it would have done")
	}
	if have, need := p.Counted(f.Governance), p.Needed(f.Governance); have < need {
		out = append(out, fmt.Sprintf("%d of %d approvals", need-have, need))
	}
	return out
}

// compare finds what the candidate has otherwise than its base.
func (j records) compare(a *Proposal) error {
	base, err := j.manifest(a.Base)
	if err != nil {
		return err
	}
	candidate, err := j.manifest(a.Candidate)
	if err != nil {
		return err
	}
	a.Version = candidate.Version
	if a.ManifestChanges, err = view.ChangesOf(base, candidate); err != nil {
		return err
	}
	content := j.Local.Store().Blob
	a.Code, err = view.CodeDiff(base, candidate, content, content)
	return err
}

// manifest reads a manifest that the world has.
func (j records) manifest(h manifest.Hash) (*manifest.Manifest, error) {
	encoded, err := j.Local.Store().Blob(h)
	if err != nil {
		return nil, err
	}
	return manifest.Decode(encoded)
}
