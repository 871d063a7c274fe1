package verify

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// Governance counts changes of the rules by whether the rules before them allowed
// them: Bad are those that were applied without a proposal, a report or approvals.
type Governance struct {
	Proposals uint64 `json:"proposals"`
	Applied   uint64 `json:"applied"`
	Bad       uint64 `json:"bad"`
}

// Why a change of the rules is bad.
var (
	errNoProposal = errors.New("there is no such proposal")
	errClosed     = errors.New("the proposal was closed before")
	errUnreported = errors.New("no report since the manifest in force was put there says what it would do")
	errOtherTerms = errors.New("it is about other terms")
	errUnreadable = errors.New("the manifest in force cannot be read, and it says whose approval counts")
	errReport     = errors.New("the report is not what its hash says")
)

// inForce is what proposals are measured by.
type inForce struct {
	manifest   manifest.Hash
	since      journal.Seq          // the record that put it in force
	governance *manifest.Governance // nil where the manifest cannot be read
	all        *manifest.Manifest   // likewise
}

// proposal is what the journal has said of one so far.
type proposal struct {
	record          journal.Seq
	base, candidate manifest.Hash
	author          *manifest.Signature // nil: a name is all there is
	closed          bool

	report   manifest.Hash // the last one
	shadowed journal.Seq   // the record that holds it; 0: there is none
	wrong    bool          // it is not what its hash says
	approved []manifest.PublicKey
}

// setReport takes a report, of which there are no approvals yet.
func (p *proposal) setReport(report manifest.Hash, at journal.Seq) {
	p.report, p.shadowed, p.wrong, p.approved = report, at, false, nil
}

// by reports whether the author has signed with a key.
func (p *proposal) by(key manifest.PublicKey) bool { return p.author != nil && p.author.Key == key }

// needed returns how many keys have to approve. Four eyes are two signatures of
// those who are listed; the author's is one of them.
func (p *proposal) needed(g *manifest.Governance) uint64 {
	n := g.Needed()
	if !g.FourEyes {
		return n
	}
	if p.author != nil {
		if _, listed := g.Approver(p.author.Key); listed {
			return n
		}
	}
	return max(2, n)
}

// change takes a record about the world's rules. The rules before it judge it.
func (v *verifier) change(place string, body journal.Body) {
	switch b := body.(type) {
	case *journal.ManifestProposed:
		v.proposed(place, b)
	case *journal.ManifestShadowed:
		v.shadowed(place, b)
	case *journal.ManifestApproved:
		if err := v.approve(b); err != nil {
			v.fault(place, "approval of p%d: %v", b.Proposal, err)
		}
	case *journal.ManifestRejected:
		v.closeProposal(place, b.Proposal)
	case *journal.ManifestWithdrawn:
		v.closeProposal(place, b.Proposal)
	case *journal.Applied:
		v.applied(place, b)
	case *journal.Forked:
		v.disown()
	}
}

// govern notes which manifest is in force from the present record on; nil where it
// cannot be read.
func (v *verifier) govern(hash manifest.Hash, m *manifest.Manifest) {
	v.rules = inForce{manifest: hash, since: v.now}
	if m != nil {
		v.effects, v.rules.governance, v.rules.all = m.Effects, &m.Governance, m
	}
}

// openProposal returns a proposal that is open.
func (v *verifier) openProposal(n uint64) (*proposal, error) {
	if n == 0 || n > uint64(len(v.proposals)) {
		return nil, errNoProposal
	}
	p := v.proposals[n-1]
	if p.closed {
		return nil, errClosed
	}
	return p, nil
}

// proposed takes a proposal. A signature of its author that is none does not count
// as that of one of two.
func (v *verifier) proposed(place string, b *journal.ManifestProposed) {
	v.report.Governance.Proposals++
	p := &proposal{record: v.now, base: b.Base, candidate: b.Candidate, author: b.Signature}
	terms := manifest.Terms{World: v.report.WorldID, Base: b.Base, Candidate: b.Candidate}
	switch {
	case p.author == nil:
	case !signed(*p.author, terms):
		v.fault(place, "the author's signature is not one of key %s over this proposal", p.author.Key)
		p.author = nil
	case slices.ContainsFunc(v.proposals, func(o *proposal) bool {
		return o.by(p.author.Key) && string(o.author.Bytes) == string(p.author.Bytes)
	}):
		v.fault(place, "the author's signature is that of an earlier proposal")
		p.author = nil
	}
	v.proposals = append(v.proposals, p)
}

// signed reports whether s is a signature of its key over terms.
func signed(s manifest.Signature, terms manifest.Terms) bool {
	return ed25519.Verify(s.Key[:], terms.Statement(), s.Bytes)
}

