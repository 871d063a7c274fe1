//go:build unix

package mcp

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

func terminateGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
