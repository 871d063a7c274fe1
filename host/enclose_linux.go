package host

import (
	"os"
	"strconv"
	"sync"
	"syscall"
)

var enclosed = sync.OnceValue(enclose) //nolint:gochecknoglobals // what is open later Go has closed on exec

// Enclose has no program that is started from now on see this process: no descriptor is
// inherited, also none that whoever started this process left open, and programs of the same
// user can read neither its environment nor its memory, nor trace it. The kernel takes that of
// root, who may see everything; and it writes no core of this process any more.
func Enclose() error { return enclosed() }

func enclose() error {
	const setDumpable = 4 // PR_SET_DUMPABLE
	if _, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, setDumpable, 0, 0); failed != 0 {
		return os.NewSyscallError("prctl", failed)
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil { // there is no /proc, so nobody sees anything by it; what a shell leaves open are low numbers
		for n := range 1024 {
			syscall.CloseOnExec(max(n, 3))
		}
		return nil
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 2 {
			syscall.CloseOnExec(n) // those of Go are so already
		}
	}
	return nil
}
