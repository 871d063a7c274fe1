//go:build unix

package worldctl

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A step of as many loops as its event says.
const (
	loopProgram = `
def reduce(ctx, state, event):
    for i in range(event.data):
        for j in range(100000):
            pass
`
	loopWorld = `
world: loops
reducers:
  loop: {engine: starlark, source: loop.star, limits: {gas: 10000000000}}
events:
  go:
routing:
  - {event: go, reducer: loop, key: '"a"'}
`
	endless = "1000000" // loops, more than anybody waits for
)

// TestASignalEndsWhatLivesAgain: the first one ends in order each verb that lives a past again, or has a world
// that is thrown away, amid a step that takes long; nothing is left of what was only needed for a while.
func TestASignalEndsWhatLivesAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made, other := filepath.Join(dir, "w"), filepath.Join(dir, "other")
	makeWorld(t, made, map[string]string{"world.yaml": loopWorld, "loop.star": loopProgram})
	makeWorld(t, other, map[string]string{
		"world.yaml": loopWorld, "loop.star": "def reduce(ctx, state, event):\n    for i in range(1000000):\n        for j in range(1000000):\n            pass\n",
		"given.yaml": "given: [{event: go}, {run: 1}]", "go.jsonl": `{"event": "go", "data": ` + endless + "}\n", "sweep.jsonl": `{"event": "go"}` + "\n",
		"sweep.yaml": "experiment: loops\nversion: 1\nworld: world.yaml\nseeds: 1\ninputs: sweep.jsonl\nstop: {ticks: 2}\nmeasures: {n: {cells: loop, count: true}}\nat: [end]\n",
	})
	worldctl(t, nil, "-w", made, "send", "go", "700")
	run := exec.Command("worldctl", "-w", made, "run")
	require.NoError(t, run.Run())
	past := run.ProcessState.UserTime()

	file := func(name string) string { return filepath.Join(other, name) }
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}
	for i, x := range []struct {
		args []string
		past bool // what takes long is as long as it was
		fine bool // it ends well
	}{
		{args: []string{"what-if", "--at", "t0", "--send", file("go.jsonl")}},
		{args: []string{"what-if", "--at", "t0", "--patch", file("world.yaml"), "--max-gas", "10000000000"}},
		{args: []string{"what-if", "--at", "t0", "--patch", file("world.yaml"), "--max-gas", "10000000000", "--keep", filepath.Join(dir, "kept")}},
		{args: []string{"dev", file("world.yaml"), "--max-gas", "10000000000"}, fine: true},
		{args: []string{"shadow", file("world.yaml"), "--max-gas", "10000000000"}},
		{args: []string{"test", file("given.yaml"), "-w", other}},
		{args: []string{"sweep", file("sweep.yaml"), "--out", filepath.Join(dir, "results")}},
		{args: []string{"verify"}, past: true},
		{args: []string{"replay"}, past: true},
	} {
		by := signals[i%len(signals)]
		t.Run(x.args[0]+" "+by.String(), func(t *testing.T) {
			if signal.Ignored(by) {
				t.Skip("nohup, or whoever started these tests, has them ignore it")
			}
			aside := t.TempDir()
			cmd := exec.Command("worldctl", append([]string{"-w", made}, x.args...)...)
			cmd.Env = append(os.Environ(), "TMPDIR="+aside)
			cmd.Stderr = t.Output()
			require.NoError(t, cmd.Start())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = cmd.Wait()
			}()
			for begun := false; !begun; {
				select {
				case <-ended:
					begun = true
				case <-time.After(10 * time.Millisecond):
					begun = usedCPU(t, cmd.Process.Pid) > time.Second/2
				}
			}
			_ = cmd.Process.Signal(by)
			<-ended
			if x.fine {
				require.Equal(t, exitOK, cmd.ProcessState.ExitCode())
			} else {
				require.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode(), "%v", cmd.ProcessState)
			}
			if x.past {
				require.Less(t, cmd.ProcessState.UserTime(), past*9/10)
			}
			left, err := os.ReadDir(aside)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
