package governance

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// Hash names a manifest or a report by its content.
type Hash = canon.Hash

// Stage is how far a proposal has come: proposed, shadowed, approved, and then
// applied; or it ends as rejected or withdrawn.
type Stage string

// Stages of a proposal.
const (
	Proposed  Stage = "proposed"
	Shadowed  Stage = "shadowed"  // what it would have done is known
	Approved  Stage = "approved"  // by as many as have to
	Rejected  Stage = "rejected"  // for good
	Withdrawn Stage = "withdrawn" // for good
	Applied   Stage = "applied"   // its candidate was put in force
)

// Why a step of a proposal is refused.
var (
	ErrNoProposal  = errors.New("there is no such proposal")
	ErrClosed      = errors.New("the proposal is closed")
	ErrStale       = errors.New("the manifest in force is another than the proposal's base")
	ErrNotShadowed = errors.New("no report says what the proposal would have done")
	ErrOldReport   = errors.New("the report was made before the manifest in force was applied")
	ErrOtherTerms  = errors.New("the signature is for something else")
	ErrSignature   = errors.New("the signature is not one of its key over these terms")
	ErrNotListed   = errors.New("the key is not one of the approvers'")
	ErrRepeated    = errors.New("the key has signed this already")
	ErrOwnProposal = errors.New("the author's approval does not count: four_eyes is on")
	ErrNotApproved = errors.New("approvals are missing")
	ErrTooMany     = errors.New("too many proposals are open")
	ErrNoChange    = errors.New("the candidate is the manifest in force")
	ErrSame        = errors.New("an open proposal asks for the candidate already")
)

// SameError says that an open proposal asks for a candidate already: two of the same
// would share neither report nor approvals.
type SameError struct {
	N         uint64 // of that proposal
	Candidate Hash
}

// Is reports that target is ErrSame.
func (e *SameError) Is(target error) bool { return target == ErrSame }

func (e *SameError) Error() string {
	return fmt.Sprintf("p%d proposes the same, manifest %s", e.N, e.Candidate)
}

// MaxOpen is how many proposals of a world may be open at a time.
const MaxOpen = 100

// Proposal is a change of a world's manifest on its way. Records are those of the
// world's journal.
type Proposal struct {
	_         struct{} `cbor:",toarray"`
	N         uint64   // its number, from 1: p1, p2, …
	Stage     Stage
	Base      Hash // the manifest that was in force when it was proposed
	Candidate Hash // the manifest that is proposed
	Record    uint64
	Time      manifest.Tick
	Author    string // who proposed it, by name
	Signature *manifest.Signature
	Reason    string

	Report    Hash   // of the last shadow; zero: there is none
	ReportAt  uint64 // the record that holds it
	Approvals []Approval

	Ended uint64 // the record that rejected, withdrew or applied it; 0: it is open
	By    string // who did
	Why   string
}

// Approval is a person's signature under a proposal and one of its reports.
type Approval struct {
	_         struct{} `cbor:",toarray"`
	Record    uint64
	Report    Hash
	Signature manifest.Signature
	Actor     string // by name
	Reason    string
}

// Open reports whether the proposal can still be applied.
func (p *Proposal) Open() bool { return p.Ended == 0 }

// Terms returns what an approval of the proposal in a world is to sign.
func (p *Proposal) Terms(world string) manifest.Terms {
	return manifest.Terms{World: world, Base: p.Base, Candidate: p.Candidate, Report: p.Report}
}

// counts reports whether an approval is of the last report and by somebody whose
// approval counts.
func (p *Proposal) counts(a *Approval, g manifest.Governance) bool {
	return a.Report == p.Report && p.eligible(a.Signature.Key, g) == nil
}

// eligible returns why no approval with a key counts.
func (p *Proposal) eligible(key manifest.PublicKey, g manifest.Governance) error {
	_, listed := g.Approver(key)
	switch {
	case !listed && len(g.Approvers) > 0:
		return fmt.Errorf("%w: %s", ErrNotListed, key)
	case g.FourEyes && p.by(key):
		return ErrOwnProposal
	}
	return nil
}

// mayApprove returns why one more approval with a key would not count.
func (p *Proposal) mayApprove(key manifest.PublicKey, g manifest.Governance) error {
	err := p.eligible(key, g)
	if err == nil && slices.ContainsFunc(p.Approvals, func(a Approval) bool { return a.Report == p.Report && a.Signature.Key == key }) {
		err = ErrRepeated
	}
	return err
}

// by reports whether the author has signed with a key.
func (p *Proposal) by(key manifest.PublicKey) bool {
	return p.Signature != nil && p.Signature.Key == key
}

// Counted returns how many approvals count. Each key has one.
func (p *Proposal) Counted(g manifest.Governance) uint64 {
	var n uint64
	for i := range p.Approvals {
		if p.counts(&p.Approvals[i], g) {
			n++
		}
	}
	return n
}

