package world_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// council is a world of bots whose rules change by proposals. Its methods return
// what the world says.
type council struct {
	*worldtest.World
	t *testing.T
}

// councilOf returns one in which so many of three approvers have to agree.
func councilOf(t *testing.T, approvals uint64, fourEyes bool) *council {
	t.Helper()
	return &council{World: bots(t, governedBy(approvals, fourEyes)), t: t}
}

func governedBy(approvals uint64, fourEyes bool) func(*manifest.Manifest) {
	return func(m *manifest.Manifest) {
		m.Governance = manifest.Governance{Approvals: approvals, FourEyes: fourEyes}
		for who := range byte(3) {
			key := manifest.PublicKey(worldtest.Public(who + 1))
			m.Governance.Approvers = append(m.Governance.Approvers, manifest.Approver{Name: fmt.Sprint("person ", who+1), Key: key})
		}
	}
}

// version returns the manifest in force with another version.
func (c *council) version(n uint64) *manifest.Manifest {
	next := *c.Manifest()
	next.Version = n
	return &next
}

func (c *council) propose(next *manifest.Manifest) error {
	_, _, err := c.Propose(c.t.Context(), world.Proposal{Candidate: next, Base: c.Status().Manifest, Actor: "ada", Reason: "better"})
	return err
}

// author is the approver who makes what proposeSigned proposes.
const author = 3

func (c *council) proposeSigned(next *manifest.Manifest) error {
	encoded, err := next.Encode()
	require.NoError(c.t, err)
	base := c.Status().Manifest
	s := manifest.Sign(worldtest.Key(author), manifest.Terms{World: c.Status().ID, Base: base, Candidate: canon.Sum(encoded)})
	_, _, err = c.Propose(c.t.Context(), world.Proposal{Candidate: next, Base: base, Actor: "ada", Signature: &s, Reason: "better"})
	return err
}

func (c *council) shadow(n uint64) error {
	_, _, err := c.Shadow(c.t.Context(), n, world.ShadowConfig{}, "bob")
	return err
}

func (c *council) terms(n uint64) manifest.Terms {
	all, f := c.Proposals()
	return all[n-1].Terms(f.World)
}

// sign has an approver sign a proposal as it is, but for change.
func (c *council) sign(n uint64, who byte, change ...func(*manifest.Terms)) error {
	terms := c.terms(n)
	for _, change := range change {
		change(&terms)
	}
	return c.approve(n, terms, manifest.Sign(worldtest.Key(who), terms))
}

func (c *council) approve(n uint64, terms manifest.Terms, s manifest.Signature) error {
	return worldtest.ErrorOf(c.Approve(c.t.Context(), n, terms, s, "cleo", "it is good"))
}

func (c *council) apply(n uint64) error { return worldtest.ErrorOf(c.Apply(c.t.Context(), n, "dan")) }

// put goes the whole way with a manifest.
func (c *council) put(next *manifest.Manifest, who ...byte) {
	c.t.Helper()
	require.NoError(c.t, c.propose(next))
	all, _ := c.Proposals()
	n := uint64(len(all))
	require.NoError(c.t, c.shadow(n))
	for _, w := range who {
		require.NoError(c.t, c.sign(n, w))
	}
	require.NoError(c.t, c.apply(n))
}

// proposals returns all that is known of proposals.
func (c *council) proposals() []byte {
	all, _ := c.Proposals()
	b, err := canon.Marshal(all)
	require.NoError(c.t, err)
	return b
}

// requireRefused requires that a step is refused, with an error (nil: any), and that
// nothing has changed.
func (c *council) requireRefused(step func() error, want error) {
	c.t.Helper()
	before, root, records, all := c.Status(), c.StateRoot(), len(c.Journal.Records()), c.proposals()
	err := step()
	require.Error(c.t, err)
	if want != nil {
		require.ErrorIs(c.t, err, want)
	}
	require.Equal(c.t, before, c.Status())
	require.Equal(c.t, root, c.StateRoot())
	require.Len(c.t, c.Journal.Records(), records)
	require.Equal(c.t, all, c.proposals())
}

