//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package file

import (
	"errors"
	"syscall"
)

// Lock locks an open file, or answers ErrLocked at once. It is flock(2), which belongs to the
// open file: it also excludes this process, whatever name the file has, and reading the file
// elsewhere does not release it as it would with fcntl(2). Closing the file does.
func Lock(fd uintptr) error { return flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) }

// Unlock releases the lock.
func Unlock(fd uintptr) error { return flock(fd, syscall.LOCK_UN) }

// Locked reports whether somebody has a file locked that is open here, too.
func Locked(fd uintptr) (bool, error) {
	switch err := flock(fd, syscall.LOCK_SH|syscall.LOCK_NB); {
	case errors.Is(err, ErrLocked):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, Unlock(fd)
}

func flock(fd uintptr, how int) error {
	var err error = syscall.EINTR
	for errors.Is(err, syscall.EINTR) { // a signal, on a file system that asks a server
		err = syscall.Flock(int(fd), how) //nolint:gosec // a descriptor
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
