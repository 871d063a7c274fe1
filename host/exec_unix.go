//go:build unix

package host

import (
	"os/exec"
	"syscall"
)

// OwnGroup makes a program the leader of a process group, so that all it starts
// can be ended with it.
func OwnGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return nil
}

// SignalGroup signals a program and all that is left in its group.
func SignalGroup(pid int, signal syscall.Signal) error { return syscall.Kill(-pid, signal) }
