package worldctl

import "syscall"

// dyingWithParent has an agent end when this process does, however that ends.
func dyingWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
