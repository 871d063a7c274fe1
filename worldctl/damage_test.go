package worldctl

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDamagedFilesOfTheStoreAreNamed flips a byte in every file of a store, and
// removes every file: that does no harm, or it is said in one line, with a hint;
// and where the world cannot be opened any more, verify still tells what is
// damaged.
func TestDamagedFilesOfTheStoreAreNamed(t *testing.T) {
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
