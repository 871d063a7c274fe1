//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package store

import (
	"errors"
	"io"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// exclude locks a file beside f, or answers syscall.EAGAIN.
func exclude(files vfs.FS, _ vfs.File, path string) (io.Closer, error) {
	held, err := files.Lock(path + ".held")
	if err != nil {
		return nil, errors.Join(syscall.EAGAIN, err)
	}
	return held, nil
}
