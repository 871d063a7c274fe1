//go:build !unix

package host

import (
	"errors"
	"os/exec"
	"syscall"
)

// errNoGroups keeps programs from being run that could not be ended.
var errNoGroups = errors.New("programs are only run where there are process groups")

// OwnGroup refuses to make a program the leader of a process group.
func OwnGroup(*exec.Cmd) error { return errNoGroups }

// SignalGroup signals nothing.
func SignalGroup(int, syscall.Signal) error { return errNoGroups }
