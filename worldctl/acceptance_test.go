package worldctl

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/recording"
	"github.com/worldkernel/worldkernel/journal/pglog/testlog"
)

// The tests in this file run worldctl as its own process on real recordings.

// townSent makes the town and sends it its events.
func townSent(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "town")
	worldctl(t, nil, "init", dir, "--template", "town")
	events, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	require.NoError(t, err)
	worldctl(t, bytes.NewReader(events), "-w", dir, "send", "-")
	return dir
}

// villeMoves returns the recorded moves, from where a test takes them.
func villeMoves(t *testing.T, from func(testing.TB, string) string) io.Reader {
	t.Helper()
	f, err := os.Open(from(t, recording.Ville))
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() }) // only read
	moves, err := gzip.NewReader(f)
	require.NoError(t, err)
	return moves
}

// villeSent makes the ville and sends it the recorded moves.
func villeSent(t *testing.T) (dir string) {
	t.Helper()
	moves := villeMoves(t, recording.Shared)
	dir = filepath.Join(t.TempDir(), "ville")
	worldctl(t, nil, "init", dir, "--template", "ville")
	worldctl(t, moves, "-w", dir, "send", "-")
	return dir
}

// worldctl runs the program and requires that it succeeds.
func worldctl(t *testing.T, stdin io.Reader, args ...string) []byte {
	t.Helper()
	return worldctlEnv(t, nil, stdin, args...)
}

func worldctlEnv(t *testing.T, env []string, stdin io.Reader, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("worldctl", args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = stdin
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "worldctl %s: %s", strings.Join(args, " "), &stderr)
	return out
}

// facts are what two runs of the same inputs must agree on.
type facts struct {
	OK            bool   `json:"ok"`
	ExecutionHash string `json:"execution_hash"`
	ChainRoot     string `json:"event_chain_root_hash"`
	StateRoot     string `json:"state_root"`
}

func verified(t *testing.T, dir string) facts {
	t.Helper()
	var f facts
	require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "verify", "-o", "json"), &f))
	require.True(t, f.OK)
	return f
}

func jsonLines[T any](t *testing.T, data []byte) []T {
	t.Helper()
	var out []T
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var v T
		err := dec.Decode(&v)
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		out = append(out, v)
	}
}

func TestAirlineRunsThroughTheWholeKernel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "airline")
	worldctl(t, nil, "import", "chat", recording.Shared(t, recording.Airline), "-w", dir)
	worldctl(t, nil, "-w", dir, "run", "--until-idle")

	require.Len(t, jsonLines[any](t, worldctl(t, nil, "-w", dir, "cell", "list", "-o", "jsonl")), 60)
	type intent struct {
		Key, Cell, Kind, State string
		Params                 json.RawMessage
	}
	intents := jsonLines[intent](t, worldctl(t, nil, "-w", dir, "intent", "list", "-o", "jsonl"))
	require.Len(t, intents, 361)
	keys, calls := map[string]bool{}, map[string]bool{}
	for _, in := range intents {
		require.Contains(t, []string{"committed", "failed"}, in.State, "none is open")
		keys[in.Key] = true
		calls[in.Cell+" "+in.Kind+" "+string(in.Params)] = true
	}
	require.Len(t, keys, 361)
	require.Len(t, calls, 361-11, "10 calls repeat an earlier one of their run to the letter, 1 with other spaces")
	type answer struct{ Status string }
	failed := 0
	receipts := jsonLines[answer](t, worldctl(t, nil, "-w", dir, "receipt", "list", "-o", "jsonl"))
	for _, r := range receipts {
		if r.Status == "error" {
			failed++
		}
	}
	require.Len(t, receipts, 361)
	require.Equal(t, 22, failed)

	whole := verified(t, dir)
	for range 3 {
		var r struct {
			OK        bool   `json:"ok"`
			StateRoot string `json:"state_root"`
		}
		require.NoError(t, json.Unmarshal(worldctl(t, nil, "-w", dir, "replay", "-o", "json"), &r))
		require.True(t, r.OK)
		require.Equal(t, whole.StateRoot, r.StateRoot)
	}
}

