package world

import (
	"context"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// maxManifestBytes is the greatest size of a candidate, encoded.
const maxManifestBytes = 4 << 20

// Proposal is a candidate with its author's words.
type Proposal struct {
	Candidate *manifest.Manifest
	Contents  map[manifest.Hash][]byte // that it names and the world may not have
	Base      journal.Hash             // the manifest that it was made of
	Actor     string                   // the author
	Signature *manifest.Signature      // the author's; nil: not signed
	Reason    string

	blobs []journal.Blob // the candidate, and all that it names, once it was vetted
}

// ErrCandidate reports a candidate that cannot run: its code, a policy or a capability is wrong, or it names
// missing contents.
var ErrCandidate = errors.New("the candidate cannot be run")

// Check checks a proposal as Propose does, while the world goes on: compiling the candidate takes as much as
// Config.Bounds allow. view calls look with the world. Propose does not check the proposal again.
func Check(ctx context.Context, view func(look func(*Moment)), p *Proposal) (err error) {
	var with Moment // but for its kernel, which goes on
	view(func(m *Moment) {
		with = *m
		err = m.mayPropose(p)
	})
	if err != nil {
		return err
	}
	p.blobs, err = with.vet(ctx, p)
	return err
}

// mayPropose refuses a candidate that is proposed already, or that would count time in
// another way than the rules in force.
func (m *Moment) mayPropose(p *Proposal) error {
	encoded, err := p.Candidate.Encode()
	if err != nil {
		return fmt.Errorf("world: manifest: %w", err)
	}
	if err := m.ProposedAlready(canon.Sum(encoded)); err != nil {
		return err
	}
	return checkClock(m.k.rules.manifest.Clock, p.Candidate.Clock, m.k.now)
}

// vet checks that a candidate can be run and its effects performed. It returns the candidate with all contents
// that it names.
func (m *Moment) vet(ctx context.Context, p *Proposal) ([]journal.Blob, error) {
	blobs, err := m.contentsOf(p.Candidate, p.Contents)
	if err != nil {
		return nil, err
	}
	contents := journal.BlobList(blobs)
	next, err := compileCandidate(p.Candidate, blobs[0].Hash, contents, m.registry, newGuard(ctx, m.bounds))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCandidate, err)
	}
	return blobs, m.canPerform(next, contents.Blob)
}

// compileCandidate is compile for a manifest that is not in force yet: the names in its rules are checked
// against its declarations. Rules in force run unchecked.
func compileCandidate(m *manifest.Manifest, hash journal.Hash, blobs journal.Blobs, registry reducer.Registry, g *guard) (*rules, error) {
	next, err := compile(m, hash, blobs, registry, g)
	if err != nil {
		return nil, err
	}
	if err := RefuseNames(m, blobs.Blob, g.stepEnded()); err != nil {
		return nil, err
	}
	return next, g.ended()
}

// Propose asks for a change of the rules. It returns the record and the proposal's number. It refuses a
// candidate that could never be applied (ErrCandidate, ErrManifestSize, errors of package governance) or that
// is proposed already (*governance.SameError).
func (w *World) Propose(ctx context.Context, p Proposal) (id journal.Seq, n uint64, err error) {
	id, err = w.change(ctx, func() error {
		if err := w.mayPropose(&p); err != nil {
			return err
		}
		if p.blobs == nil {
			if p.blobs, err = w.vet(ctx, &p); err != nil {
				return err
			}
		}
		if err := checkSeed(w.k.rules.manifest, p.Candidate); err != nil {
			return err
		}
		n, err = w.k.propose(journal.ManifestProposed{
			Base: p.Base, Candidate: p.blobs[0].Hash, Actor: p.Actor, Signature: p.Signature, Reason: p.Reason,
		})
		if err == nil {
			w.k.blobs = append(w.k.blobs, p.blobs...)
		}
		return err
	})
	return id, n, err
}

// checkSeed refuses a manifest with another seed. It would have no effect: randomness comes from the seed that
// the world began with. A replay does not check it.
func checkSeed(is, next *manifest.Manifest) error {
	if is.Seed != next.Seed {
		return refuse(ErrSeed, "seed", "%d, and it would be %d", is.Seed, next.Seed)
	}
	return nil
}

