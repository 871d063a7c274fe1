package verify_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/source"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// council is a world whose rules change by proposals, and three approvers, 1 to 3.
type council struct {
	*worldtest.World
	t *testing.T
}

func councilOf(t *testing.T, approvals uint64, fourEyes bool) *council {
	t.Helper()
	loaded, err := source.Load("../worldtest/testdata/bots/world.yaml")
	require.NoError(t, err)
	m := *loaded.Manifest
	m.Governance = manifest.Governance{Approvals: approvals, FourEyes: fourEyes}
	for who := byte(1); who <= 3; who++ {
		key := manifest.PublicKey(worldtest.Public(who))
		m.Governance.Approvers = append(m.Governance.Approvers, manifest.Approver{Name: fmt.Sprint("person ", who), Key: key})
	}
	return &council{World: worldtest.New(t, m, loaded.Contents, worldtest.Options{}), t: t}
}

// propose proposes another version, which an approver signs (0: nobody), and has it
// shadowed.
func (c *council) propose(version uint64, author byte) uint64 {
	c.t.Helper()
	next := *c.Manifest()
	next.Version = version
	encoded, err := next.Encode()
	require.NoError(c.t, err)
	p := world.Proposal{Candidate: &next, Base: c.Status().Manifest, Actor: "ada", Reason: "better"}
	if author != 0 {
		s := manifest.Sign(worldtest.Key(author), manifest.Terms{World: c.Status().ID, Base: p.Base, Candidate: canon.Sum(encoded)})
		p.Signature = &s
	}
	_, n, err := c.Propose(c.t.Context(), p)
	require.NoError(c.t, err)
	c.shadow(n)
	return n
}

func (c *council) shadow(n uint64) {
	c.t.Helper()
	_, _, err := c.Shadow(c.t.Context(), n, world.ShadowConfig{}, "bob")
	require.NoError(c.t, err)
}

func (c *council) terms(n uint64) manifest.Terms {
	all, f := c.Proposals()
	return all[n-1].Terms(f.World)
}

func (c *council) sign(n uint64, who ...byte) {
	c.t.Helper()
	for _, who := range who {
		t := c.terms(n)
		require.NoError(c.t, worldtest.ErrorOf(c.Approve(c.t.Context(), n, t, manifest.Sign(worldtest.Key(who), t), "cleo", "it is good")))
	}
}

func (c *council) apply(n uint64) {
	c.t.Helper()
	require.NoError(c.t, worldtest.ErrorOf(c.Apply(c.t.Context(), n, "dan")))
}

// The records that a forger adds. They have what the kernel asks for, but for change.
func (c *council) approval(n uint64, who byte, change ...func(*manifest.Terms)) *journal.ManifestApproved {
	t := c.terms(n)
	for _, change := range change {
		change(&t)
	}
	return &journal.ManifestApproved{
		Version: journal.V(1), Proposal: n, World: t.World, Base: t.Base, Candidate: t.Candidate, Report: t.Report,
		Signature: manifest.Sign(worldtest.Key(who), t), Actor: "eve",
	}
}

func (c *council) application(n uint64, change ...func(*journal.Applied)) *journal.Applied {
	t := c.terms(n)
	b := &journal.Applied{Version: journal.V(1), Proposal: n, Manifest: t.Candidate, Base: t.Base, Actor: "eve", Kernel: world.KernelVersion}
	for _, change := range change {
		change(b)
	}
	return b
}

func reportOn(n uint64) *journal.ManifestShadowed {
	data := journal.Data(canon.Null)
	return &journal.ManifestShadowed{Version: journal.V(1), Proposal: n, Hash: canon.Sum(data), Report: data, Actor: "eve"}
}

// about has an approval be of the report that reportOn makes.
func about(t *manifest.Terms) { t.Report = reportOn(1).Hash }

// forgery is what was added to a journal, and which of it are faults by themselves.
type forgery struct {
	add    []journal.Body
	faults []int
	bad    uint64
}

func (c *council) requireNamed(x forgery) {
	c.t.Helper()
	good := run(c.t, c.Journal, verify.Config{}).Governance
	j := tamper(c.Journal)
	var ids []journal.Seq
	for _, b := range x.add {
		ids = append(ids, j.add(c.t, kindOf(c.t, b), marshal(c.t, b)))
		if _, applied := b.(*journal.Applied); applied {
			good.Applied++
		}
		if _, proposed := b.(*journal.ManifestProposed); proposed {
			good.Proposals++
		}
	}
	want := make([]string, len(x.faults))
	for i, f := range x.faults {
		want[i] = place(ids[f])
	}
	r := run(c.t, j.relink(c.t), verify.Config{})
	require.False(c.t, r.OK)
	require.False(c.t, r.Replay.OK, "the kernel does not take it either")
	var got []string
	for _, f := range r.Faults {
		if f.Message != r.Replay.Error {
			got = append(got, f.Place)
		}
	}
	require.Equal(c.t, want, got)
	good.Bad += x.bad
	require.Equal(c.t, good, r.Governance)
}