func TestAirlineKilledAnywhereIsTheSameWorld(t *testing.T) {
	file := recording.Shared(t, recording.Airline)
	undisturbed := filepath.Join(t.TempDir(), "undisturbed")
	worldctlEnv(t, madeInADirectory, nil, "import", "chat", file, "-w", undisturbed)
	random := seeded(t)
	dir := filepath.Join(t.TempDir(), "killed")
	killed := killAfter(t, time.Duration(5+random.IntN(150))*time.Millisecond, "import", "chat", file, "-w", dir)
	if _, err := os.Stat(dir); killed && os.IsNotExist(err) { // it may have died when all was done
		worldctl(t, nil, "import", "chat", file, "-w", dir)
	}
	sameThoughKilled(t, undisturbed, dir, func() time.Duration { return time.Duration(5+random.IntN(150)) * time.Millisecond })
}

// TestVilleOnPostgresKilledAnywhereIsTheWorldOfADirectory does with the moves what the test above does
// with conversations.
func TestVilleOnPostgresKilledAnywhereIsTheWorldOfADirectory(t *testing.T) {
	if !testlog.On() {
		t.Skip("for make test-postgres")
	}
	moves, err := io.ReadAll(villeMoves(t, recording.Shared))
	require.NoError(t, err)
	undisturbed, dir := filepath.Join(t.TempDir(), "undisturbed"), filepath.Join(t.TempDir(), "killed")
	worldctlEnv(t, madeInADirectory, nil, "init", undisturbed, "--template", "ville", "--id", "ville")
	worldctl(t, nil, "init", dir, "--template", "ville", "--id", "ville")
	for _, world := range []string{undisturbed, dir} {
		worldctl(t, bytes.NewReader(moves), "-w", world, "send", "-")
	}
	random := seeded(t)
	sameThoughKilled(t, undisturbed, dir, func() time.Duration { return time.Duration(100+random.IntN(900)) * time.Millisecond })
}

// madeInADirectory has the program make a world in a directory, wherever those of the tests lie.
var madeInADirectory = []string{testlog.Env + "="}

// sameThoughKilled runs a world that is killed ten times on the way, and one that is not: they come to the same.
func sameThoughKilled(t *testing.T, undisturbed, dir string, after func() time.Duration) {
	t.Helper()
	worldctl(t, nil, "-w", undisturbed, "run", "--until-idle")
	want := verified(t, undisturbed)
	kills := 0
	for range 10 {
		if killAfter(t, after(), "-w", dir, "run", "--until-idle") {
			kills++
		}
		verified(t, dir)
	}
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	got := verified(t, dir)
	require.Equal(t, want.ExecutionHash, got.ExecutionHash)
	require.Equal(t, want.StateRoot, got.StateRoot)
	require.Positive(t, kills, "no run was killed before its end")
	t.Logf("killed %d times", kills)
}

func TestVilleLosesNothing(t *testing.T) {
	t.Parallel()
	dir := villeSent(t)
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	submitted := 0
	for _, rec := range jsonLines[struct{ Kind string }](t, worldctl(t, nil, "-w", dir, "tail", "-o", "jsonl")) {
		if rec.Kind == "event.submitted" {
			submitted++
		}
	}
	require.Equal(t, 25_965, submitted)
	steps := 0
	for _, c := range jsonLines[struct {
		Cell    string
		N       int
		Mailbox int
	}](t, worldctl(t, nil, "-w", dir, "cell", "list", "-o", "jsonl")) {
		require.Zero(t, c.Mailbox)
		if strings.HasPrefix(c.Cell, "villager/") {
			steps += c.N
		}
	}
	require.GreaterOrEqual(t, steps, 25_965, "every move reached its villager")
	verified(t, dir)
}

func TestProcessorsAndCollectorDoNotShow(t *testing.T) {
	base := t.TempDir()
	origin := filepath.Join(base, "origin")
	worldctl(t, nil, "init", origin, "--template", "town", "--id", "town-1")
	events, err := os.ReadFile(filepath.Join(origin, "events.jsonl"))
	require.NoError(t, err)
	var all []facts
	for i, env := range [][]string{
		{"GOMAXPROCS=1", "GOGC=10"},
		{"GOMAXPROCS=1", "GOGC=400"},
		{"GOMAXPROCS=2", "GOGC=10"},
		{"GOMAXPROCS=2", "GOGC=400"},
	} {
		dir := filepath.Join(base, strconv.Itoa(i))
		require.NoError(t, os.CopyFS(dir, os.DirFS(origin)))
		require.NoError(t, os.Chmod(filepath.Join(dir, ".world", "keyring"), 0o600))
		worldctlEnv(t, env, bytes.NewReader(events), "-w", dir, "send", "-")
		worldctlEnv(t, env, nil, "-w", dir, "run", "--until-idle")
		all = append(all, verified(t, dir))
	}
	for _, f := range all[1:] {
		require.Equal(t, all[0], f, "with one keyring and id even the journals are equal")
	}
}

