package governance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
)

// TestLacksNameWhoseApprovalWouldCount goes through the rules about who approves.
func TestLacksNameWhoseApprovalWouldCount(t *testing.T) {
	alice, bob, carol := manifest.PublicKey{1}, manifest.PublicKey{2}, manifest.PublicKey{3}
	listed := []manifest.Approver{{Name: "alice", Key: alice}, {Name: "bob", Key: bob}}
	report, base := manifest.Hash{7}, manifest.Hash{8}
	by := func(keys ...manifest.PublicKey) (out []Approval) {
		for _, key := range keys {
			out = append(out, Approval{Report: report, Signature: manifest.Signature{Key: key}})
		}
		return out
	}
	stale := Approval{Report: manifest.Hash{6}, Signature: manifest.Signature{Key: bob}}
	for name, x := range map[string]struct {
		rules     manifest.Governance
		author    *manifest.PublicKey
		approvals []Approval
		want      string // empty: nothing
	}{
		"anybody":                        {want: "1 of 1 approvals, by whoever has a key"},
		"anybody did":                    {approvals: by(carol)},
		"a list":                         {rules: manifest.Governance{Approvers: listed}, want: "1 of 1 approvals, by alice, bob"},
		"for another report":             {rules: manifest.Governance{Approvers: listed}, approvals: []Approval{stale}, want: "1 of 1 approvals, by alice, bob"},
		"one of two":                     {rules: manifest.Governance{Approvals: 2, Approvers: listed}, approvals: by(bob), want: "1 of 2 approvals, by alice"},
		"four eyes, an approver":         {rules: manifest.Governance{FourEyes: true, Approvers: listed}, author: &alice, want: "1 of 1 approvals, by bob"},
		"four eyes, nobody knows whose":  {rules: manifest.Governance{FourEyes: true, Approvers: listed}, approvals: by(bob), want: "1 of 2 approvals, by alice"},
		"four eyes, and nobody is left":  {rules: manifest.Governance{FourEyes: true, Approvals: 2, Approvers: listed}, author: &alice, approvals: by(bob), want: "1 of 2 approvals, and no approver is left to give them: let another one propose it"},
		"four eyes, all that are needed": {rules: manifest.Governance{FourEyes: true, Approvers: listed}, author: &alice, approvals: by(bob)},
	} {
		p := &Proposal{N: 3, Base: base, Report: report, ReportAt: 5, Approvals: x.approvals}
		if x.author != nil {
			p.Signature = &manifest.Signature{Key: *x.author}
		}
		var want []Lack
		switch {
		case strings.HasSuffix(x.want, "propose it"):
			want = []Lack{{"", x.want}}
		case x.want != "":
			want = []Lack{{Approved, x.want}}
		}
		require.Equal(t, want, p.Lacks(InForce{Manifest: base, Since: 4, Governance: x.rules}), name)
	}
	p := &Proposal{N: 3, Base: base, Report: report, ReportAt: 5, Approvals: by(carol)}
	require.Equal(t, []Lack{{Shadowed, "a report of what it would have done"}},
		p.Lacks(InForce{Manifest: base, Since: 6}), "the manifest was applied after the report")
	require.Empty(t, p.Lacks(InForce{Manifest: manifest.Hash{9}, Since: 6}), "it is stale")
	p.Ended = 9
	require.Empty(t, p.Lacks(InForce{Manifest: base, Since: 6}), "it is closed")
}
