package worldctl

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
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

// TestMissingSaysWhatToType has the command follow that brings what is missing.
func TestMissingSaysWhatToType(t *testing.T) {
	require.Equal(t, []string{"a report: worldctl shadow p3", "approvals<U+001B>: worldctl approve p3 --key FILE", "nobody is left"},
		missing(&view.Proposal{ProposalLine: view.ProposalLine{Proposal: "p3"}, Lacks: []governance.Lack{
			{Step: governance.Shadowed, Text: "a report"}, {Step: governance.Approved, Text: "approvals\x1b"}, {Text: "nobody is left"},
		}}))
}
