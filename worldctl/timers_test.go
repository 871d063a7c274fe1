package worldctl

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// The timers of a world whose clock is real: each of a hundred cells arms a hundred of
// them, to fire within three seconds, and counts what comes.
const (
	timersTick  = 250 * time.Millisecond
	timersWorld = `world: timers
clock: {mode: real, tick: 250ms}
reducers:
  waiter: {engine: starlark, source: waiter.star, limits: {timers: 100}}
events:
  arm:
routing:
  - {event: arm, reducer: waiter, key: event.data.key}
`
	waiter = `
def reduce(ctx, state, event):
    state = state or {"fired": {}}
    if event.name == "arm":
        for i in range(100):
            n = str(i)
            ctx.timer(1 + (i * 7 + event.data["of"]) % 12, "timer-" + n, {"n": n, "due": ctx.time + 1 + (i * 7 + event.data["of"]) % 12})
        return state
    n = event.data["n"]
    if ctx.time != event.data["due"]:
        fail("timer", n, "is due at", event.data["due"], "and came at", ctx.time)
    state["fired"][n] = state["fired"].get(n, 0) + 1
    return state
`
)

// TestTenThousandTimersOutliveFiveKills: each fires once, and none before its time. How
// late ticks came while the world was run is told, not required: that is up to what else
// the machine does. Idle, it is less than a tick.
func TestTenThousandTimersOutliveFiveKills(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "timers")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(timersWorld), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "waiter.star"), []byte(waiter), 0o600))
	worldctl(t, nil, "-w", dir, "init")
	var arm strings.Builder
	for of := range 100 {
		fmt.Fprintf(&arm, `{"event": "arm", "data": {"key": "%d", "of": %d}}`+"\n", of, of)
	}
	worldctl(t, strings.NewReader(arm.String()), "-w", dir, "send", "-")
	for range 5 {
		runKilled(t, dir, 300*time.Millisecond+time.Duration(rand.IntN(300))*time.Millisecond)
		notEarly(t, dir)
	}
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	verified(t, dir)

	lw, err := local.OpenReadOnly(dir, local.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, lw.Close()) }()
	lw.View(func(w *world.Moment) {
		require.Zero(t, w.Status().Halted)
		require.Zero(t, w.Status().Timers)
		for of := range 100 {
			cell, ok := w.Cell(reducer.Cell{Reducer: "waiter", Key: fmt.Sprint(of)})
			require.True(t, ok)
			var state struct{ Fired map[string]int }
			text, err := json.Marshal(cell.State)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &state))
			require.Len(t, state.Fired, 100)
			for n, times := range state.Fired {
				require.Equal(t, 1, times, "timer %s of cell %d", n, of)
			}
		}
	})
}

// runKilled runs the world for a while, and tells how late the latest tick was of those
// that fell due since the first it told of.
func runKilled(t *testing.T, dir string, while time.Duration) {
	t.Helper()
	cmd := exec.Command("worldctl", "-w", dir, "run", "-v")
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill := time.AfterFunc(while, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	var first time.Time
	var latest time.Duration
	for lines := bufio.NewScanner(said); lines.Scan(); {
		var tick manifest.Tick
		if _, err := fmt.Sscanf(lines.Text(), "tick %d:", &tick); err != nil {
			continue
		}
		now, due := time.Now(), time.Unix(0, manifest.Clock{Tick: int64(timersTick)}.At(tick))
		if first.IsZero() {
			first = now
		}
		if due.After(first) {
			latest = max(latest, now.Sub(due)-timersTick) // it is told when it is over
		}
	}
	_, _ = io.Copy(io.Discard, said)
	t.Logf("the latest tick was %v late", latest)
	require.Error(t, cmd.Wait(), "it is killed: a real world does not end by itself")
}

// notEarly requires that the world is not ahead of the wall clock.
func notEarly(t *testing.T, dir string) {
	t.Helper()
	lw, err := local.OpenReadOnly(dir, local.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, lw.Close()) }()
	lw.View(func(w *world.Moment) {
		require.False(t, time.Unix(0, w.Manifest().Clock.At(w.Time())).After(time.Now()), "the world is at tick %d", w.Time())
	})
}
