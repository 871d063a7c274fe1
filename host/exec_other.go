//go:build !unix

package host

import (
	"errors"
	"os/exec"
	"syscall"
)

// errNoGroups keeps programs from being run that could not be ended.
var errNoGroups = errors.New("programs are only run where there are process groups")

func ownGroup(*exec.Cmd) error { return errNoGroups }

func signalGroup(int, syscall.Signal) error { return errNoGroups }
