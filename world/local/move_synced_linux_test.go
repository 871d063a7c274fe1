package local_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/logtest"
	"github.com/worldkernel/worldkernel/world/local"
)

// TestADirectoryIsDiscardedUnderAnotherName that is durable before anything in it goes: else a power cut could
// leave it in its place, without the mark that no world lives in it. What is asked of the system is read with strace.
func TestADirectoryIsDiscardedUnderAnotherName(t *testing.T) {
	if os.Getenv("TRACED") == "" {
		discardTraced(t)
		return
	}
	p, s := new(till), new(logtest.Server)
	dir, out := movingShop(t, p), filepath.Join(t.TempDir(), "out")
	rest := besides(t, dir)
	_, err := local.MoveInto(t.Context(), dir, p.options(), placeOf(s.Log, plainly))
	require.NoError(t, err)
	_, err = local.MoveOut(t.Context(), "shop", rest, out, p.options(), placeOf(s.Log, func(l movable) journal.Movable { return staying{l} }))
	require.ErrorIs(t, err, errStruck)
	require.DirExists(t, out)
	_, err = local.MoveOut(t.Context(), "shop", rest, out, p.options(), placeOf(s.Log, plainly))
	require.NoError(t, err)
}

// staying is a log from which no world moves away.
type staying struct{ movable }

func (staying) MoveAway(context.Context, string) error { return errStruck }

// What is asked of the system: a name that a directory gets, its sync, and what goes from a directory.
var (
	renames = regexp.MustCompile(`rename\w*\(.*"([^"]*/out)", .*"([^"]*/\.out\.[^"]*)"`)
	syncs   = regexp.MustCompile(`fsync\(\d+<([^>]*)>`)
	removes = regexp.MustCompile(`(?:unlink|unlinkat|rmdir)\((?:\w+(?:<([^>]*)>)?, )?"([^"]*)"`)
)

// discardTraced runs the test in a process of its own, and looks at what that does.
func discardTraced(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("no strace")
	}
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-y", "-s", "4096", "-o", log, "-e", "trace=rename,renameat,renameat2,fsync,unlink,unlinkat,rmdir",
		os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "TRACED=1")
	said, err := cmd.CombinedOutput()
	if strings.Contains(string(said), "ptrace") {
		t.Skipf("strace may not trace here: %s", said)
	}
	require.NoError(t, err, "%s", said)
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	away, synced, gone := "", false, 0
	for line := range strings.Lines(string(data)) {
		if m := renames.FindStringSubmatch(line); m != nil {
			away = m[2]
		}
		if m := syncs.FindStringSubmatch(line); m != nil && m[1] == filepath.Dir(away) {
			synced = true
		}
		if m := removes.FindStringSubmatch(line); m != nil && away != "" && strings.HasPrefix(filepath.Join(m[1], m[2])+"/", away+"/") {
			require.True(t, synced, "%s goes before its directory has its other name for good", m[2])
			gone++
		}
	}
	require.Greater(t, gone, 3, "what was discarded is gone")
}
