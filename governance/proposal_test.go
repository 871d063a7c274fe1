package governance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
)

// governed returns what a manifest says about approvals by these people.
func governed(n uint64, fourEyes bool, who ...byte) manifest.Governance {
	g := manifest.Governance{Approvals: n, FourEyes: fourEyes}
	for _, w := range who {
		g.Approvers = append(g.Approvers, manifest.Approver{Name: fmt.Sprint("person ", w), Key: publicOf(w)})
	}
	return g
}

// fixture has the proposals of a world. Its manifest A is in force since
// record 1; every step is a record.
type fixture struct {
	t      require.TestingT
	ps     Proposals
	f      InForce
	record uint64
}

func newFixture(t require.TestingT, g manifest.Governance) *fixture {
	return &fixture{t: t, f: InForce{World: "w", Manifest: hashOf("A"), Since: 1, Governance: g}, record: 1}
}

// propose adds a proposal of a candidate; author 0 signs nothing.
func (d *fixture) propose(candidate string, author byte) *Proposal {
	p := Proposal{Base: d.f.Manifest, Candidate: hashOf(candidate), Record: d.record + 1, Author: "ada"}
	if author != 0 {
		s := manifest.Sign(keyOf(author), manifest.Terms{World: d.f.World, Base: p.Base, Candidate: p.Candidate})
		p.Signature = &s
	}
	added, err := d.ps.Add(p, d.f)
	require.NoError(d.t, err)
	d.record++
	return added
}

func (d *fixture) shadow(n uint64, report string) error {
	err := d.ps.Shadow(n, hashOf(report), d.record+1, d.f)
	if err == nil {
		d.record++
	}
	return err
}

// sign has a person approve of a proposal as it is, but for change.
func (d *fixture) sign(n uint64, who byte, change ...func(*manifest.Terms)) error {
	p, err := d.ps.Find(n)
	require.NoError(d.t, err)
	terms := p.Terms(d.f.World)
	for _, c := range change {
		c(&terms)
	}
	return d.approve(n, terms, manifest.Sign(keyOf(who), terms))
}

func (d *fixture) approve(n uint64, terms manifest.Terms, s manifest.Signature) error {
	err := d.ps.Approve(n, terms, Approval{Record: d.record + 1, Signature: s, Actor: "bob"}, d.f)
	if err == nil {
		d.record++
	}
	return err
}

// apply puts the candidate of a proposal in force, which keeps the governance.
func (d *fixture) apply(n uint64) error {
	p, err := d.ps.Ready(n, d.f)
	if err != nil {
		return err
	}
	d.record++
	require.NoError(d.t, d.ps.End(n, Applied, d.record, "cleo", ""))
	d.f.Manifest, d.f.Since = p.Candidate, d.record
	return nil
}

// adopt proposes a candidate and goes the whole way.
func (d *fixture) adopt(candidate string, who ...byte) {
	p := d.propose(candidate, 0)
	require.NoError(d.t, d.shadow(p.N, "report of "+candidate))
	for _, w := range who {
		require.NoError(d.t, d.sign(p.N, w))
	}
	require.NoError(d.t, d.apply(p.N))
}

func (d *fixture) bytes() []byte {
	b, err := d.ps.MarshalCBOR()
	require.NoError(d.t, err)
	return b
}

func TestProposalGoesFromStageToStage(t *testing.T) {
	d := newFixture(t, governed(2, false, 1, 2, 3))
	p := d.propose("B", 0)
	require.Equal(t, []any{uint64(1), Proposed, true}, []any{p.N, p.Stage, p.Open()})
	require.NoError(t, d.shadow(1, "r"))
	require.Equal(t, Shadowed, p.Stage)
	terms, err := d.ps.Terms(1, d.f)
	require.NoError(t, err)
	require.Equal(t, manifest.Terms{World: d.f.World, Base: p.Base, Candidate: p.Candidate, Report: p.Report}, terms)
	require.NoError(t, d.sign(1, 1))
	require.Equal(t, Shadowed, p.Stage, "one of two")
	require.NoError(t, d.sign(1, 3))
	require.Equal(t, Approved, p.Stage)
	require.NoError(t, d.apply(1))
	require.Equal(t, []any{Applied, d.record, "cleo", false}, []any{p.Stage, p.Ended, p.By, p.Open()})
	require.EqualValues(t, 2, d.propose("C", 0).N)
}

