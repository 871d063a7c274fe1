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