func flip(b *journal.ManifestApproved) *journal.ManifestApproved {
	b.Signature.Bytes[7] ^= 1
	return b
}

func TestForgedApprovalIsNamed(t *testing.T) {
	c := councilOf(t, 2, true)
	one := c.propose(2, 0)
	c.sign(one, 1, 2)
	c.apply(one)
	p, other := c.propose(3, 0), c.propose(4, 0)
	c.sign(p, 1)
	c.sign(other, 1, 2)
	apply := c.application(p)
	moved := c.approval(other, 2)
	moved.Proposal = p
	swapped := c.approval(p, 2)
	swapped.Signature = moved.Signature
	unreported := c.approval(p, 2, func(t *manifest.Terms) { t.Report = journal.Hash{} })
	bad := []int{0, 1}
	for name, x := range map[string]forgery{
		"none":                                      {[]journal.Body{apply}, []int{0}, 1},
		"a signature flipped":                       {[]journal.Body{flip(c.approval(p, 2)), apply}, bad, 1},
		"of another proposal":                       {[]journal.Body{moved, apply}, bad, 1},
		"signature of another proposal":             {[]journal.Body{swapped, apply}, bad, 1},
		"an author's signature":                     {[]journal.Body{unreported, apply}, bad, 1},
		"of another report":                         {[]journal.Body{c.approval(p, 2, func(t *manifest.Terms) { t.Report[0]++ }), apply}, bad, 1},
		"of another world":                          {[]journal.Body{c.approval(p, 2, func(t *manifest.Terms) { t.World = "other" }), apply}, bad, 1},
		"of another base":                           {[]journal.Body{c.approval(p, 2, func(t *manifest.Terms) { t.Base[0]++ }), apply}, bad, 1},
		"of another candidate":                      {[]journal.Body{c.approval(p, 2, func(t *manifest.Terms) { t.Candidate[0]++ }), apply}, bad, 1},
		"a second one by one key":                   {[]journal.Body{c.approval(p, 1), apply}, bad, 1},
		"by a key that is not listed":               {[]journal.Body{c.approval(p, 9), apply}, bad, 1},
		"of a closed proposal":                      {[]journal.Body{c.approval(one, 3)}, []int{0}, 0},
		"once of the report before":                 {[]journal.Body{reportOn(p), c.approval(p, 2, about), apply}, []int{2}, 1},
		"of the report before, and two of the last": {[]journal.Body{reportOn(p), c.approval(p, 2), c.approval(p, 1, about), c.approval(p, 3, about), apply}, []int{1}, 0},
	} {
		t.Run(name, func(t *testing.T) { (&council{c.World, t}).requireNamed(x) })
	}
}

func TestForgedApplyIsNamed(t *testing.T) {
	c := councilOf(t, 2, true)
	first := c.Status().Manifest
	stale, p := c.propose(2, 0), c.propose(3, 0)
	c.sign(stale, 1, 2)
	c.sign(p, 1, 2)
	wrong := reportOn(p)
	wrong.Report = canon.AppendText(nil, "other")
	back := manifest.Terms{World: c.Status().ID, Base: c.terms(p).Candidate, Candidate: first, Report: reportOn(3).Hash}
	approveBack := func(who byte) *journal.ManifestApproved {
		b := c.approval(p, who, func(t *manifest.Terms) { *t = back })
		b.Proposal = 3
		return b
	}
	for name, x := range map[string]forgery{
		"by no proposal":      {[]journal.Body{c.application(p, func(b *journal.Applied) { b.Proposal = 9 })}, []int{0}, 1},
		"by proposal 0":       {[]journal.Body{c.application(p, func(b *journal.Applied) { b.Proposal = 0 })}, []int{0}, 1},
		"of a closed one":     {[]journal.Body{&journal.ManifestRejected{Version: journal.V(1), Proposal: p, Actor: "eve"}, c.application(p)}, []int{1}, 1},
		"twice":               {[]journal.Body{c.application(p), c.application(p)}, []int{1}, 1},
		"of another manifest": {[]journal.Body{c.application(p, func(b *journal.Applied) { b.Manifest = c.terms(stale).Candidate })}, []int{0}, 1},
		"on another base":     {[]journal.Body{c.application(p, func(b *journal.Applied) { b.Base[0]++ })}, []int{0}, 1},
		"of a stale proposal": {[]journal.Body{c.application(p), c.application(stale)}, []int{1}, 1},
		"of a stale proposal on the base of now": {
			[]journal.Body{
				c.application(p), reportOn(stale), c.approval(stale, 1, about), c.approval(stale, 2, about),
				c.application(stale, func(b *journal.Applied) { b.Base = back.Base }),
			},
			[]int{4},
			1,
		},
		"without a report": {[]journal.Body{&journal.ManifestProposed{Version: journal.V(1), Base: first, Candidate: back.Base, Actor: "eve"}, c.application(p, func(b *journal.Applied) { b.Proposal = 3 })}, []int{1}, 1},
		"on a report that is not what its hash says": {
			[]journal.Body{wrong, c.approval(p, 1, about), c.approval(p, 2, about), c.application(p)},
			[]int{0, 3},
			1,
		},
		"on a report from before the last apply": {
			[]journal.Body{
				c.application(p),
				&journal.ManifestProposed{Version: journal.V(1), Base: back.Base, Candidate: first, Actor: "eve"},
				reportOn(3), approveBack(1), approveBack(2),
				&journal.Applied{Version: journal.V(1), Proposal: 3, Manifest: first, Base: back.Base, Actor: "eve"},
				c.approval(stale, 3), c.application(stale),
			},
			[]int{6, 7},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) { (&council{c.World, t}).requireNamed(x) })
	}
}

