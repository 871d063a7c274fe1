package view

import (
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/sshkey"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
)

// ProposalLine is a proposal in a list.
type ProposalLine struct {
	Proposal     string           `json:"proposal"`
	Stage        governance.Stage `json:"stage"`
	Author       string           `json:"author"`
	SignedBy     *Signer          `json:"signed_by"` // null: a name is all there is
	Reason       string           `json:"reason"`
	Record       journal.Seq      `json:"record"`
	Time         manifest.Tick    `json:"time"`
	Base         manifest.Hash    `json:"base"`
	BaseInForce  bool             `json:"base_in_force"`
	Candidate    manifest.Hash    `json:"candidate"`
	ReportHash   *manifest.Hash   `json:"report_hash"` // of the last shadow; null: there is none
	ReportRecord journal.Seq      `json:"report_record"`
	Approved     uint64           `json:"approved"` // by how many that count
	Needed       uint64           `json:"needed"`   // 0: it is closed
	Ended        *Ended           `json:"ended"`    // null: it is open

	N uint64 `json:"-"` // its number
}

// Signer is who holds a key.
type Signer struct {
	Name        string             `json:"name"` // as an approver; empty: the key is not listed
	Key         manifest.PublicKey `json:"key"`
	Fingerprint string             `json:"fingerprint"` // as ssh-keygen -l prints it
}

// Ended says how a proposal was closed.
type Ended struct {
	Record journal.Seq `json:"record"`
	By     string      `json:"by"`
	Reason string      `json:"reason"`
}

// Approval is one signature under a proposal.
type Approval struct {
	Signer
	Record  journal.Seq   `json:"record"`
	Report  manifest.Hash `json:"report"`
	Current bool          `json:"current"` // it is for the last report: others do not count
	Actor   string        `json:"actor"`
	Reason  string        `json:"reason"`
}

// LineOfProposal returns a proposal as lists have it, by the rules in force.
func LineOfProposal(p *governance.Proposal, f governance.InForce) ProposalLine {
	l := ProposalLine{
		N: p.N, Proposal: ProposalName(p.N), Stage: p.Stage, Author: p.Author, Reason: p.Reason, Record: journal.Seq(p.Record), Time: p.Time,
		Base: p.Base, BaseInForce: p.Base == f.Manifest, Candidate: p.Candidate, ReportRecord: journal.Seq(p.ReportAt),
	}
	if p.Signature != nil {
		l.SignedBy = new(SignerOf(p.Signature.Key, f.Governance))
	}
	if p.ReportAt != 0 {
		l.ReportHash = new(p.Report)
	}
	if p.Open() {
		l.Approved, l.Needed = p.Counted(f.Governance), p.Needed(f.Governance)
		return l
	}
	l.Ended = &Ended{Record: journal.Seq(p.Ended), By: p.By, Reason: p.Why}
	for i := range p.Approvals { // by what the rules were then
		if p.Approvals[i].Report == p.Report {
			l.Approved++
		}
	}
	return l
}

// ProposalName returns what people call the n-th proposal.
func ProposalName(n uint64) string { return "p" + strconv.FormatUint(n, 10) }

// ParseProposal returns the number of the proposal that a person named: p1 or 1. The
// error is governance.ErrNoProposal.
func ParseProposal(name string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, "p"), 10, 64)
	if err != nil || n == 0 {
		return 0, governance.ErrNoProposal
	}
	return n, nil
}

// ReportHash returns the hash of the last report about a proposal. The error is
// governance.ErrNoProposal or governance.ErrNotShadowed.
func (j Journal) ReportHash(n uint64) (hash governance.Hash, err error) {
	j.Local.View(func(w *world.Moment) {
		all, _ := w.Proposals()
		switch {
		case n == 0 || n > uint64(len(all)):
			err = governance.ErrNoProposal
		case all[n-1].ReportAt == 0:
			err = governance.ErrNotShadowed
		default:
			hash = all[n-1].Report
		}
	})
	return hash, err
}

// SignerOf returns who holds a key under rules.
func SignerOf(key manifest.PublicKey, g manifest.Governance) Signer {
	listed, _ := g.Approver(key)
	return Signer{Name: listed.Name, Key: key, Fingerprint: sshkey.Fingerprint(key[:])}
}

// ApprovalsOf returns the signatures under a proposal.
func ApprovalsOf(p *governance.Proposal, g manifest.Governance) []Approval {
	out := []Approval{}
	for i := range p.Approvals {
		x := &p.Approvals[i]
		out = append(out, Approval{
			Signer: SignerOf(x.Signature.Key, g), Record: journal.Seq(x.Record), Report: x.Report,
			Current: x.Report == p.Report, Actor: x.Actor, Reason: x.Reason,
		})
	}
	return out
}

// Proposals returns the proposals of the world, oldest first, the closed ones where
// they are wanted.
func (j Journal) Proposals(closed bool) []ProposalLine {
	out := []ProposalLine{}
	j.Local.View(func(w *world.Moment) {
		proposals, f := w.Proposals()
		for _, p := range proposals {
			if p.Open() || closed {
				out = append(out, LineOfProposal(p, f))
			}
		}
	})
	return out
}
