//go:build unix

package api

import (
	"math"
	"syscall"
)

// descriptors returns how many files and connections the process may have open.
func descriptors() int {
	var is syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &is); err != nil || is.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(is.Cur) //nolint:gosec // looked at above
}
