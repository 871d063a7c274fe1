package view

import (
	"cmp"
	"context"
	"errors"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// Proposal is all that a reviewer has to know of a proposal.
type Proposal struct {
	ProposalLine
	Version uint64 `json:"version"` // of the candidate
	ManifestChanges
	Code       string             `json:"code"`      // how the code of reducers differs, as unified diffs
	Report     *governance.Report `json:"report"`    // of the last shadow; null: there is none, or it was redacted
	Statement  *string            `json:"statement"` // what an approval signs; null: nobody can approve it now
	Approvals  []Approval         `json:"approvals"`
	Missing    []string           `json:"missing"`  // before it can be applied
	Warnings   []string           `json:"warnings"` // what the candidate says and hardly means
	WouldApply Outlook            `json:"would_apply"`
	Migration  *Migration         `json:"migration"` // that an apply would come to, once nothing is missing; null: it can never be applied

	Lacks       []governance.Lack `json:"-"` // what Missing tells of
	BaseVersion uint64            `json:"-"`
}

// Outlook is what apply would come to now.
type Outlook struct {
	OK       bool   `json:"ok"`
	Migrated int    `json:"migrated"` // cells
	Error    string `json:"error"`    // why it would be refused

	Err error `json:"-"` // likewise
}

// Applied is the result of an apply, or its preview.
type Applied struct {
	Proposal string        `json:"proposal"`
	Record   *journal.Seq  `json:"record"` // null: nothing has changed
	Manifest manifest.Hash `json:"manifest"`
	Version  uint64        `json:"version"`
	Base     manifest.Hash `json:"base"`     // what was in force
	Migrated int           `json:"migrated"` // cells whose code took over their state
	Open     world.Opened  `json:"open"`     // what became of the intents that were not begun
	Stale    []string      `json:"stale"`    // open proposals of what is not in force any more
}

// Proposal returns a proposal as a reviewer sees it.
func (j Journal) Proposal(ctx context.Context, n uint64) (*Proposal, error) {
	a := &Proposal{Missing: []string{}, Warnings: []string{}}
	var err error
	j.Local.View(func(w *world.Moment) {
		if a.Report, err = w.ReportOf(n); err != nil && !errors.Is(err, journal.ErrRedacted) {
			return
		}
		proposals, f := w.Proposals()
		p := proposals[n-1]
		a.ProposalLine, a.Approvals, a.Lacks = LineOfProposal(p, f), ApprovalsOf(p, f.Governance), p.Lacks(f)
		if terms, err := w.Terms(n); err == nil {
			a.Statement = new(string(terms.Statement()))
		}
		a.WouldApply.Err = w.Ready(n)
	})
	if err == nil || errors.Is(err, journal.ErrRedacted) {
		err = j.compare(a)
	}
	if err == nil {
		err = j.foresee(ctx, a)
	}
	for _, lack := range a.Lacks {
		a.Missing = append(a.Missing, lack.Text)
	}
	return a, err
}

// foresee finds what an apply of a proposal would come to now.
func (j Journal) foresee(ctx context.Context, a *Proposal) error {
	x := &a.WouldApply
	if a.Ended == nil && a.BaseInForce {
		next, err := j.Manifest(a.Candidate)
		if err != nil {
			return err
		}
		p, err := j.Local.PreviewApply(ctx, next, nil)
		a.Migration = migrationOf(p, err)
		if err == nil {
			err, x.Migrated = p.Refused, int(p.Cells)
		}
		x.Err = cmp.Or(x.Err, err)
	}
	if x.OK = x.Err == nil; !x.OK {
		x.Error, x.Migrated = x.Err.Error(), 0
	}
	return nil
}

// compare finds what the candidate of a proposal has otherwise than its base.
func (j Journal) compare(a *Proposal) error {
	base, err := j.Manifest(a.Base)
	if err != nil {
		return err
	}
	candidate, err := j.Manifest(a.Candidate)
	if err != nil {
		return err
	}
	a.Version, a.BaseVersion = candidate.Version, base.Version
	if a.ManifestChanges, err = ChangesOf(base, candidate); err != nil {
		return err
	}
	content := j.Local.Blob
	if a.Code, err = CodeDiff(base, candidate, content, content); err != nil {
		return err
	}
	unmeant, err := world.Warnings(candidate, content)
	for i := range unmeant {
		a.Warnings = append(a.Warnings, unmeant[i].String())
	}
	return err
}

// Manifest reads a manifest that the world has. The error is journal.ErrNotFound
// where it has none of that hash.
func (j Journal) Manifest(h manifest.Hash) (*manifest.Manifest, error) {
	encoded, err := j.Local.Blob(h)
	if err != nil {
		return nil, err
	}
	return manifest.Decode(encoded)
}

// Applied returns the outcome of the apply of a proposal, with its record. With record 0 the
// proposal is not applied yet, and the outcome is the one to expect.
func (j Journal) Applied(p *Proposal, record journal.Seq, done world.Outcome) *Applied {
	a := &Applied{
		Proposal: p.Proposal, Manifest: p.Candidate, Version: p.Version, Base: p.Base,
		Migrated: done.Migrated, Open: listed(done.Open), Stale: []string{},
	}
	if record != 0 {
		a.Record = &record
	}
	for _, l := range j.Proposals(false) {
		if l.N != p.N && l.Base != p.Candidate {
			a.Stale = append(a.Stale, l.Proposal)
		}
	}
	return a
}