func TestRefusedStepsChangeNothing(t *testing.T) {
	other := func(change func(*manifest.Terms)) func(*fixture) error {
		return func(d *fixture) error { return d.sign(1, 1, change) }
	}
	fork := func(d *fixture) { d.f.World = "the fork" }
	stale := func(d *fixture) { d.f.Manifest, d.f.Since = hashOf("B"), d.record }
	back := func(d *fixture) { d.adopt("B", 1, 2); d.adopt("A", 1, 2) } // p1 was made of A, which is in force again
	add := func(p Proposal) func(*fixture) error {
		return func(d *fixture) error { _, err := d.ps.Add(p, d.f); return err }
	}
	terms := func(n uint64) func(*fixture) error {
		return func(d *fixture) error { _, err := d.ps.Terms(n, d.f); return err }
	}
	signed := manifest.Sign(keyOf(1), manifest.Terms{World: "w", Base: hashOf("A"), Candidate: hashOf("D")})
	for name, c := range map[string]struct {
		before func(*fixture)
		step   func(*fixture) error
		want   error
	}{
		"add: of another base":     {nil, add(Proposal{Base: hashOf("Z"), Candidate: hashOf("D")}), ErrStale},
		"add: no change":           {nil, add(Proposal{Base: hashOf("A"), Candidate: hashOf("A")}), ErrNoChange},
		"add: signed for another":  {nil, add(Proposal{Base: hashOf("A"), Candidate: hashOf("E"), Signature: &signed}), ErrSignature},
		"add: signed elsewhere":    {fork, add(Proposal{Base: hashOf("A"), Candidate: hashOf("D"), Signature: &signed}), ErrSignature},
		"shadow: there is none":    {nil, func(d *fixture) error { return d.shadow(9, "r") }, ErrNoProposal},
		"shadow: stale":            {stale, func(d *fixture) error { return d.shadow(1, "r") }, ErrStale},
		"shadow: closed":           {nil, func(d *fixture) error { return d.shadow(3, "r") }, ErrClosed},
		"approve: there is none":   {nil, func(d *fixture) error { return d.ps.Approve(0, manifest.Terms{}, Approval{}, d.f) }, ErrNoProposal},
		"approve: stale":           {stale, func(d *fixture) error { return d.sign(1, 1) }, ErrStale},
		"approve: closed":          {nil, func(d *fixture) error { return d.sign(3, 1) }, ErrClosed},
		"approve: not shadowed":    {nil, func(d *fixture) error { return d.sign(2, 1) }, ErrNotShadowed},
		"approve: old report":      {back, func(d *fixture) error { return d.sign(1, 1) }, ErrOldReport},
		"approve: other world":     {nil, other(func(t *manifest.Terms) { t.World = "the fork" }), ErrOtherTerms},
		"approve: other base":      {nil, other(func(t *manifest.Terms) { t.Base = hashOf("Z") }), ErrOtherTerms},
		"approve: other candidate": {nil, other(func(t *manifest.Terms) { t.Candidate = hashOf("Z") }), ErrOtherTerms},
		"approve: other report":    {nil, other(func(t *manifest.Terms) { t.Report = hashOf("Z") }), ErrOtherTerms},
		"approve: of no report":    {nil, other(func(t *manifest.Terms) { t.Report = Hash{} }), ErrOtherTerms},
		"approve: not listed":      {nil, func(d *fixture) error { return d.sign(1, 7) }, ErrNotListed},
		"approve: repeated":        {nil, func(d *fixture) error { return d.sign(1, 2) }, ErrRepeated},
		"approve: own":             {nil, func(d *fixture) error { return d.sign(1, 3) }, ErrOwnProposal},
		"approve: bad signature": {nil, func(d *fixture) error {
			return d.approve(1, d.ps.list[0].Terms("w"), manifest.Signature{Key: publicOf(1)})
		}, ErrSignature},
		"approve: another's key":     {nil, func(d *fixture) error { return d.approve(1, d.ps.list[0].Terms("w"), signedBy(d, 2, 1)) }, ErrSignature},
		"approve: with the author's": {nil, func(d *fixture) error { return d.approve(1, d.ps.list[0].Terms("w"), authors(d, 1)) }, ErrSignature},
		"terms: there is none":       {nil, terms(9), ErrNoProposal},
		"terms: stale":               {stale, terms(1), ErrStale},
		"terms: closed":              {nil, terms(3), ErrClosed},
		"terms: not shadowed":        {nil, terms(2), ErrNotShadowed},
		"terms: old report":          {back, terms(1), ErrOldReport},
		"apply: there is none":       {nil, func(d *fixture) error { return d.apply(9) }, ErrNoProposal},
		"apply: stale":               {stale, func(d *fixture) error { return d.apply(1) }, ErrStale},
		"apply: closed":              {nil, func(d *fixture) error { return d.apply(3) }, ErrClosed},
		"apply: not shadowed":        {nil, func(d *fixture) error { return d.apply(2) }, ErrNotShadowed},
		"apply: old report":          {back, func(d *fixture) error { return d.apply(1) }, ErrOldReport},
		"apply: approvals missing":   {nil, func(d *fixture) error { return d.apply(1) }, ErrNotApproved},
		"end: there is none":         {nil, func(d *fixture) error { return d.ps.End(9, Rejected, 9, "", "") }, ErrNoProposal},
		"end: closed":                {nil, func(d *fixture) error { return d.ps.End(3, Withdrawn, 9, "", "") }, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, governed(2, true, 1, 2, 3))
			d.propose("B", 3)
			require.NoError(t, d.shadow(1, "r"))
			require.NoError(t, d.sign(1, 2))
			d.propose("C", 0)
			d.propose("D", 0)
			require.NoError(t, d.ps.End(3, Rejected, 9, "bob", "no"))
			if c.before != nil {
				c.before(d)
			}
			before := d.bytes()
			require.ErrorIs(t, c.step(d), c.want)
			require.Equal(t, before, d.bytes())
		})
	}
}

