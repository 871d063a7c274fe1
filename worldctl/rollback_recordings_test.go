package worldctl

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/recording"
)

// airlineHalfWay returns a world of the recorded runs that has a snapshot half
// after 20 ticks, and that was run to its end.
func airlineHalfWay(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "airline")
	worldctl(t, nil, "import", "chat", recording.Shared(t, recording.Airline), "-w", dir)
	worldctl(t, nil, "-w", dir, "run", "--ticks", "20")
	worldctl(t, nil, "-w", dir, "snapshot", "create", "half")
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	return dir
}

// started counts the attempts that a world has permitted.
func started(t *testing.T, dir string) int {
	t.Helper()
	return bytes.Count(worldctl(t, nil, "-w", dir, "tail", "--kind", "invocation.started", "-o", "jsonl"), []byte("\n"))
}

func TestAirlineRolledBackAndRunAgainCallsNothingTwice(t *testing.T) {
	dir := airlineHalfWay(t)
	undisturbed := verified(t, dir)
	require.Equal(t, 361, started(t, dir))
	for range 2 {
		before := worldctl(t, nil, "-w", dir, "status", "-o", "json")
		err := exec.Command("worldctl", "-w", dir, "rollback", "half", "--reason", "again").Run()
		exit := new(exec.ExitError)
		require.ErrorAs(t, err, &exit)
		require.Equal(t, exitDenied, exit.ExitCode(), "nobody has acknowledged what was done")
		require.Equal(t, string(before), string(worldctl(t, nil, "-w", dir, "status", "-o", "json")))

		worldctl(t, nil, "-w", dir, "rollback", "half", "--reason", "again", "--ack")
		verified(t, dir)
		worldctl(t, nil, "-w", dir, "run", "--until-idle")
		require.Equal(t, 361, started(t, dir), "the recorded receipts answered")
		require.Equal(t, undisturbed.StateRoot, verified(t, dir).StateRoot)
		require.Equal(t, undisturbed.StateRoot, replayedFrom(t, dir, "half"), "the snapshot and the tail are the run")
	}
}

func TestAirlineCallThatOnlyLooksTheSameAwaitsApproval(t *testing.T) {
	dir := airlineHalfWay(t)
	type intent struct {
		Cell, Kind, State string
		Params            json.RawMessage
		Rules             []string
	}
	worldctl(t, nil, "-w", dir, "rollback", "half", "--reason", "what if they ask otherwise", "--ack")
	worldctl(t, strings.NewReader(`{"run": "2.1", "index": 99, "role": "user", "content": "Wait, one more thing.", "calls": []}`),
		"-w", dir, "send", "chat.message", "--to", "agent/2.1", "-")
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	asked := jsonLines[intent](t, worldctl(t, nil, "-w", dir, "intent", "list", "--state", "awaiting_approval", "-o", "jsonl"))
	require.NotEmpty(t, asked)
	for _, in := range asked {
		require.Equal(t, "agent/2.1", in.Cell, "the others took the same steps")
		require.Equal(t, []string{"possible_repeat"}, in.Rules)
	}
	require.Equal(t, 361, started(t, dir), "nothing was called")
	verified(t, dir)
}

func TestVilleFromASnapshotIsTheRun(t *testing.T) {
	dir := villeSent(t)
	worldctl(t, nil, "-w", dir, "run", "--ticks", "500")
	worldctl(t, nil, "-w", dir, "snapshot", "create", "half")
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	worldctl(t, nil, "-w", dir, "rollback", "half", "--reason", "once more", "--ack")
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	whole := verified(t, dir)
	require.Equal(t, whole.StateRoot, replayedFrom(t, dir, "half"), "a snapshot and its tail are the run")
}

// replayedFrom replays a world from a snapshot and returns the state that gives.
func replayedFrom(t *testing.T, dir, snapshot string) string {
	t.Helper()
	var from struct {
		OK        bool   `json:"ok"`
		StateRoot string `json:"state_root"`
	}
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "replay", "--from", snapshot, "-o", "json"), &from))
	require.True(t, from.OK)
	return from.StateRoot
}
