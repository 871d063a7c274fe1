package worldctl

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The world of a scenario is gone with it: nothing goes on from there.
func TestInterruptedScenarioIsTypedAgain(t *testing.T) {
	dir := t.TempDir()
	code, _, said := inProcess(t.Context(), "init", filepath.Join(dir, "w"))
	require.Equal(t, exitOK, code, said)
	file := filepath.Join(dir, "x.yaml")
	require.NoError(t, os.WriteFile(file, []byte("given: [{run: 3}]"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, said = inProcess(ctx, "-w", filepath.Join(dir, "w"), "test", file)
	require.Equal(t, exitInterrupted, code, said)
	require.Contains(t, said, "hint: its world was thrown away: type it again")
}

// TestCtrlCLosesNothing interrupts a run that is at work, as a person at a
// terminal does.
func TestCtrlCLosesNothing(t *testing.T) {
	const events = 20_000 // each in a tick of its own: minutes, if nobody interrupts
	dir := filepath.Join(t.TempDir(), "w")
	worldctl(t, nil, "init", dir)
	var lines strings.Builder
	for at := range events {
		fmt.Fprintf(&lines, `{"event": "counter.added", "data": {"name": "tea", "by": 1}, "at": %d}`+"\n", at+1)
	}
	worldctl(t, strings.NewReader(lines.String()), "-w", dir, "send", "-")

	cmd := exec.Command("worldctl", "-w", dir, "run", "-v")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := bufio.NewScanner(stderr)
	require.True(t, said.Scan())
	require.Contains(t, said.Text(), "tick 1: ")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	last := ""
	for said.Scan() {
		last = said.Text()
	}
	require.Error(t, cmd.Wait())
	require.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode())
	require.Contains(t, last, "hint: what was done is durable")

	require.True(t, verified(t, dir).OK)
	code, out, _ := outcome(t, "-w", dir, "run", "--ticks", "3", "-o", "jsonl")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, `"ticks":3`)
	require.NotContains(t, out, `"events_pending":0`)
	require.True(t, verified(t, dir).OK)
}

// TestASecondCtrlCEndsALongStep, which the first one waits for: nothing of it has happened.
func TestASecondCtrlCEndsALongStep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "w")
	worldctl(t, nil, "init", dir)
	source := "def reduce(ctx, state, event):\n    for i in range(1000000):\n        for j in range(1000000):\n            pass\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "reducers", "counter.star"), []byte(source), 0o600))
	manifest, err := os.ReadFile(filepath.Join(dir, "world.yaml"))
	require.NoError(t, err)
	slow := strings.Replace(string(manifest), "counter.star}", "counter.star, limits: {gas: 10000000000}}", 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(slow), 0o600))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".world")))
	worldctl(t, nil, "init", dir)
	worldctl(t, nil, "-w", dir, "send", "counter.added", `{"name": "tea", "by": 1}`)

	for {
		cmd := exec.Command("worldctl", "-w", dir, "run")
		require.NoError(t, cmd.Start())
		interrupted(cmd)
		if cmd.ProcessState.ExitCode() == exitInterrupted { // the first one came before the step
			continue
		}
		require.Equal(t, syscall.SIGINT, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
		require.True(t, verified(t, dir).OK)
		return
	}
}

// interrupted presses Ctrl-C until a process has ended.
func interrupted(cmd *exec.Cmd) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	for {
		select {
		case <-ended:
			return
		case <-time.After(200 * time.Millisecond):
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}
}