// contentsOf returns a manifest and all that it names.
func (m *Moment) contentsOf(candidate *manifest.Manifest, contents map[manifest.Hash][]byte) ([]journal.Blob, error) {
	encoded, err := candidate.Encode()
	if err != nil {
		return nil, fmt.Errorf("world: manifest: %w", err)
	}
	if len(encoded) > maxManifestBytes {
		return nil, refuse(ErrManifestSize, "candidate", "a manifest has at most %d bytes, this one %d", maxManifestBytes, len(encoded))
	}
	blobs := []journal.Blob{{Hash: canon.Sum(encoded), Bytes: encoded}}
	for _, h := range candidate.Contents() {
		content, ok := contents[h]
		if !ok {
			if content, err = m.past.Blob(h); err != nil {
				return nil, fmt.Errorf("%w: it names contents %s, which neither the world has nor what proposes it: %w", ErrCandidate, h, err)
			}
		} else if canon.Sum(content) != h {
			return nil, fmt.Errorf("%w: contents %s have the bytes of others", ErrCandidate, h)
		}
		blobs = append(blobs, journal.Blob{Hash: h, Bytes: content})
	}
	return blobs, nil
}

// Approve takes a signature under the terms of a proposal. It returns its record.
func (w *World) Approve(ctx context.Context, proposal uint64, t manifest.Terms, s manifest.Signature, actor, reason string) (journal.Seq, error) {
	return w.change(ctx, func() error {
		return w.k.approveProposal(journal.ManifestApproved{
			Proposal: proposal, World: t.World, Base: t.Base, Candidate: t.Candidate, Report: t.Report,
			Signature: s, Actor: actor, Reason: reason,
		})
	})
}

// Reject ends a proposal for good. It returns its record.
func (w *World) Reject(ctx context.Context, proposal uint64, actor, reason string) (journal.Seq, error) {
	return w.change(ctx, func() error {
		return w.k.reject(journal.ManifestRejected{Proposal: proposal, Actor: actor, Reason: reason})
	})
}

// Withdraw ends a proposal of its author, and returns the record.
func (w *World) Withdraw(ctx context.Context, proposal uint64, actor, reason string) (journal.Seq, error) {
	return w.change(ctx, func() error {
		return w.k.withdraw(journal.ManifestWithdrawn{Proposal: proposal, Actor: actor, Reason: reason})
	})
}

// ProposedAlready returns a *governance.SameError if a candidate is proposed already: a caller asks before
// anything is signed.
func (m *Moment) ProposedAlready(candidate journal.Hash) error {
	return m.k.proposals.Same(candidate, m.k.inForce())
}

// Proposals returns the proposals of the world, oldest first, and the rules in force that they are compared
// with. The proposals must not be changed.
func (m *Moment) Proposals() ([]*governance.Proposal, governance.InForce) {
	return m.k.proposals.All(), m.k.inForce()
}

// Terms returns the terms that an approval of a proposal signs now. The errors are of package governance, and
// say why it cannot be approved.
func (m *Moment) Terms(proposal uint64) (manifest.Terms, error) {
	t, err := m.k.proposals.Terms(proposal, m.k.inForce())
	if err != nil {
		return t, fmt.Errorf("world: %w", err)
	}
	return t, nil
}

// ReportOf returns the last report about a proposal, nil if there is none.
func (m *Moment) ReportOf(proposal uint64) (*governance.Report, error) {
	p, err := m.k.proposals.Find(proposal)
	if err != nil || p.ReportAt == 0 {
		return nil, err
	}
	body, err := journal.ReadBody(m.past, journal.Seq(p.ReportAt))
	if err != nil {
		return nil, err
	}
	b, ok := body.(*journal.ManifestShadowed)
	if !ok {
		return nil, fmt.Errorf("world: record #%d holds no report", p.ReportAt)
	}
	return governance.DecodeReport(b.Report)
}

func (k *kernel) propose(b journal.ManifestProposed) (uint64, error) {
	if b.Actor == "" {
		return 0, refuse(ErrNoReason, "actor", "say who proposes it")
	}
	b.V, b.Actor, b.Reason = journal.BodyVersion, journal.Text(b.Actor), journal.Text(b.Reason)
	p, err := k.proposals.Add(governance.Proposal{
		Base: b.Base, Candidate: b.Candidate, Record: uint64(k.last + 1), Time: k.now,
		Author: b.Actor, Signature: b.Signature, Reason: b.Reason,
	}, k.inForce())
	if err != nil {
		return 0, fmt.Errorf("world: %w", err)
	}
	k.noteInput(journal.KindProposed, &b)
	return p.N, nil
}