// Needed returns how many approvals have to count. Where four_eyes is on, two
// approvers have to have signed, the author among them or not: a name proves
// nothing, so the approvals are two where the author's key is not on the list.
func (p *Proposal) Needed(g manifest.Governance) uint64 {
	n := g.Needed()
	if g.FourEyes && n < 2 {
		if p.Signature == nil {
			return 2
		}
		if _, listed := g.Approver(p.Signature.Key); !listed {
			return 2
		}
	}
	return n
}

// approved returns ErrNotApproved where approvals are missing.
func (p *Proposal) approved(g manifest.Governance) error {
	have, need := p.Counted(g), p.Needed(g)
	if have >= need {
		return nil
	}
	return fmt.Errorf("%w: %d of %d", ErrNotApproved, have, need)
}

// Lack is something that a proposal needs before it can be applied.
type Lack struct {
	Step Stage  // that brings it; empty: none does
	Text string // such as "1 of 2 approvals, by alice"
}

// Lacks returns what a proposal needs before it can be applied, nothing where nothing
// would help: it is closed, or was made of another manifest than the one in force.
func (p *Proposal) Lacks(f InForce) []Lack {
	if !p.Open() || p.Base != f.Manifest {
		return nil
	}
	var out []Lack
	if p.ReportAt == 0 || p.ReportAt < f.Since {
		out = append(out, Lack{Shadowed, "a report of what it would have done"})
	}
	have, need := p.Counted(f.Governance), p.Needed(f.Governance)
	if have >= need {
		return out
	}
	who := "whoever has a key"
	if len(f.Governance.Approvers) > 0 {
		var names []string
		for _, a := range f.Governance.Approvers {
			if p.mayApprove(a.Key, f.Governance) == nil {
				names = append(names, a.Name)
			}
		}
		who = strings.Join(names, ", ")
	}
	text := fmt.Sprintf("%d of %d approvals, ", need-have, need)
	if who == "" {
		return append(out, Lack{"", text + "and no approver is left to give them: let another one propose it"})
	}
	return append(out, Lack{Approved, text + "by " + who})
}

// InForce is what a proposal is measured by.
type InForce struct {
	World      string // its id
	Manifest   Hash
	Since      uint64 // the last record of what put the manifest in force
	Governance manifest.Governance
}

// Proposals are the proposals of a world, in their order. The zero value is empty. It is not safe
// for concurrent use. Its methods change nothing when they return an error.
type Proposals struct{ list []*Proposal }

// All returns the proposals, oldest first. They are not to be changed.
func (ps *Proposals) All() []*Proposal { return ps.list }

// Find returns a proposal by its number.
func (ps *Proposals) Find(n uint64) (*Proposal, error) {
	if n == 0 || n > uint64(len(ps.list)) {
		return nil, fmt.Errorf("%w: p%d", ErrNoProposal, n)
	}
	return ps.list[n-1], nil
}

// open returns a proposal that is open.
func (ps *Proposals) open(n uint64) (*Proposal, error) {
	p, err := ps.Find(n)
	if err == nil && !p.Open() {
		err = fmt.Errorf("%w: p%d is %s, by #%d", ErrClosed, n, p.Stage, p.Ended)
	}
	return p, err
}

// Current returns a proposal that is open and was made of the manifest in force.
func (ps *Proposals) Current(n uint64, f InForce) (*Proposal, error) {
	p, err := ps.open(n)
	if err == nil && p.Base != f.Manifest {
		err = fmt.Errorf("%w: p%d was made of %s, and %s is in force", ErrStale, n, p.Base, f.Manifest)
	}
	return p, err
}

// Same returns a *SameError where an open proposal that was made of the manifest in
// force has a candidate. Journals from before this rule hold such proposals, so Add
// takes them.
func (ps *Proposals) Same(candidate Hash, f InForce) error {
	for _, p := range ps.list {
		if p.Open() && p.Base == f.Manifest && p.Candidate == candidate {
			return &SameError{N: p.N, Candidate: candidate}
		}
	}
	return nil
}

// Add takes a proposal, whose N and Stage it sets. Base, Candidate, Record, Time,
// Author, Signature and Reason are the caller's. A signature proposes once: it must
// not bring back what its author has withdrawn.
func (ps *Proposals) Add(p Proposal, f InForce) (*Proposal, error) {
	open := 0
	for _, other := range ps.list {
		if other.Open() {
			open++
		}
		if p.Signature != nil && other.by(p.Signature.Key) && bytes.Equal(other.Signature.Bytes, p.Signature.Bytes) {
			return nil, fmt.Errorf("%w: the author's signature is that of p%d", ErrRepeated, other.N)
		}
	}
	switch {
	case p.Base != f.Manifest:
		return nil, fmt.Errorf("%w: it was made of %s, and %s is in force", ErrStale, p.Base, f.Manifest)
	case p.Candidate == p.Base:
		return nil, ErrNoChange
	case open >= MaxOpen:
		return nil, fmt.Errorf("%w: %d, reject or withdraw some", ErrTooMany, open)
	case p.Signature != nil && !p.Signature.Verifies(manifest.Terms{World: f.World, Base: p.Base, Candidate: p.Candidate}):
		return nil, ErrSignature
	}
	p.N, p.Stage = uint64(len(ps.list))+1, Proposed
	ps.list = append(ps.list, &p)
	return &p, nil
}

