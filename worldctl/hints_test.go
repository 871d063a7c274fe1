package worldctl

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/examples"
	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestWhatInitSaysToTypeWorks sends the event that init names.
func TestWhatInitSaysToTypeWorks(t *testing.T) {
	for _, name := range examples.Names() {
		dir := filepath.Join(t.TempDir(), name)
		code, _, said := inProcess(t.Context(), "init", dir, "--template", name)
		require.Equal(t, exitOK, code, said)
		if name == "go" { // sends nothing: TestGoProgramsOutsideOfTheModule does what it says
			require.Contains(t, said, "go run . init")
			continue
		}
		if name == gatewayTemplate { // an agent sends its events: TestAnAgentRunsBesideAWorld
			require.Contains(t, said, "agent run --")
			continue
		}
		line := regexp.MustCompile(`worldctl -w \S+ send (\S+) ('.*'|< .*)\n`).FindStringSubmatch(said)
		require.NotNil(t, line, said)
		if line[1] == "-" {
			require.FileExists(t, strings.TrimPrefix(line[2], "< "))
			continue
		}
		code, _, said = inProcess(t.Context(), "-w", dir, "send", line[1], strings.Trim(line[2], "'"))
		require.Equal(t, exitOK, code, said)
	}
}

// TestDemoNamesARecordWithCauses holds the Makefile's demo to a record that
// shows what why is good for.
func TestDemoNamesARecordWithCauses(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	record := regexp.MustCompile(`worldctl .* why (\d+)`).FindSubmatch(makefile)
	require.NotNil(t, record)
	dir := townSent(t)
	worldctl(t, nil, "-w", dir, "run")
	causes := string(worldctl(t, nil, "-w", dir, "why", string(record[1]), "-o", "jsonl"))
	require.Greater(t, strings.Count(causes, "\n"), 5, causes)
	require.Contains(t, strings.SplitN(causes, "\n", 2)[0], "invocation.finished")
}

// TestHintsLeaveTheCopyOfAParentAlone: who had it go on would perform what its world, which lies in a
// store, performs.
func TestHintsLeaveTheCopyOfAParentAlone(t *testing.T) {
	for _, unanswered := range []bool{false, true} {
		var miss error = &host.MissError{File: filepath.Join("fork", ".world", "past"), Recorded: true, Unanswered: unanswered}
		require.Contains(t, hintOf(miss), "make another fork when")
		if unanswered {
			continue
		}
		require.ErrorContains(t, new(cli).notRecorded(miss), "no answer")
		require.Contains(t, hintOf(new(cli).notRecorded(miss)), "make another fork when")
	}
}

// TestADiskThatGivesNoLocksHasANextStep: what NFS says where its lock service is away.
func TestADiskThatGivesNoLocksHasANextStep(t *testing.T) {
	require.Contains(t, hintOf(&os.PathError{Op: "open", Path: ".world", Err: syscall.ENOLCK}), "local disk")
}

// TestHintsWorkAsTheyStand names the world in the command that a hint tells a person
// to type, for every verb that takes one.
func TestHintsWorkAsTheyStand(t *testing.T) {
	c := &cli{world: "town"}
	for _, verb := range newRootCommand(&cli{}).Commands() {
		want := "worldctl -w town " + verb.Name() + " x"
		if worldless(verb.Name()) {
			want = "worldctl " + verb.Name() + " x"
		}
		require.Equal(t, want, c.inWorld("worldctl "+verb.Name()+" x"))
	}
	require.Equal(t, "type worldctl -w town backup --help", c.inWorld("type worldctl backup --help"))
	of := &cli{}
	of.urls = []string{"postgres:///w"}
	require.Equal(t, "worldctl --store postgres:///w move in DIR; WORLDCTL_STORE= worldctl restore bk -w DIR",
		of.inWorld("worldctl move in DIR; WORLDCTL_STORE= worldctl restore bk -w DIR"), "what is in a directory is in no store")
	c.world = "my 'town'"
	require.Equal(t, `worldctl -w 'my '\''town'\''' run`, c.inWorld("worldctl run"))
}

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