func TestRefusedChangesOfTheRulesLeaveNoTrace(t *testing.T) {
	c := councilOf(t, 2, true)
	c.Submit("go", order{To: "a", Do: []act{{Effect: "tool.a"}, {Timer: 9}}})
	c.Step(1)
	require.NoError(t, c.proposeSigned(c.version(2)))
	require.NoError(t, c.shadow(1))
	require.NoError(t, c.sign(1, 2))
	require.NoError(t, c.propose(c.version(3)))
	require.NoError(t, c.propose(c.version(4)))
	require.NoError(t, worldtest.ErrorOf(c.Reject(t.Context(), 3, "bob", "no")))

	ctx := t.Context()
	propose := func(change func(*world.Proposal)) func() error {
		p := world.Proposal{Candidate: c.version(5), Base: c.Status().Manifest, Actor: "ada"}
		change(&p)
		return func() error { _, _, err := c.Propose(ctx, p); return err }
	}
	shadow := func(n uint64, who string) func() error {
		return func() error { _, _, err := c.Shadow(ctx, n, world.ShadowConfig{}, who); return err }
	}
	sign := func(n uint64, who byte, change ...func(*manifest.Terms)) func() error {
		return func() error { return c.sign(n, who, change...) }
	}
	good := manifest.Sign(worldtest.Key(1), c.terms(1))
	faulty := journal.Hash{1}
	huge, invalid, unknown, broken := *c.version(6), *c.version(7), *c.version(8), *c.version(9)
	huge.World = strings.Repeat("x", 4<<20)
	invalid.Routing = []manifest.Route{{Event: "go", Reducer: "nobody", Key: `"x"`}}
	unknown.Reducers = map[string]manifest.Reducer{"bot": {Engine: manifest.EngineGo, Name: "bot", Version: "99", OnError: manifest.OnErrorHalt}}
	source := []byte("def reduce(ctx, state, event):\n    return nothing\n")
	broken.Reducers = map[string]manifest.Reducer{"bot": {
		Engine: manifest.EngineStarlark, File: "bot.star", Source: canon.Sum(source), OnError: manifest.OnErrorHalt,
	}}
	for _, m := range []*manifest.Manifest{&unknown, &broken} {
		m.Routing = m.Routing[:2]
		*m = m.WithDefaults()
	}
	for name, x := range map[string]struct {
		step func() error
		want error // nil: any
	}{
		"propose: of another base":      {propose(func(p *world.Proposal) { p.Base = faulty }), governance.ErrStale},
		"propose: no change":            {propose(func(p *world.Proposal) { p.Candidate = c.Manifest() }), governance.ErrNoChange},
		"propose: nobody":               {propose(func(p *world.Proposal) { p.Actor = "" }), world.ErrNoReason},
		"propose: signed for another":   {propose(func(p *world.Proposal) { p.Signature = &good }), governance.ErrSignature},
		"propose: too large":            {propose(func(p *world.Proposal) { p.Candidate = &huge }), world.ErrManifestSize},
		"propose: not valid":            {propose(func(p *world.Proposal) { p.Candidate = &invalid }), nil},
		"propose: of no such code":      {propose(func(p *world.Proposal) { p.Candidate = &unknown }), nil},
		"propose: contents are missing": {propose(func(p *world.Proposal) { p.Candidate = &broken }), journal.ErrNotFound},
		"propose: contents are others": {propose(func(p *world.Proposal) {
			p.Candidate = &broken
			p.Contents = contents(&broken, []byte("def reduce(ctx, state, event):\n    return 1\n"))
		}), nil},
		"propose: does not compile":      {propose(func(p *world.Proposal) { p.Candidate = &broken; p.Contents = contents(&broken, source) }), nil},
		"shadow: there is none":          {shadow(9, "bob"), governance.ErrNoProposal},
		"shadow: nobody":                 {shadow(2, ""), world.ErrNoReason},
		"shadow: closed":                 {shadow(3, "bob"), governance.ErrClosed},
		"approve: there is none":         {func() error { return c.approve(9, c.terms(1), good) }, governance.ErrNoProposal},
		"approve: nobody":                {func() error { return worldtest.ErrorOf(c.Approve(ctx, 1, c.terms(1), good, "", "")) }, world.ErrNoReason},
		"approve: closed":                {sign(3, 1), governance.ErrClosed},
		"approve: not shadowed":          {sign(2, 1), governance.ErrNotShadowed},
		"approve: not listed":            {sign(1, 9), governance.ErrNotListed},
		"approve: repeated":              {sign(1, 2), governance.ErrRepeated},
		"approve: own":                   {sign(1, author), governance.ErrOwnProposal},
		"approve: other world":           {sign(1, 1, func(t *manifest.Terms) { t.World = "other" }), governance.ErrOtherTerms},
		"approve: other base":            {sign(1, 1, func(t *manifest.Terms) { t.Base = faulty }), governance.ErrOtherTerms},
		"approve: other candidate":       {sign(1, 1, func(t *manifest.Terms) { t.Candidate = faulty }), governance.ErrOtherTerms},
		"approve: other report":          {sign(1, 1, func(t *manifest.Terms) { t.Report = faulty }), governance.ErrOtherTerms},
		"approve: another's signature":   {func() error { return c.approve(1, c.terms(1), signedAs(c.terms(1), 2, 1)) }, governance.ErrSignature},
		"approve: as the author signs":   {func() error { return c.approve(1, c.terms(1), authored(c.terms(1))) }, governance.ErrSignature},
		"reject: there is none":          {func() error { return worldtest.ErrorOf(c.Reject(ctx, 9, "bob", "no")) }, governance.ErrNoProposal},
		"reject: nobody":                 {func() error { return worldtest.ErrorOf(c.Reject(ctx, 2, "", "no")) }, world.ErrNoReason},
		"reject: without a reason":       {func() error { return worldtest.ErrorOf(c.Reject(ctx, 2, "bob", "")) }, world.ErrNoReason},
		"reject: closed":                 {func() error { return worldtest.ErrorOf(c.Reject(ctx, 3, "bob", "no")) }, governance.ErrClosed},
		"withdraw: there is none":        {func() error { return worldtest.ErrorOf(c.Withdraw(ctx, 9, "ada", "")) }, governance.ErrNoProposal},
		"withdraw: nobody":               {func() error { return worldtest.ErrorOf(c.Withdraw(ctx, 2, "", "")) }, world.ErrNoReason},
		"withdraw: closed":               {func() error { return worldtest.ErrorOf(c.Withdraw(ctx, 3, "ada", "")) }, governance.ErrClosed},
		"apply: there is none":           {func() error { return c.apply(9) }, governance.ErrNoProposal},
		"apply: closed":                  {func() error { return c.apply(3) }, governance.ErrClosed},
		"apply: not shadowed":            {func() error { return c.apply(2) }, governance.ErrNotShadowed},
		"apply: approvals missing":       {func() error { return c.apply(1) }, governance.ErrNotApproved},
		"would apply: approvals missing": {func() error { _, err := c.WouldApply(t.Context(), 1); return err }, governance.ErrNotApproved},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			c.requireRefused(x.step, x.want)
		})
	}
	c.t = t
	require.NoError(t, c.sign(1, 1))
	c.requireRefused(func() error { return worldtest.ErrorOf(c.Apply(ctx, 1, "")) }, world.ErrNoReason)
	require.NoError(t, c.apply(1))
	c.Run()
	c.RequireReplay()
	c.Crash()
	c.RequireReplay()
}