// signedBy is what a person signs under p1, with the name of another's key.
func signedBy(d *fixture, who, as byte) manifest.Signature {
	s := manifest.Sign(keyOf(who), d.ps.list[0].Terms(d.f.World))
	s.Key = publicOf(as)
	return s
}

// authors is a signature as an author of p1 makes one, who has seen no report.
func authors(d *fixture, who byte) manifest.Signature {
	terms := d.ps.list[0].Terms(d.f.World)
	terms.Report = Hash{}
	return manifest.Sign(keyOf(who), terms)
}

func TestOpenProposalsAreLimited(t *testing.T) {
	d := newFixture(t, manifest.Governance{})
	for i := range MaxOpen {
		d.propose(fmt.Sprint("candidate ", i), 0)
	}
	before := d.bytes()
	_, err := d.ps.Add(Proposal{Base: hashOf("A"), Candidate: hashOf("one more")}, d.f)
	require.ErrorIs(t, err, ErrTooMany)
	require.Equal(t, before, d.bytes())
	require.NoError(t, d.ps.End(7, Withdrawn, 999, "ada", ""))
	require.EqualValues(t, MaxOpen+1, d.propose("one more", 0).N, "a number is given once")
}

func TestApprovalsCountForTheirReportOnly(t *testing.T) {
	d := newFixture(t, governed(2, false, 1, 2, 3))
	p := d.propose("B", 0)
	require.NoError(t, d.shadow(1, "r"))
	require.NoError(t, d.sign(1, 1))
	require.NoError(t, d.sign(1, 2))
	require.NoError(t, d.shadow(1, "another"))
	require.Equal(t, Shadowed, p.Stage)
	require.Zero(t, p.Counted(d.f.Governance))
	require.ErrorIs(t, d.apply(1), ErrNotApproved)
	require.NoError(t, d.sign(1, 1), "under the new report")
	require.ErrorIs(t, d.sign(1, 1), ErrRepeated)
	require.EqualValues(t, 1, p.Counted(d.f.Governance))

	require.NoError(t, d.shadow(1, "r"))
	require.Equal(t, Approved, p.Stage, "it says what they have approved")
	require.EqualValues(t, 2, p.Counted(d.f.Governance))
	require.ErrorIs(t, d.sign(1, 2), ErrRepeated)
	require.NoError(t, d.apply(1))
}

func TestSecondProposalOfABaseIsStaleAfterTheFirstIsApplied(t *testing.T) {
	d := newFixture(t, manifest.Governance{})
	second := d.propose("C", 0)
	require.NoError(t, d.shadow(second.N, "r"))
	require.NoError(t, d.sign(second.N, 1))
	d.adopt("B", 1)
	require.Equal(t, Approved, second.Stage)
	for _, step := range []error{d.shadow(second.N, "r"), d.sign(second.N, 2), d.apply(second.N)} {
		require.ErrorIs(t, step, ErrStale)
	}
	d.adopt("A", 1)
	require.ErrorIs(t, d.apply(second.N), ErrOldReport, "its base is in force again, and much has happened since")
	require.NoError(t, d.shadow(second.N, "a new report"))
	require.ErrorIs(t, d.apply(second.N), ErrNotApproved)
	require.NoError(t, d.sign(second.N, 1))
	require.NoError(t, d.apply(second.N))
}

