package governance

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/worldkernel/worldkernel/manifest"
)

// office drives proposals through steps in any order, beside plain notes of what
// has been signed and seen. It shares no code with what it checks: what counts is
// found out by verifying the signatures that were handed in.
type office struct {
	*fixture

	rules map[Hash]manifest.Governance // of every manifest
	notes []*note
}

// note is what is known of one proposal.
type note struct {
	base, candidate, report Hash
	reportAt                uint64
	author                  *manifest.PublicKey
	signed                  map[Hash][]manifest.PublicKey // by report: whose valid signatures came while it was good
	ended                   bool
}

// approvedBy returns whose signatures under the present report count.
func (o *office) approvedBy(x *note) map[manifest.PublicKey]bool {
	g := o.rules[o.f.Manifest]
	out := make(map[manifest.PublicKey]bool)
	for _, key := range x.signed[x.report] {
		own := g.FourEyes && x.author != nil && *x.author == key
		if (isListed(g, key) || len(g.Approvers) == 0) && !own {
			out[key] = true
		}
	}
	return out
}

// holds reports whether a signature is one under the present report.
func (o *office) holds(x *note, s manifest.Signature) bool {
	statement := fmt.Appendf(nil, "worldkernel approval v1\nworld %s\nbase %s\ncandidate %s\nreport %s\n",
		o.f.World, x.base, x.candidate, x.report)
	return ed25519.Verify(s.Key[:], statement, s.Bytes)
}

func isListed(g manifest.Governance, key manifest.PublicKey) bool {
	for _, a := range g.Approvers {
		if a.Key == key {
			return true
		}
	}
	return false
}

// good reports whether a proposal has a report about the world as it is governed.
func (o *office) good(x *note) bool {
	return !x.ended && x.base == o.f.Manifest && x.report != Hash{} && x.reportAt >= o.f.Since
}

// mayApply reports whether a proposal may be applied.
func (o *office) mayApply(x *note) bool {
	g := o.rules[o.f.Manifest]
	approved := o.approvedBy(x)
	eyes := len(approved)
	if x.author != nil && isListed(g, *x.author) {
		eyes++ // the author's own approval is not among them where this is asked for
	}
	return o.good(x) && len(approved) >= 1 && len(approved) >= int(g.Approvals) && (!g.FourEyes || eyes >= 2)
}

var candidates = []string{"A", "B", "C"}

func TestOnlyWhatEnoughHaveSignedIsApplied(t *testing.T) {
	governance := rapid.Custom(func(t *rapid.T) manifest.Governance {
		who := rapid.SampledFrom([][]byte{nil, {1}, {1, 2}, {1, 2, 3}}).Draw(t, "approvers")
		return governed(rapid.Uint64Range(0, uint64(max(1, len(who)))).Draw(t, "approvals"), rapid.Bool().Draw(t, "four eyes"), who...)
	})
	applied := 0
	rapid.Check(t, func(t *rapid.T) {
		o := &office{rules: make(map[Hash]manifest.Governance)}
		for _, c := range candidates {
			o.rules[hashOf(c)] = governance.Draw(t, "governance of "+c)
		}
		o.fixture = newFixture(t, o.rules[hashOf("A")])
		t.Repeat(map[string]func(*rapid.T){
			"propose": o.proposeAny, "shadow": o.shadowAny, "approve": o.approveAny, "apply": func(t *rapid.T) {
				if o.applyAny(t) {
					applied++
				}
			},
			"all approve": o.allApprove, "the whole way": func(t *rapid.T) {
				o.shadowAny(t)
				o.allApprove(t)
				if o.applyAny(t) {
					applied++
				}
			},
			"end": o.endAny, "reopen": o.reopen, "": o.check,
		})
	})
	require.Positive(t, applied, "it has to happen, or nothing is tested")
}

func (o *office) pick(t *rapid.T) (uint64, *note) {
	if len(o.notes) == 0 {
		t.Skip("there is none")
	}
	i := rapid.IntRange(max(0, len(o.notes)-2), len(o.notes)-1).Draw(t, "proposal")
	return uint64(i) + 1, o.notes[i]
}

