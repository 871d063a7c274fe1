//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package store

import (
	"io"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// exclude locks f, or answers syscall.EAGAIN. flock(2) belongs to the open file,
// so it also excludes this process, and reading the file elsewhere does not
// release it as it would with fcntl(2). File systems without descriptors lock
// in their own way.
func exclude(files vfs.FS, f vfs.File, path string) (io.Closer, error) {
	if f.Fd() == vfs.InvalidFd {
		return files.Lock(path + ".held")
	}
	fd := int(f.Fd())
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, err
	}
	return closerFunc(func() error { return syscall.Flock(fd, syscall.LOCK_UN) }), nil
}