// The chain must be what anybody can compute from an export, in any language.
func TestChainIsRecomputedFromJSONLines(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not here")
	}
	doc, err := os.ReadFile("../docs/journal-format.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(doc), "```python\n")
	require.True(t, ok)
	script, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	require.Less(t, strings.Count(script, "\n"), 30)

	dir := townSent(t)
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	export := filepath.Join(dir, "export.jsonl")
	worldctl(t, nil, "-w", dir, "export", export, "--format", "jsonl")
	out, err := exec.Command(python, "-c", script, export).Output()
	require.NoError(t, err)
	require.Equal(t, verified(t, dir).ChainRoot, strings.TrimSpace(string(out)))
}

func TestEveryFlippedByteOfAnExportIsFound(t *testing.T) {
	base := t.TempDir()
	dir := townSent(t)
	worldctl(t, nil, "-w", dir, "run", "--until-idle")
	export := filepath.Join(base, "export.bundle")
	worldctl(t, nil, "-w", dir, "export", export)
	data, err := os.ReadFile(export)
	require.NoError(t, err)
	items := unpacked(t, data)
	random := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		bad := bytes.Clone(items)
		bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
		file := filepath.Join(base, "bad.bundle")
		require.NoError(t, os.WriteFile(file, packed(t, bad), 0o600))
		target := filepath.Join(base, "imported")
		out, err := exec.Command("worldctl", "-w", target, "import", "journal", file).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "error: ")
		require.NoDirExists(t, filepath.Join(target, ".world"))
	}
}

// TestDamagedFilesOfTheStoreAreNamed flips a byte in every file of a store, and
// removes every file: that does no harm, or it is said in one line, with a hint;
// and where the world cannot be opened any more, verify still tells what is
// damaged.
func TestDamagedFilesOfTheStoreAreNamed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "desk")
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/worlds/desk")))
	worldctl(t, nil, "init", dir)
	ticket := `{"event": "ticket.opened", "data": {"customer": "ada", "amount": 8}}` + "\n"
	worldctl(t, strings.NewReader(strings.Repeat(ticket, 100)), "-w", dir, "send", "-")
	worldctl(t, nil, "-w", dir, "run")
	files, err := filepath.Glob(filepath.Join(dir, ".world", "store", "*"))
	require.NoError(t, err)
	refused, reported := 0, 0
	for _, file := range files {
		was, err := os.ReadFile(file)
		require.NoError(t, err)
		for name, damage := range map[string]func() error{
			"flipped": func() error {
				if len(was) == 0 {
					return nil
				}
				bad := append([]byte(nil), was...)
				bad[len(bad)/2] ^= 1
				return os.WriteFile(file, bad, 0o600)
			},
			"removed": func() error { return os.Remove(file) },
		} {
			copied := filepath.Join(t.TempDir(), "copy")
			require.NoError(t, damage(), name)
			require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
			require.NoError(t, os.Chmod(filepath.Join(copied, ".world", "keyring"), 0o600))
			require.NoError(t, os.WriteFile(file, was, 0o600))
			code, _, said := outcome(t, "-w", copied, "status")
			if code == exitOK {
				continue
			}
			refused++
			requireDamageSaid(t, code, said)
			code, report, said := outcome(t, "-w", copied, "verify")
			requireDamageSaid(t, code, said)
			require.NotContains(t, report, "carrier")
			if strings.Contains(report, "NOT CONSISTENT") {
				reported++
			}
		}
	}
	require.Positive(t, refused)
	require.Positive(t, reported)
}

func requireDamageSaid(t *testing.T, code int, said string) {
	t.Helper()
	require.Equal(t, exitVerify, code, said)
	require.Equal(t, 1, strings.Count("\n"+said, "\nerror: "), said)
	require.NotContains(t, said, "carrier")
	require.NotContains(t, said, "goroutine")
	require.Contains(t, said, "hint: ")
}

// outcome runs the program as a process of its own.
func outcome(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return outcomeOf(t, nil, args...)
}

func outcomeOf(t *testing.T, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	cmd := exec.Command("worldctl", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &err
	var exit *exec.ExitError
	if failed := cmd.Run(); failed != nil {
		require.ErrorAs(t, failed, &exit)
	}
	return cmd.ProcessState.ExitCode(), out.String(), err.String()
}