func TestNeededApprovals(t *testing.T) {
	for name, c := range map[string]struct {
		g       manifest.Governance
		author  byte // 0: not signed
		needed  uint64
		signers []byte // who are enough
		few     []byte // who are not
	}{
		"nobody listed":                        {governed(0, false), 0, 1, []byte{9}, nil},
		"nobody listed, the author":            {governed(0, false), 9, 1, []byte{9}, nil},
		"one of three":                         {governed(0, false, 1, 2, 3), 0, 1, []byte{2}, nil},
		"one of three, the author":             {governed(1, false, 1, 2, 3), 2, 1, []byte{2}, nil},
		"two of three":                         {governed(2, false, 1, 2, 3), 0, 2, []byte{1, 3}, []byte{1}},
		"two of three, the author among them":  {governed(2, false, 1, 2, 3), 1, 2, []byte{1, 3}, []byte{1}},
		"four eyes, the author is an approver": {governed(1, true, 1, 2, 3), 1, 1, []byte{2}, nil},
		"four eyes, the author is nobody":      {governed(1, true, 1, 2, 3), 9, 2, []byte{2, 3}, []byte{2}},
		"four eyes, a name is all there is":    {governed(1, true, 1, 2, 3), 0, 2, []byte{1, 3}, []byte{1}},
		"four eyes, two of three, an approver": {governed(2, true, 1, 2, 3), 1, 2, []byte{2, 3}, []byte{2}},
		"four eyes, three of three":            {governed(3, true, 1, 2, 3), 9, 3, []byte{1, 2, 3}, []byte{1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			try := func(signers []byte) error {
				d := newFixture(t, c.g)
				p := d.propose("B", c.author)
				require.NoError(t, d.shadow(1, "r"))
				for _, who := range signers {
					require.NoError(t, d.sign(1, who))
				}
				require.Equal(t, c.needed, p.Needed(c.g))
				require.EqualValues(t, len(signers), p.Counted(c.g))
				return d.apply(1)
			}
			require.NoError(t, try(c.signers))
			require.ErrorIs(t, try(nil), ErrNotApproved)
			require.ErrorIs(t, try(c.few), ErrNotApproved)
		})
	}
}

func TestForkDisownsWhatIsOpen(t *testing.T) {
	d := newFixture(t, governed(1, true, 1, 2))
	d.adopt("B", 1, 2)
	p := d.propose("C", 1)
	require.NoError(t, d.shadow(p.N, "r"))
	require.NoError(t, d.sign(p.N, 2))
	require.Equal(t, Approved, p.Stage)
	applied := *d.ps.list[0]
	given := p.Approvals[0].Signature
	terms := p.Terms(d.f.World)

	d.ps.Disown()
	d.f.World = "the fork"
	require.Equal(t, applied, *d.ps.list[0], "what has ended is history")
	require.Equal(t, Proposed, p.Stage)
	require.ErrorIs(t, d.apply(p.N), ErrNotShadowed)
	require.NoError(t, d.shadow(p.N, "r"))
	require.ErrorIs(t, d.approve(p.N, terms, given), ErrOtherTerms)
	require.ErrorIs(t, d.approve(p.N, p.Terms(d.f.World), given), ErrSignature)
	require.NoError(t, d.sign(p.N, 2))
	require.ErrorIs(t, d.apply(p.N), ErrNotApproved, "the author has signed for another world")
	require.NoError(t, d.sign(p.N, 1))
	require.NoError(t, d.apply(p.N))
}

// Who has thought better of it is not brought back by whoever kept the signature.
func TestAuthorsSignatureProposesOnce(t *testing.T) {
	d := newFixture(t, governed(1, true, 1, 2))
	first := d.propose("B", 1)
	again := Proposal{Base: d.f.Manifest, Candidate: first.Candidate, Author: "eve", Signature: first.Signature}
	_, err := d.ps.Add(again, d.f)
	require.ErrorIs(t, err, ErrRepeated)
	require.NoError(t, d.ps.End(1, Withdrawn, 9, "ada", ""))
	_, err = d.ps.Add(again, d.f)
	require.ErrorIs(t, err, ErrRepeated)
	require.Len(t, d.ps.All(), 1)
	again.Signature = nil
	_, err = d.ps.Add(again, d.f)
	require.NoError(t, err)
}