func (o *office) proposeAny(t *rapid.T) {
	candidate := rapid.SampledFrom(candidates).Draw(t, "candidate")
	if hashOf(candidate) == o.f.Manifest {
		t.Skip("it is in force")
	}
	if len(o.notes) == MaxOpen {
		t.Skip("enough")
	}
	x := &note{base: o.f.Manifest, candidate: hashOf(candidate), signed: make(map[Hash][]manifest.PublicKey)}
	author := rapid.ByteRange(0, 4).Draw(t, "author")
	if author != 0 {
		key := publicOf(author)
		x.author = &key
		before := func(y *note) bool {
			return y.author != nil && *y.author == key && y.base == x.base && y.candidate == x.candidate
		}
		if slices.ContainsFunc(o.notes, before) {
			t.Skip("that has been signed")
		}
	}
	require.EqualValues(t, len(o.notes)+1, o.propose(candidate, author).N)
	o.notes = append(o.notes, x)
}

func (o *office) shadowAny(t *rapid.T) {
	n, x := o.pick(t)
	report := rapid.SampledFrom([]string{"r", "s"}).Draw(t, "report")
	if err := o.shadow(n, report); x.ended || x.base != o.f.Manifest {
		require.Error(t, err)
	} else {
		require.NoError(t, err)
		x.report, x.reportAt = hashOf(report), o.record
	}
}

// approveAny hands in a signature, most of the time a good one.
func (o *office) approveAny(t *rapid.T) {
	n, x := o.pick(t)
	terms := manifest.Terms{World: "w", Base: x.base, Candidate: x.candidate, Report: x.report}
	signed := terms
	switch rapid.IntRange(0, 15).Draw(t, "terms") {
	case 0:
		terms.World, signed.World = "x", "x"
	case 1:
		terms.Base, signed.Base = hashOf("C"), hashOf("C")
	case 2:
		terms.Candidate, signed.Candidate = hashOf("C"), hashOf("C")
	case 3:
		terms.Report, signed.Report = hashOf("s"), hashOf("s")
	case 4:
		signed.World = "x"
	case 5:
		signed.Report = Hash{}
	case 6:
		signed.Report = hashOf("s")
	}
	s := manifest.Sign(keyOf(rapid.ByteRange(1, 4).Draw(t, "who")), signed)
	if rapid.IntRange(0, 15).Draw(t, "damage") == 0 {
		s.Bytes[rapid.IntRange(0, len(s.Bytes)-1).Draw(t, "at")] ^= 1
	}
	o.handIn(t, n, terms, s)
}

// allApprove has everybody sign a proposal as it is.
func (o *office) allApprove(t *rapid.T) {
	n, x := o.pick(t)
	terms := manifest.Terms{World: "w", Base: x.base, Candidate: x.candidate, Report: x.report}
	for who := range byte(4) {
		o.handIn(t, n, terms, manifest.Sign(keyOf(who+1), terms))
	}
}

func (o *office) handIn(t *rapid.T, n uint64, terms manifest.Terms, s manifest.Signature) {
	x := o.notes[n-1]
	good, before := o.good(x), len(o.approvedBy(x))
	err := o.approve(n, terms, s)
	if good && terms == (manifest.Terms{World: "w", Base: x.base, Candidate: x.candidate, Report: x.report}) && o.holds(x, s) {
		x.signed[x.report] = append(x.signed[x.report], s.Key)
	}
	require.Equal(t, len(o.approvedBy(x)) > before, err == nil, "accepted exactly where it counts: %v", err)
}

func (o *office) applyAny(t *rapid.T) bool {
	n, x := o.pick(t)
	may := o.mayApply(x)
	err := o.apply(n)
	require.Equal(t, may, err == nil, "%v", err)
	if err != nil {
		return false
	}
	x.ended = true
	o.f.Governance = o.rules[o.f.Manifest]
	return true
}

func (o *office) endAny(t *rapid.T) {
	n, x := o.pick(t)
	o.record++
	err := o.ps.End(n, rapid.SampledFrom([]Stage{Rejected, Withdrawn}).Draw(t, "stage"), o.record, "bob", "")
	require.Equal(t, !x.ended, err == nil)
	x.ended = true
}

// reopen is what a crash does.
func (o *office) reopen(t *rapid.T) {
	var ps Proposals
	require.NoError(t, ps.UnmarshalCBOR(o.bytes()))
	o.ps = ps
}

func (o *office) check(t *rapid.T) {
	require.Len(t, o.ps.All(), len(o.notes))
	for i, x := range o.notes {
		p := o.ps.All()[i]
		require.Equal(t, x.ended, !p.Open())
		_, err := o.ps.Ready(p.N, o.f)
		require.Equal(t, o.mayApply(x), err == nil, "p%d: %v", p.N, err)
		if o.good(x) {
			require.Equal(t, err == nil, p.Stage == Approved, "p%d is %s: %v", p.N, p.Stage, err)
		}
	}
}
