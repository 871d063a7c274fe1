//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package experiment

import (
	"errors"
	"os"
	"syscall"
)

// lockAnswers has nobody else write a file of answers until it is closed: no other process,
// nor another experiment of this one, whatever name they have for the file. Who only reads
// it needs no lock.
func lockAnswers(f *os.File) (unlock func() error, err error) {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil { //nolint:gosec // a descriptor
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrAnswersUsed
		}
		return nil, err
	}
	return func() error { return nil }, nil
}

// answersWritten reports whether somebody has a file of answers locked, and so may write it.
func answersWritten(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) //nolint:gosec // a descriptor
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) //nolint:gosec // a descriptor
	}
	return false, err
}