// shadowed takes a report, which makes the approvals of the one before void.
func (v *verifier) shadowed(place string, b *journal.ManifestShadowed) {
	p, err := v.openProposal(b.Proposal)
	if err != nil {
		v.fault(place, "report about p%d: %v", b.Proposal, err)
		return
	}
	p.setReport(b.Hash, v.now)
	if h := canon.Sum(b.Report); h != b.Hash {
		p.wrong = true
		v.fault(place, "report about p%d: its hash is %s, and the record says %s", b.Proposal, h, b.Hash)
	}
}

// approve takes an approval, or returns why it does not count.
func (v *verifier) approve(b *journal.ManifestApproved) error {
	p, err := v.openProposal(b.Proposal)
	if err != nil {
		return err
	}
	report, at := p.report, p.shadowed
	if v.unread > max(at, p.record) && b.Report != report {
		report, at = b.Report, v.unread // which was about this proposal, by the word of the approver
	}
	terms := manifest.Terms{World: b.World, Base: b.Base, Candidate: b.Candidate, Report: b.Report}
	switch {
	case at <= v.rules.since || report.IsZero():
		return errUnreported
	case terms != manifest.Terms{World: v.report.WorldID, Base: p.base, Candidate: p.candidate, Report: report}:
		return errOtherTerms
	case !signed(b.Signature, terms):
		return fmt.Errorf("the signature is not one of key %s over its terms", b.Signature.Key)
	case report == p.report && slices.Contains(p.approved, b.Signature.Key):
		return fmt.Errorf("key %s has approved it before", b.Signature.Key)
	}
	if err := v.mayApprove(p, b.Signature.Key); err != nil {
		return err
	}
	if report != p.report {
		p.setReport(report, at)
	}
	p.approved = append(p.approved, b.Signature.Key)
	return nil
}

// mayApprove returns why the rules in force do not count a key's approval.
func (v *verifier) mayApprove(p *proposal, key manifest.PublicKey) error {
	g := v.rules.governance
	if g == nil {
		return errUnreadable
	}
	if _, listed := g.Approver(key); !listed && len(g.Approvers) > 0 {
		return fmt.Errorf("key %s is not listed", key)
	}
	if g.FourEyes && p.by(key) {
		return fmt.Errorf("key %s is the author's, and four_eyes is on", key)
	}
	return nil
}

func (v *verifier) closeProposal(place string, n uint64) {
	p, err := v.openProposal(n)
	if err != nil {
		v.fault(place, "p%d: %v", n, err)
		return
	}
	p.closed = true
}

// applied takes that other rules are in force.
func (v *verifier) applied(place string, b *journal.Applied) {
	v.report.Governance.Applied++
	p, err := v.openProposal(b.Proposal)
	if err == nil {
		err = v.mayApply(p, b)
		p.closed = true
	}
	if err != nil {
		v.report.Governance.Bad++
		v.fault(place, "manifest %s was applied by p%d: %v", b.Manifest, b.Proposal, err)
	}
}

// mayApply returns why a proposal could not be applied.
func (v *verifier) mayApply(p *proposal, b *journal.Applied) error {
	switch {
	case p.base != v.rules.manifest || b.Base != v.rules.manifest:
		return fmt.Errorf("%s was in force, and not its base", v.rules.manifest)
	case b.Manifest != p.candidate:
		return fmt.Errorf("the candidate was %s", p.candidate)
	case p.shadowed <= v.rules.since:
		return errUnreported
	case p.wrong:
		return errReport
	case v.rules.governance == nil:
		return errUnreadable
	}
	if have, need := uint64(len(p.approved)), p.needed(v.rules.governance); have < need {
		return fmt.Errorf("approvals that count: %d of %d", have, need)
	}
	return nil
}

// disown has the open proposals begin anew: another world begins, and what was
// signed was for its parent. Their reports are from before its rules were in force.
func (v *verifier) disown() {
	for _, p := range v.proposals {
		if !p.closed {
			p.author = nil
		}
	}
}

// goneChange notes a payload about the rules that nobody can read any more. Only
// reports are large enough to be redacted: nothing else has the benefit of the doubt.
func (v *verifier) goneChange(place string, kind journal.Kind) {
	switch kind {
	case journal.KindShadowed:
		v.unread = v.now
	case journal.KindProposed:
		v.report.Governance.Proposals++
		v.proposals = append(v.proposals, &proposal{record: v.now, closed: true})
	case journal.KindApplied:
		v.report.Governance.Applied++
		v.report.Governance.Bad++
		v.rules = inForce{since: v.now}
		v.fault(place, "a manifest was applied, and what the record said of it is gone")
	default: // it does not count
	}
}
