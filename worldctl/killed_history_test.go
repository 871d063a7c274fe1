package worldctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	faults "github.com/worldkernel/worldkernel/internal/fault"

	"github.com/stretchr/testify/require"
)

// redactedWord is in a payload that is not small.
const redactedWord = "fQ7zKp2LxV9mRt4WbN8sYc3"

// standpoint is where a world stands, as one sees it from outside.
type standpoint struct {
	facts

	Status    string
	Snapshots string
}

func standpointOf(t *testing.T, dir string) standpoint {
	t.Helper()
	return standpoint{
		facts:     verified(t, dir),
		Status:    string(worldctl(t, nil, "-w", dir, "status", "-o", "json")),
		Snapshots: string(worldctl(t, nil, "-w", dir, "snapshot", "list", "-o", "jsonl")),
	}
}

// aWorldWithHistory returns a world with three snapshots, side effects after the
// first, and a payload to redact.
func aWorldWithHistory(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bank")
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/worlds/bank")))
	worldctl(t, nil, "init", dir, "--id", "bank-1")
	for i, name := range []string{"first", "second", "third"} {
		event := map[string]any{"who": name, "kind": "bank.pay", "amount": 20 + i}
		if i == 0 {
			var pad strings.Builder
			for n := range 1500 {
				fmt.Fprint(&pad, n, " ")
			}
			event["pad"] = redactedWord + pad.String()
		}
		data, err := json.Marshal(event)
		require.NoError(t, err)
		worldctl(t, nil, "-w", dir, "send", "order.placed", string(data))
		worldctl(t, nil, "-w", dir, "run")
		worldctl(t, nil, "-w", dir, "snapshot", "create", name)
	}
	require.True(t, inFiles(t, filepath.Join(dir, ".world"), redactedWord))
	return dir
}

// again returns a copy of a world.
func again(t *testing.T, dir string) string {
	t.Helper()
	made := filepath.Join(t.TempDir(), "bank")
	require.NoError(t, os.CopyFS(made, os.DirFS(dir)))
	require.NoError(t, os.Chmod(filepath.Join(made, ".world", "keyring"), 0o600))
	return made
}

func inFiles(t *testing.T, dir, word string) (found bool) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, []byte(word))
		return err
	}))
	return found
}

// names returns what is in a directory.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// killable is a command about history, or about its rules.
type killable struct {
	name     string
	first    [][]string // commands that lead up to it
	args     []string
	changes  bool   // the journal
	another  bool   // the second one is another record
	repeated int    // exit code of the second one then
	to       string // what it makes beside the world
	check    func(t *testing.T, dir string)
}

func killables(t *testing.T) []killable {
	t.Helper()
	next := upgrade(t)
	key := filepath.Join(t.TempDir(), "alice")
	worldctl(t, nil, "keys", "new", "--approver", key)
	propose, approve := []string{"propose", next}, []string{"approve", "p1", "--key", key}
	readable := func(t *testing.T, dir string) { t.Helper(); verified(t, filepath.Join(dir, "..", "copy")) }
	return []killable{
		{name: "snapshot create", args: []string{"snapshot", "create", "fourth"}, changes: true, repeated: exitConflict},
		{name: "snapshot prune", args: []string{"snapshot", "prune", "second"}, changes: true, repeated: exitUsage},
		{name: "rollback", args: []string{"rollback", "first", "--ack", "--reason", "so"}, changes: true, another: true, repeated: exitOK},
		{
			name: "redact", args: []string{"redact", "#2", "--reason", "so"}, changes: true, repeated: exitFailed,
			check: func(t *testing.T, dir string) {
				t.Helper()
				require.False(t, inFiles(t, filepath.Join(dir, ".world"), redactedWord))
			},
		},
		{name: "fork", args: []string{"fork", "--id", "bank-2"}, to: "copy", check: readable},
		{name: "backup", args: []string{"backup"}, to: "copy", check: readable},
		{name: "archive", args: []string{"archive", "--before", "third"}, to: "old.wkarch"},
		{name: "gc", args: []string{"gc"}},
		{name: "propose", args: propose, changes: true, repeated: exitConflict},
		{name: "approve", first: [][]string{propose, {"shadow", "p1"}}, args: approve, changes: true, repeated: exitDenied},
		{name: "apply", first: [][]string{propose, {"shadow", "p1"}, approve}, args: []string{"apply", "p1"}, changes: true, repeated: exitConflict},
	}
}

// upgrade returns a manifest with another policy and code that takes over the
// states of cells.
func upgrade(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "upgrade")
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/worlds/bank")))
	for file, edit := range map[string]func(string) string{
		"world.yaml":  func(text string) string { return strings.Replace(text, "amount > 100'", "amount > 50'", 1) },
		"teller.star": func(text string) string { return text + "\ndef migrate(state):\n    return state + [\"upgraded\"]\n" },
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.NotEqual(t, string(text), edit(string(text)))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(edit(string(text))), 0o600))
	}
	return filepath.Join(dir, "world.yaml")
}

