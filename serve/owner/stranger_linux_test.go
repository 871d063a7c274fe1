package owner

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStrangerIsToldNothing has another user listen where the owner of a world would,
// once with a file that is that user's and once with one that is not.
func TestStrangerIsToldNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	const me, other = 0, 65534
	for name, of := range map[string]struct{ process, file int }{
		"both": {other, other}, "the process alone": {other, me}, "the file alone": {me, other},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			for _, at := range []string{filepath.Dir(dir), dir, filepath.Join(dir, ".world")} {
				require.NoError(t, os.Chmod(at, 0o777)) //nolint:gosec // so that the stranger can
			}
			s := listenAs(t, of.process, dir)
			defer s.remove()
			require.NoError(t, os.Chown(s.path, of.file, of.file))
			heard := make(chan int, 1)
			go func() {
				conn, err := s.Accept()
				if err != nil {
					heard <- 0
					return
				}
				n, _ := conn.Read(make([]byte, 1))
				heard <- n
			}()
			passphrase := "canary"
			_, answered, err := Ask(t.Context(), dir, []string{"status"}, Origin{Passphrase: &passphrase}, Streams{Stdin: strings.NewReader("")})
			require.ErrorIs(t, err, ErrStranger)
			require.True(t, answered, "nobody else is tried")
			s.remove()
			require.Zero(t, <-heard)
		})
	}
}

// listenAs is listen, by another user: that of this thread for the moment.
func listenAs(t *testing.T, uid int, dir string) *socket {
	t.Helper()
	become := func(uid int) {
		_, _, err := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0))
		require.Zero(t, err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	become(uid)
	s, err := listen(dir)
	become(0)
	require.NoError(t, err)
	return s
}