// contents gives the source of a manifest's bot.
func contents(m *manifest.Manifest, source []byte) map[manifest.Hash][]byte {
	return map[manifest.Hash][]byte{m.Reducers["bot"].Source: source}
}

// signedAs is what one signs, as the signature of another.
func signedAs(t manifest.Terms, who, as byte) manifest.Signature {
	s := manifest.Sign(worldtest.Key(who), t)
	s.Key = manifest.PublicKey(worldtest.Public(as))
	return s
}

// authored is a signature of approver 1 as an author makes one.
func authored(t manifest.Terms) manifest.Signature {
	t.Report = journal.Hash{}
	return manifest.Sign(worldtest.Key(1), t)
}

// TestOneCandidateIsProposedOnce at a time, by whichever door.
func TestOneCandidateIsProposedOnce(t *testing.T) {
	c := councilOf(t, 1, false)
	require.NoError(t, c.propose(c.version(2)))
	err := c.propose(c.version(2))
	require.ErrorIs(t, err, governance.ErrSame)
	var same *governance.SameError
	require.ErrorAs(t, err, &same)
	require.EqualValues(t, 1, same.N)
	require.NoError(t, c.propose(c.version(3)))
	require.NoError(t, worldtest.ErrorOf(c.Withdraw(t.Context(), 1, "ada", "not yet")))
	require.NoError(t, c.propose(c.version(2)), "the first is closed")
}
