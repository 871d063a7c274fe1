//go:build !linux

package worldctl

import "syscall"

// dyingWithParent has an agent end when this process does, where the system knows how.
func dyingWithParent() *syscall.SysProcAttr { return nil }