func (k *kernel) shadowed(b journal.ManifestShadowed) error {
	if b.Actor == "" {
		return refuse(ErrNoReason, "actor", "say who had it shadowed")
	}
	f := k.inForce()
	p, err := k.proposals.Current(b.Proposal, f)
	if err != nil {
		return fmt.Errorf("world: %w", err)
	}
	r, err := governance.DecodeReport(b.Report)
	if err != nil {
		return refuse(ErrBadData, "report", "%v", err)
	}
	switch {
	case r.World != k.id || r.Base != p.Base || r.Candidate != p.Candidate:
		return fmt.Errorf("world: %w: the report is about candidate %s of base %s in world %s",
			governance.ErrOtherTerms, r.Candidate, r.Base, r.World)
	case r.To < f.Since:
		return fmt.Errorf("world: %w: it ends with #%d, and the manifest is in force since #%d", governance.ErrOldReport, r.To, f.Since)
	case r.To > uint64(k.last):
		return refuse(ErrBadData, "report", "it ends with #%d, and the world with #%d", r.To, k.last)
	}
	b.V, b.Hash, b.Actor = journal.BodyVersion, canon.Sum(b.Report), journal.Text(b.Actor)
	if err := k.proposals.Shadow(b.Proposal, b.Hash, uint64(k.last+1), f); err != nil {
		return fmt.Errorf("world: %w", err)
	}
	k.noteInput(journal.KindShadowed, &b)
	return nil
}

func (k *kernel) approveProposal(b journal.ManifestApproved) error {
	if b.Actor == "" {
		return refuse(ErrNoReason, "actor", "say who approves it")
	}
	b.V, b.Actor, b.Reason = journal.BodyVersion, journal.Text(b.Actor), journal.Text(b.Reason)
	err := k.proposals.Approve(b.Proposal, b.Terms(), governance.Approval{
		Record: uint64(k.last + 1), Signature: b.Signature, Actor: b.Actor, Reason: b.Reason,
	}, k.inForce())
	if err != nil {
		return fmt.Errorf("world: %w", err)
	}
	k.noteInput(journal.KindApproved, &b)
	return nil
}

func (k *kernel) reject(b journal.ManifestRejected) error {
	b.V, b.Actor, b.Reason = journal.BodyVersion, journal.Text(b.Actor), journal.Text(b.Reason)
	if b.Reason == "" {
		return refuse(ErrNoReason, "reason", "say why, for the author")
	}
	return k.endProposal(journal.KindRejected, b.Proposal, governance.Rejected, b.Actor, b.Reason, &b)
}

func (k *kernel) withdraw(b journal.ManifestWithdrawn) error {
	b.V, b.Actor, b.Reason = journal.BodyVersion, journal.Text(b.Actor), journal.Text(b.Reason)
	return k.endProposal(journal.KindWithdrawn, b.Proposal, governance.Withdrawn, b.Actor, b.Reason, &b)
}

func (k *kernel) endProposal(kind journal.Kind, n uint64, stage governance.Stage, actor, reason string, b journal.Body) error {
	if actor == "" {
		return refuse(ErrNoReason, "actor", "say who does it")
	}
	if err := k.proposals.End(n, stage, uint64(k.last+1), actor, reason); err != nil {
		return fmt.Errorf("world: %w", err)
	}
	k.noteInput(kind, b)
	return nil
}

// followChange gives the kernel an input about a change of the rules.
func (k *folding) followChange(kind journal.Kind, body journal.Body) error {
	switch b := body.(type) {
	case *journal.ManifestProposed:
		_, err := k.propose(*b)
		return err
	case *journal.ManifestShadowed:
		return k.shadowed(*b)
	case *journal.ManifestApproved:
		return k.approveProposal(*b)
	case *journal.ManifestRejected:
		return k.reject(*b)
	case *journal.ManifestWithdrawn:
		return k.withdraw(*b)
	case *journal.Applied:
		next, err := k.rulesOf(b.Manifest)
		if err != nil && !isMissing(err) {
			return err
		}
		if _, _, err := k.kernel.apply(*b, next); err != nil {
			return err
		}
		return k.keepImage() // a shadow begins with it
	}
	return fmt.Errorf("%s is not an input", kind)
}
