//go:build race

package worldctl

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// processes lets the tests start a worldctl without the race detector: they start
// hundreds, and with it each takes several times as long. With it run the tests that
// say so (testrace), what they call inProcess, the sink, and the processes of tests that
// say raced. What performs effects beside the command line is raced by the tests of host.
func processes(m *testing.M) testscript.TestingM { return plain{m} }

// plain are the tests, with the worldctl without the race detector first in PATH.
type plain struct{ *testing.M }

func (p plain) Run() int {
	dir, err := os.MkdirTemp("", "worldctl-plain")
	if err == nil {
		defer os.RemoveAll(dir) //nolint:errcheck // in the temporary directory
		err = build(filepath.Join(dir, "worldctl"))
	}
	if err == nil {
		err = os.Setenv("PATH", pathFrom(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return p.M.Run()
}

// scripts are those that say raced.
func scripts(t *testing.T) (files []string) {
	t.Helper()
	for _, name := range racedScripts {
		files = append(files, filepath.Join(scriptDir, name+".txtar"))
	}
	return files
}

// build makes the program with the flags of make build, whose packages are in the
// cache then. GOFLAGS may ask for the race detector.
func build(program string) error {
	cmd := exec.Command("go", "build", "-race=false", "-trimpath", "-o", program, "../cmd/worldctl")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

func TestProcessesAreRacedWhereTheTestSaysSo(t *testing.T) {
	require.NotContains(t, flags(t), "-race")
	raced(t)
	require.Contains(t, flags(t), "-race")
}

// flags returns with what the worldctl that a test starts was built.
func flags(t *testing.T) map[string]string {
	t.Helper()
	program, err := exec.LookPath("worldctl")
	require.NoError(t, err)
	built, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	flags := make(map[string]string)
	for _, s := range built.Settings {
		flags[s.Key] = s.Value
	}
	return flags
}
