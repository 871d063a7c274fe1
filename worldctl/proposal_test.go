package worldctl

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestEveryRefusalOfAChangeSaysWhatToType holds every reason to refuse a step of a
// proposal to its exit code, and to a hint that names the proposal where one is meant.
func TestEveryRefusalOfAChangeSaysWhatToType(t *testing.T) {
	for _, x := range []struct {
		err   error
		code  int
		names bool // the proposal
	}{
		{governance.ErrNoProposal, exitUsage, false},
		{governance.ErrNoChange, exitUsage, false},
		{&local.AdaptersError{Faults: []manifest.Fault{{Path: "/effects/a/config"}}}, exitUsage, false},
		{&world.InputError{Err: world.ErrNoReason}, exitUsage, false},
		{governance.ErrTooMany, exitConflict, false},
		{governance.ErrClosed, exitConflict, true},
		{governance.ErrStale, exitConflict, true},
		{governance.ErrOldReport, exitConflict, true},
		{&world.InputError{Err: world.ErrUnderWay}, exitConflict, false},
		{&world.InputError{Err: world.ErrMigration}, exitConflict, false},
		{governance.ErrNotShadowed, exitDenied, true},
		{governance.ErrNotApproved, exitDenied, true},
		{governance.ErrNotListed, exitDenied, true},
		{governance.ErrRepeated, exitDenied, true},
		{governance.ErrOwnProposal, exitDenied, true},
		{governance.ErrSignature, exitDenied, true},
		{governance.ErrOtherTerms, exitDenied, true},
	} {
		code, hint := judge(&proposalError{7, fmt.Errorf("world: %w", x.err)})
		require.Equal(t, x.code, code, x.err)
		require.NotEmpty(t, hint, x.err)
		if x.names {
			require.Contains(t, hint, "worldctl ")
			require.Contains(t, hint, " p7", x.err)
		}
	}
}

// TestMissingNamesWhoseApprovalWouldCount goes through the rules about who approves.
func TestMissingNamesWhoseApprovalWouldCount(t *testing.T) {
	alice, bob, carol := manifest.PublicKey{1}, manifest.PublicKey{2}, manifest.PublicKey{3}
	listed := []manifest.Approver{{Name: "alice", Key: alice}, {Name: "bob", Key: bob}}
	report, base := manifest.Hash{7}, manifest.Hash{8}
	by := func(keys ...manifest.PublicKey) (out []governance.Approval) {
		for _, key := range keys {
			out = append(out, governance.Approval{Report: report, Signature: manifest.Signature{Key: key}})
		}
		return out
	}
	stale := governance.Approval{Report: manifest.Hash{6}, Signature: manifest.Signature{Key: bob}}
	for name, x := range map[string]struct {
		rules     manifest.Governance
		author    *manifest.PublicKey
		approvals []governance.Approval
		want      string // empty: nothing
	}{
		"anybody":                        {want: "1 of 1 approvals, by whoever has a key: worldctl approve p3 --key FILE"},
		"anybody did":                    {approvals: by(carol)},
		"a list":                         {rules: manifest.Governance{Approvers: listed}, want: "1 of 1 approvals, by alice, bob: worldctl approve p3 --key FILE"},
		"for another report":             {rules: manifest.Governance{Approvers: listed}, approvals: []governance.Approval{stale}, want: "1 of 1 approvals, by alice, bob: worldctl approve p3 --key FILE"},
		"one of two":                     {rules: manifest.Governance{Approvals: 2, Approvers: listed}, approvals: by(bob), want: "1 of 2 approvals, by alice: worldctl approve p3 --key FILE"},
		"four eyes, an approver":         {rules: manifest.Governance{FourEyes: true, Approvers: listed}, author: &alice, want: "1 of 1 approvals, by bob: worldctl approve p3 --key FILE"},
		"four eyes, nobody knows whose":  {rules: manifest.Governance{FourEyes: true, Approvers: listed}, approvals: by(bob), want: "1 of 2 approvals, by alice: worldctl approve p3 --key FILE"},
		"four eyes, and nobody is left":  {rules: manifest.Governance{FourEyes: true, Approvals: 2, Approvers: listed}, author: &alice, approvals: by(bob), want: "1 of 2 approvals, and no approver is left to give them: let another one propose it"},
		"four eyes, all that are needed": {rules: manifest.Governance{FourEyes: true, Approvers: listed}, author: &alice, approvals: by(bob)},
	} {
		p := &governance.Proposal{N: 3, Base: base, Report: report, ReportAt: 5, Approvals: x.approvals}
		if x.author != nil {
			p.Signature = &manifest.Signature{Key: *x.author}
		}
		want := []string{}
		if x.want != "" {
			want = append(want, x.want)
		}
		require.Equal(t, want, missing(p, governance.InForce{Manifest: base, Since: 4, Governance: x.rules}), name)
	}
	p := &governance.Proposal{N: 3, Base: base, Report: report, ReportAt: 5, Approvals: by(carol)}
	require.Equal(t, []string{"a report of what it would have done: worldctl shadow p3"},
		missing(p, governance.InForce{Manifest: base, Since: 6}), "the manifest was applied after the report")
	require.Empty(t, missing(p, governance.InForce{Manifest: manifest.Hash{9}, Since: 6}), "it is stale")
	p.Ended = 9
	require.Empty(t, missing(p, governance.InForce{Manifest: base, Since: 6}), "it is closed")
}