// Shadow takes a report, which record holds. Approvals of another report than
// the last one do not count.
func (ps *Proposals) Shadow(n uint64, report Hash, record uint64, f InForce) error {
	p, err := ps.Current(n, f)
	if err != nil {
		return err
	}
	p.Report, p.ReportAt, p.Stage = report, record, Shadowed
	p.advance(f)
	return nil
}

// advance notes that enough have approved.
func (p *Proposal) advance(f InForce) {
	if p.approved(f.Governance) == nil {
		p.Stage = Approved
	}
}

// Approve takes a signature under terms.
func (ps *Proposals) Approve(n uint64, terms manifest.Terms, a Approval, f InForce) error {
	p, err := ps.reported(n, f)
	if err != nil {
		return err
	}
	want := p.Terms(f.World)
	switch {
	case terms.World != want.World:
		return fmt.Errorf("%w: world %s, and this is %s", ErrOtherTerms, terms.World, want.World)
	case terms.Base != want.Base:
		return fmt.Errorf("%w: base %s, and p%d was made of %s", ErrOtherTerms, terms.Base, n, want.Base)
	case terms.Candidate != want.Candidate:
		return fmt.Errorf("%w: candidate %s, and that of p%d is %s", ErrOtherTerms, terms.Candidate, n, want.Candidate)
	case terms.Report != want.Report:
		return fmt.Errorf("%w: report %s, and the last of p%d is %s", ErrOtherTerms, terms.Report, n, want.Report)
	}
	if err := p.mayApprove(a.Signature.Key, f.Governance); err != nil {
		return err
	}
	if !a.Signature.Verifies(want) {
		return ErrSignature
	}
	a.Report = p.Report
	p.Approvals = append(p.Approvals, a)
	p.advance(f)
	return nil
}

// Terms returns what an approval of a proposal is to sign now, or why nobody can
// approve it.
func (ps *Proposals) Terms(n uint64, f InForce) (manifest.Terms, error) {
	p, err := ps.reported(n, f)
	if err != nil {
		return manifest.Terms{}, err
	}
	return p.Terms(f.World), nil
}

// reported returns a proposal that is current and has a report that says what it
// would do now.
func (ps *Proposals) reported(n uint64, f InForce) (*Proposal, error) {
	p, err := ps.Current(n, f)
	switch {
	case err != nil:
		return nil, err
	case p.Report.IsZero():
		return nil, fmt.Errorf("%w: p%d", ErrNotShadowed, n)
	case p.ReportAt < f.Since:
		return nil, fmt.Errorf("%w: #%d, and the manifest is in force since #%d", ErrOldReport, p.ReportAt, f.Since)
	}
	return p, nil
}

// Ready returns a proposal that can be applied, or why it cannot.
func (ps *Proposals) Ready(n uint64, f InForce) (*Proposal, error) {
	p, err := ps.reported(n, f)
	if err == nil {
		err = p.approved(f.Governance)
	}
	return p, err
}

// End ends an open proposal: as Rejected, Withdrawn or, when Ready has found
// nothing against it, Applied.
func (ps *Proposals) End(n uint64, stage Stage, record uint64, by, why string) error {
	p, err := ps.open(n)
	if err != nil {
		return err
	}
	p.Stage, p.Ended, p.By, p.Why = stage, record, by, why
	return nil
}

// Disown has the open proposals begin anew: reports and approvals were of another
// world, which this one was forked off.
func (ps *Proposals) Disown() {
	for _, p := range ps.list {
		if p.Open() {
			p.Stage, p.Report, p.ReportAt, p.Approvals, p.Signature = Proposed, Hash{}, 0, nil, nil
		}
	}
}

// MarshalCBOR returns the list of all proposals.
func (ps Proposals) MarshalCBOR() ([]byte, error) { return canon.Marshal(ps.list) }

// UnmarshalCBOR makes ps the proposals whose MarshalCBOR wrote data.
func (ps *Proposals) UnmarshalCBOR(data []byte) error {
	var list []*Proposal
	if err := canon.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("governance: proposals: %w", err)
	}
	for i, p := range list {
		if p == nil || p.N != uint64(i)+1 {
			return fmt.Errorf("governance: proposals: p%d is not in its place", i+1)
		}
		if !p.known() {
			return fmt.Errorf("governance: proposals: p%d is %q, and the record that ended it is #%d", p.N, p.Stage, p.Ended)
		}
	}
	ps.list = list
	return nil
}

// known reports whether the stage is one of those there are, and says the same as
// Ended.
func (p *Proposal) known() bool {
	switch p.Stage {
	case Proposed, Shadowed, Approved:
		return p.Open()
	case Rejected, Withdrawn, Applied:
		return !p.Open()
	default:
		return false
	}
}
