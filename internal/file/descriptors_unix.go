//go:build unix

package file

import (
	"math"
	"syscall"
)

// Descriptors returns how many files and connections the process may have open.
func Descriptors() int {
	var is syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &is); err != nil || is.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(is.Cur) //nolint:gosec // looked at above
}