// before returns a world in which the command comes next, made of another.
func (k *killable) before(t *testing.T, dir string) string {
	t.Helper()
	if k.first == nil {
		return dir
	}
	dir = again(t, dir)
	for _, args := range k.first {
		code, _, said := outcome(t, append([]string{"-w", dir}, args...)...)
		require.LessOrEqual(t, code, exitFailed, said) // a shadow finds that states are others
	}
	return dir
}

func (k *killable) of(dir string) []string {
	args := append([]string{"-w", dir}, k.args...)
	if k.to != "" {
		args = append(args, filepath.Join(dir, "..", k.to))
	}
	return args
}

// A command about history that is killed has happened or not, and what it leaves
// is in nobody's way.
func TestKilledHistoryCommandHasHappenedOrNot(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	world := aWorldWithHistory(t)
	for _, k := range killables(t) {
		t.Run(k.name, func(t *testing.T) {
			origin := k.before(t, world)
			before := standpointOf(t, origin)
			undisturbed := again(t, origin)
			start := time.Now()
			worldctl(t, nil, k.of(undisturbed)...)
			usual := time.Since(start)
			after := standpointOf(t, undisturbed)
			require.Equal(t, k.changes, before != after)
			left := names(t, filepath.Join(undisturbed, ".world"))
			beside := names(t, filepath.Dir(undisturbed))
			for range 6 / faults.Stride(3) {
				dir := again(t, origin)
				killAfter(t, time.Duration(random.Int64N(int64(usual))), k.of(dir)...)
				found := standpointOf(t, dir)
				require.Contains(t, []standpoint{before, after}, found)
				k.finish(t, dir, k.changes && found == after)
				require.Equal(t, left, names(t, filepath.Join(dir, ".world")))
				require.Equal(t, beside, names(t, filepath.Dir(dir)))
				if k.another {
					require.Equal(t, after.StateRoot, verified(t, dir).StateRoot)
				} else {
					require.Equal(t, after.facts, verified(t, dir))
				}
			}
		})
	}
}

// TestKilledFilterHasDecidedAboutAllOrNone of 500 intents that await approval, each once.
func TestKilledFilterHasDecidedAboutAllOrNone(t *testing.T) {
	t.Parallel()
	const many = 500
	random := seeded(t)
	origin := filepath.Join(t.TempDir(), "bank")
	require.NoError(t, os.CopyFS(origin, os.DirFS("testdata/worlds/bank")))
	worldctl(t, nil, "init", origin)
	var events strings.Builder
	for i := range many {
		fmt.Fprintf(&events, `{"event": "order.placed", "data": {"who": "w%d", "kind": "bank.pay", "amount": 200}}`+"\n", i)
	}
	worldctl(t, strings.NewReader(events.String()), "-w", origin, "send", "-")
	worldctl(t, nil, "-w", origin, "run")
	of := func(dir string) []string {
		return []string{"-w", dir, "intent", "approve", "--kind", "bank.*", "--reason", "all of them", "--yes", "-q"}
	}
	undisturbed := again(t, origin)
	start := time.Now()
	worldctl(t, nil, of(undisturbed)...)
	usual := time.Since(start)
	var decided int
	for range 8 {
		dir := again(t, origin)
		killAfter(t, time.Duration(random.Int64N(int64(usual))), of(dir)...)
		said := bytes.Count(worldctl(t, nil, "-w", dir, "tail", "--kind", "intent.resolved", "-o", "jsonl"), []byte("\n"))
		require.Contains(t, []int{0, many}, said)
		decided += said
		if said == 0 {
			worldctl(t, nil, of(dir)...)
		}
		worldctl(t, nil, "-w", dir, "run")
		require.Equal(t, many, bytes.Count(worldctl(t, nil, "-w", dir, "intent", "list", "--state", "committed", "-o", "jsonl"), []byte("\n")))
		verified(t, dir)
	}
	t.Logf("%d of 8 were decided when they were killed", decided/many)
}

// finish repeats a command that was killed. It has happened if done says so, or if
// what it makes is there.
func (k *killable) finish(t *testing.T, dir string, done bool) {
	t.Helper()
	if k.to != "" {
		_, err := os.Stat(filepath.Join(dir, "..", k.to))
		done = err == nil
	}
	code, _, stderr := outcome(t, k.of(dir)...)
	switch {
	case k.name == "archive" && strings.Contains(stderr, "file already exists"):
		left := filepath.Join(dir, "..", k.to)
		if !done {
			left += ".new"
		}
		require.NoError(t, os.Remove(left)) // as the hint says
		worldctl(t, nil, k.of(dir)...)
	case k.name == "archive" && done:
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "no records are left there")
	case k.to != "" && done:
		require.Equal(t, exitConflict, code, "no world is written over")
	case done:
		require.Equal(t, k.repeated, code, stderr)
	default:
		require.Equal(t, exitOK, code, stderr)
	}
	if k.check != nil {
		k.check(t, dir)
	}
}

// killAfter starts worldctl, kills it with SIGKILL after a while, and reports whether
// that was before its end.
func killAfter(t *testing.T, while time.Duration, args ...string) bool {
	t.Helper()
	cmd := exec.Command("worldctl", args...)
	require.NoError(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		require.NoError(t, err)
		return false
	case <-time.After(while):
		_ = cmd.Process.Kill() // it may have ended just now
		return <-done != nil
	}
}