func TestFourEyesAreCounted(t *testing.T) {
	c := councilOf(t, 1, true)
	unsigned, signed := c.propose(2, 0), c.propose(3, 3)
	c.sign(unsigned, 1)
	all := worldtest.Bodies[*journal.ManifestProposed](t, c.Journal)
	again := *all[signed-1]
	forged := again
	forged.Signature = &manifest.Signature{Key: again.Signature.Key, Bytes: bytes.Repeat([]byte{7}, ed25519.SignatureSize)}
	third := func(b journal.Body) journal.Body {
		switch b := b.(type) {
		case *journal.ManifestApproved:
			b.Proposal = 3
		case *journal.Applied:
			b.Proposal = 3
		}
		return b
	}
	proposed := func(b *journal.ManifestProposed) []journal.Body {
		return []journal.Body{b, reportOn(3), third(c.approval(signed, 1, about)), third(c.application(signed))}
	}
	for name, x := range map[string]forgery{
		"one has signed":                   {[]journal.Body{c.application(unsigned)}, []int{0}, 1},
		"the author approves":              {[]journal.Body{c.approval(signed, 3), c.application(signed)}, []int{0, 1}, 1},
		"nobody but the author":            {[]journal.Body{c.application(signed)}, []int{0}, 1},
		"the author's signature is forged": {proposed(&forged), []int{0, 3}, 1},
		"the author's signature is old":    {proposed(&again), []int{0, 3}, 1},
	} {
		t.Run(name, func(t *testing.T) { (&council{c.World, t}).requireNamed(x) })
	}
	c.sign(signed, 1)
	c.apply(signed)
	r := withKeys(t, c.Journal)
	require.Empty(t, r.Faults, "the author is one of two")
	require.Equal(t, verify.Governance{Proposals: 2, Applied: 1}, r.Governance)
}

func TestEveryApprovedChangeIsProven(t *testing.T) {
	c := councilOf(t, 2, true)
	for version := uint64(2); version < 12; version++ {
		c.Submit("go", order("a", act{"effect": "tool.a", "param": version}))
		c.Run()
		n := c.propose(version, byte(version%4))
		left := c.propose(100+version, 0)
		c.sign(n, 1+byte(version%4)%3)
		c.shadow(n)
		for who := byte(1); who <= 3; who++ {
			if who != byte(version%4) {
				c.sign(n, who)
			}
		}
		c.Crash()
		c.apply(n)
		if version%2 == 0 {
			require.NoError(t, worldtest.ErrorOf(c.Withdraw(t.Context(), left, "ada", "no")))
		}
	}
	r := withKeys(t, c.Journal)
	require.Empty(t, r.Faults)
	require.Equal(t, verify.Governance{Proposals: 20, Applied: 10}, r.Governance)
}

func TestForkOwesItsOwnApprovals(t *testing.T) {
	c := councilOf(t, 1, true)
	p := c.propose(2, 3)
	c.sign(p, 1)
	report := c.terms(p)
	f := &council{World: c.Fork(journal.ForkLive, worldtest.Options{ID: "child"}), t: t}
	parents := f.approval(p, 1, func(t *manifest.Terms) { *t = report })
	f.requireNamed(forgery{[]journal.Body{f.application(p)}, []int{0}, 1})
	f.requireNamed(forgery{[]journal.Body{parents, f.application(p)}, []int{0, 1}, 1})
	f.shadow(p)
	f.requireNamed(forgery{[]journal.Body{parents}, []int{0}, 0})
	f.sign(p, 1)
	f.requireNamed(forgery{[]journal.Body{f.application(p)}, []int{0}, 1}) // its author has not signed here
	f.sign(p, 3)
	f.apply(p)
	r := run(t, f.Journal, verify.Config{Keys: worldtest.Keyring(t, "child")})
	require.Empty(t, r.Faults)
	require.Equal(t, verify.Governance{Proposals: 1, Applied: 1}, r.Governance)
}
