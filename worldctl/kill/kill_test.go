// Package kill kills worldctl with SIGKILL, at random moments of random commands: see
// docs/testing.md.
package kill

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/fault"
)

// fewKills are done where nobody asks for more, and each world is killed so often. Among
// manyKills each fault has struck.
const (
	fewKills  = 50
	manyKills = 2000
	perLife   = 25
)

// TestNothingIsLostOrDoneTwiceWhereverItIsKilled makes worlds, sends them orders, runs
// them beside a bank that counts, and does to them whatever worldctl can do, and kills
// every other command at a random moment. What was acknowledged or seen once is there
// when the world is opened again; the bank has done nothing twice and nothing without a
// permit; journal, copies and exports verify; and in the end everything has ended.
//
// Life n of SEED=s is the first of SEED=s+n. A seed does not show again what it has
// shown: how far a command came when it was killed is up to the machine, and what is done
// next depends on it. A failure tells the story of its life. KILLS says how many kills
// there are to be, and WORLDCTL names the program; without it, it is built.
func TestNothingIsLostOrDoneTwiceWhereverItIsKilled(t *testing.T) {
	r := &run{program: program(t), struck: fault.NewStruck(fault.Kills), verbs: make(map[string]int), usual: make(map[string]time.Duration)}
	first, kills := uint64(environ(t, "SEED", 1)), environ(t, "KILLS", fewKills)
	defer func() {
		t.Logf("SEED=%d: %d kills in %d commands: %v\n%s", first, r.kills, r.commands, r.verbs, r.struck)
	}()
	for seed := first; r.kills < kills; seed++ {
		t.Run(fmt.Sprintf("SEED=%d", seed), func(t *testing.T) {
			newLife(t, seed, r).live(min(perLife, kills-r.kills))
		})
		if t.Failed() {
			return
		}
	}
	if kills >= manyKills {
		require.Empty(t, r.struck.Never())
	}
}

// program returns the path of worldctl.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("WORLDCTL"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "worldctl")
	// The flags are those of make build, whose packages are in the cache.
	out, err := exec.Command("go", "build", "-race=false", "-trimpath", "-o", path, "../../cmd/worldctl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// environ returns a number of the environment.
func environ(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err) // a cell has made it of a number
	}
	return n
}

// run is all lives of a test.
type run struct {
	program  string
	kills    int
	commands int
	usual    map[string]time.Duration // how long a command takes that nobody kills

	struck *fault.Struck
	verbs  map[string]int // how often each was killed
}

// killed notes that a command was killed.
func (r *run) killed(verb string) {
	r.kills++
	r.commands++
	r.verbs[verb]++
	r.struck.Count("process killed by SIGKILL")
	amid := map[string][]string{
		"killed amid a rollback":            {"rollback"},
		"killed amid a change of the rules": {"propose", "shadow", "approve", "apply"},
		"killed amid a snapshot":            {"snapshot create", "snapshot prune"},
		"killed amid a copy":                {"fork", "backup", "restore", "export", "import journal"},
		"killed amid gc or archive":         {"gc", "archive"},
		"killed amid a redaction":           {"redact"},
		"killed amid a rotation of keys":    {"keys rotate"},
		"owner killed beside others":        {"run beside others", "serve beside others"},
	}
	for name, verbs := range amid {
		if slices.Contains(verbs, verb) {
			r.struck.Count(name)
		}
	}
}

func (r *run) ended(verb string, took time.Duration) {
	r.commands++
	if r.usual[verb] == 0 {
		r.usual[verb] = took
	}
	r.usual[verb] = (3*r.usual[verb] + took) / 4
}

// moment draws how long after its beginning a command is killed.
func (r *run) moment(rng *rand.Rand, verb string) time.Duration {
	usual := r.usual[verb]
	if usual == 0 {
		usual = 100 * time.Millisecond
	}
	return time.Duration(rng.Int64N(int64(usual) * 5 / 4))
}

// names returns what is in a directory.
func names(dir string) (all []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, err
}

// exit runs a command that nobody kills, and returns its exit code.
func (k *life) exit(args ...string) int {
	k.t.Helper()
	cmd := k.command(args...)
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		require.NoError(k.t, err, "%s", out)
	}
	code := cmd.ProcessState.ExitCode()
	k.tell(args, "exit %d", code)
	return code
}
