//go:build unix

package host

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// performingIn is the environment variable that makes this program one that
// performs effects in a directory until it is killed.
const performingIn = "WORLDKERNEL_TEST_PERFORMING"

// programsAtOnce is how many programs the process that dies has started, or is
// about to start.
const programsAtOnce = 8

// keepsWhatItReads says on descriptor 3 that it has started, waits for the end
// of descriptor 4, and keeps what it reads. Both descriptors are inherited from
// the process that dies.
const keepsWhatItReads = `printf . >&3; read go <&4; cat >read.$$`

// killedParams are in one piece where a pipe carries them, or in several.
func killedParams() []string {
	return []string{`{"pay":"1 EUR"}`, `{"pay":"` + strings.Repeat("x", 300<<10) + `"}`}
}

// TestPerformingProcess is no test but the process that dies.
func TestPerformingProcess(t *testing.T) {
	dir := os.Getenv(performingIn)
	if dir == "" {
		t.Skip("it is run by TestProgramsGetAllOfTheirParamsOrAreNotStarted")
	}
	s := Setup{Dir: dir, Config: shell(t, keepsWhatItReads, nil)}
	v, err := newExecVerifier(s)
	require.NoError(t, err)
	a := execIn(t, s)
	require.NoError(t, Enclose())
	for _, left := range []uintptr{3, 4} { // or no program would inherit them
		_, err := unix.FcntlInt(left, unix.F_SETFD, 0)
		require.NoError(t, err)
	}
	var performing sync.WaitGroup
	for i := range programsAtOnce {
		call := liveCall(t, killedParams()[i%2], uint64(i))
		performing.Go(func() {
			if i%4 < 2 {
				_, _ = a.Perform(t.Context(), call)
			} else {
				_, _ = v.Verify(t.Context(), call)
			}
		})
	}
	performing.Wait()
}

// A process is killed when some of its programs have started; they read after
// that. What they read is all of their params, or what a verifier is asked.
func TestProgramsGetAllOfTheirParamsOrAreNotStarted(t *testing.T) {
	var want []receipt.Data
	for _, params := range killedParams() {
		want = append(want, liveData(t, params))
	}
	type reading struct {
		asked bool // of a verifier
		size  int
	}
	whole := map[reading]int{}
	for started := 1; started <= programsAtOnce; started++ {
		t.Run(fmt.Sprintf("killed after %d", started), func(t *testing.T) {
			dir := t.TempDir()
			all := killedAfter(t, dir, started)
			names, err := filepath.Glob(filepath.Join(dir, "read.*"))
			require.NoError(t, err)
			require.Len(t, names, all, "each program that has started has read to the end")
			for _, name := range names {
				text, err := os.ReadFile(name)
				require.NoError(t, err)
				read, err := canon.FromJSON(text)
				require.NoError(t, err, "a program acts on %d bytes of its params: %.40q", len(text), text)
				params, err := canon.Lookup(read, "intent", "params")
				if err != nil {
					params = read
				}
				require.Contains(t, want, params)
				whole[reading{err == nil, len(params)}]++
			}
		})
	}
	require.Len(t, whole, 2*len(want), "programs and verifiers of all params have read them")
}

// killedAfter kills a process that performs effects in dir once a number of its
// programs have started, lets them go on and end, and returns how many they
// were: others may have started meanwhile.
func killedAfter(t *testing.T, dir string, started int) int {
	t.Helper()
	starts, says, err := os.Pipe()
	require.NoError(t, err)
	defer starts.Close() //nolint:errcheck // read to its end
	waits, goes, err := os.Pipe()
	require.NoError(t, err)
	defer goes.Close() //nolint:errcheck // nothing is written
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run", "^TestPerformingProcess$")
	child.Env = append(os.Environ(), performingIn+"="+dir)
	child.ExtraFiles = []*os.File{says, waits}
	require.NoError(t, child.Start())
	require.NoError(t, says.Close())
	require.NoError(t, waits.Close())
	_, err = io.ReadFull(starts, make([]byte, started))
	require.NoError(t, err)
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.NoError(t, goes.Close())
	more, err := io.ReadAll(starts) // it ends when all that have inherited it have ended
	require.NoError(t, err)
	return started + len(more)
}
