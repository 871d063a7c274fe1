//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package experiment

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockAnswers has nobody else write a file of answers that has this name.
func lockAnswers(f *os.File) (unlock func() error, err error) {
	held, err := vfs.Default.Lock(f.Name() + ".lock")
	if err != nil {
		return nil, ErrAnswersUsed
	}
	return held.Close, nil
}

// answersWritten reports whether somebody has a file of answers of this name locked, and so may
// write it.
func answersWritten(f *os.File) (bool, error) {
	held, err := vfs.Default.Lock(f.Name() + ".lock")
	if err != nil {
		return true, nil //nolint:nilerr // it is
	}
	return false, held.Close()
}
