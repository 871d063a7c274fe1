//go:build unix

package host

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a program the leader of a process group, so that all it starts
// can be ended with it.
func ownGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return nil
}

// signalGroup signals a program and all that is left in its group.
func signalGroup(pid int, signal syscall.Signal) error { return syscall.Kill(-pid, signal) }
