package host

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	enclosedStep   = "WORLDKERNEL_TEST_ENCLOSED" // "open" or "enclosed": what the process does that the test starts
	enclosedCanary = "ENCLOSED-CANARY"
)

// TestProgramSeesNothingOfItsParent has a program look for what the process that started it has:
// its environment, its memory, and a descriptor that somebody left open for it. Both have one
// user, who is not root: root may see everything.
func TestProgramSeesNothingOfItsParent(t *testing.T) {
	if os.Getenv(enclosedStep) != "" {
		startAsker(t)
		return
	}
	dir, err := os.MkdirTemp("", "enclosed") //nolint:usetesting // others may not go to t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // another user is to go there
	self, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(self)
	require.NoError(t, err)
	copied := filepath.Join(dir, "test")
	require.NoError(t, os.WriteFile(copied, program, 0o755)) //nolint:gosec // likewise
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte(enclosedCanary), 0o600))

	asked := func(step string) string {
		left, err := os.Open(secret)
		require.NoError(t, err)
		defer left.Close() //nolint:errcheck // only read
		cmd := exec.Command(copied, "-test.run", "^TestProgramSeesNothingOfItsParent$", "-test.v")
		cmd.Dir, cmd.Env = dir, []string{enclosedStep + "=" + step, "CANARY=" + enclosedCanary}
		cmd.ExtraFiles = []*os.File{left} // is 3
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "asked")
		return string(out)
	}
	enclosed := asked("enclosed")
	require.NotContains(t, enclosed, enclosedCanary)
	require.NotContains(t, enclosed, "descriptor 3")
	require.NotContains(t, enclosed, "memory is read")
	open := asked("open") // the control: what there would be to see
	require.Contains(t, open, "environment "+enclosedCanary)
	require.Contains(t, open, "descriptor 3 "+enclosedCanary)
	require.Contains(t, open, "memory is read")
}

// startAsker starts the program that looks, as adapters do or without.
func startAsker(t *testing.T) {
	t.Helper()
	const asks = `
exec >&2
echo asked
tr '\0' '\n' </proc/$PPID/environ | sed -n 's/^CANARY=/environment /p'
dd if=/proc/$PPID/mem bs=1 count=1 skip=4198400 >/dev/null 2>&1 && echo memory is read
if [ -e /proc/self/fd/3 ]; then echo "descriptor 3 $(cat <&3)"; fi
`
	if os.Getenv(enclosedStep) == "enclosed" {
		config := shell(t, asks+"exit 1", nil)
		r, err := execIn(t, Setup{Dir: ".", Config: config}).Perform(t.Context(), liveCall(t, `null`, 0))
		require.NoError(t, err)
		text, err := r.Payload.MarshalJSON()
		require.NoError(t, err)
		t.Logf("%s", text)
		return
	}
	cmd := exec.Command("/bin/sh", "-c", asks)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // the last line may fail
	t.Logf("%s", out.Bytes())
}
