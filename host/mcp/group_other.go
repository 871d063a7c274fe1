//go:build !unix

package mcp

import (
	"errors"
	"os/exec"
)

// errNoGroups keeps servers from being run that could not be ended.
var errNoGroups = errors.New("servers are only run where there are process groups")

func ownGroup(*exec.Cmd) error { return errNoGroups }

func terminateGroup(int) {}

func killGroup(int) {}
