package host

import (
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/worldkernel/worldkernel/receipt"
)

func TestInputIsReadFromItsBeginningAndCannotBeChanged(t *testing.T) {
	f, err := sealed([]byte("all of it"))
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // a file in memory
	_, err = f.WriteAt([]byte("n"), 0)
	require.ErrorIs(t, err, fs.ErrPermission)
	for _, size := range []int64{0, 1 << 10} {
		require.ErrorIs(t, f.Truncate(size), fs.ErrPermission)
	}
	again, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), os.O_RDWR, 0)
	if err == nil {
		_, err = again.Write([]byte("n"))
		require.NoError(t, again.Close())
	}
	require.ErrorIs(t, err, fs.ErrPermission, "nor by who opens it anew")
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "all of it", string(text))
}

// Whether a program ran, failed, did not start or was not to, the file that it
// read from is closed here.
func TestInputIsClosedWhenItsProgramHasEnded(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "orphan"), []byte("#!/no/such/interpreter\n"), 0o755))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for config, ctx := range map[string]context.Context{
		`{"program": "cat"}`: t.Context(), `{"program": "false"}`: t.Context(), `{"program": "./orphan"}`: t.Context(), `{"program": "true"}`: over,
	} {
		_, err := execIn(t, Setup{Dir: dir, Config: liveData(t, config)}).Perform(ctx, liveCall(t, `"params"`, 0))
		require.NoError(t, err)
		fds, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		for _, fd := range fds {
			name, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())) // what listed them is gone
			require.NotContains(t, name, "memfd:worldkernel-input", config)
		}
	}
}

// withoutMemory is the environment variable that makes this program one that
// gets no file in memory.
const withoutMemory = "WORLDKERNEL_TEST_WITHOUT_MEMORY"

// TestProcessWithoutFilesInMemory is no test but a process that has none.
func TestProcessWithoutFilesInMemory(t *testing.T) {
	if os.Getenv(withoutMemory) == "" {
		t.Skip("it is run by TestProgramWhoseInputCannotBeMadeIsNotStarted")
	}
	if err := refuseMemory(); err != nil {
		t.Skipf("no system call can be refused here: %v", err)
	}
	_, err := sealed([]byte("x"))
	require.ErrorIs(t, err, unix.ENOSYS)
	dir := t.TempDir()
	s := Setup{Dir: dir, Config: shell(t, `touch ran; cat`, nil)}
	params := `"` + strings.Repeat("x", 300<<10) + `"`
	r := performed(t, execIn(t, s), params)
	require.Equal(t, liveData(t, params), r.Payload, "there are files on disk")
	require.NoError(t, os.Remove(filepath.Join(dir, "ran")))

	t.Setenv("TMPDIR", filepath.Join(dir, "missing"))
	r = performed(t, execIn(t, s), params)
	require.Equal(t, receipt.StatusError, r.Status)
	require.True(t, r.Unsent)
	require.Equal(t, receipt.OutcomeRetryableFailure, r.Class, "it may pass")
	require.Equal(t, "busy", codeIn(t, r))
	require.NotContains(t, payloadOf(t, r), dir)
	v, err := newExecVerifier(s)
	require.NoError(t, err)
	found, err := v.Verify(t.Context(), liveCall(t, params, 0))
	require.NoError(t, err)
	require.Equal(t, receipt.Unknown, found.Verdict)
	require.NoFileExists(t, filepath.Join(dir, "ran"))
}

func TestProgramWhoseInputCannotBeMadeIsNotStarted(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.v", "-test.run", "^TestProcessWithoutFilesInMemory$")
	child.Env = append(os.Environ(), withoutMemory+"=1")
	said, err := child.CombinedOutput()
	require.NoError(t, err, "%s", said)
	if strings.Contains(string(said), "--- SKIP") {
		t.Skipf("%s", said)
	}
}

// refuseMemory has every later memfd_create in this process fail with ENOSYS.
func refuseMemory() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call is the first field
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_MEMFD_CREATE, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // which may do it, and does it for all threads
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := syscall.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno == 0 {
		return nil
	}
	return errno
}
