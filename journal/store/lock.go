package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/internal/file"
)

// LockedError says that a world has an owner, in this or another process.
type LockedError struct {
	Owner string // "pid 42 on host since 2026-01-02T03:04:05Z"; empty in the moment of its start
}

func (e *LockedError) Error() string {
	if e.Owner == "" {
		return "locked by another owner"
	}
	return "locked by " + e.Owner
}

// Remove removes a world's directory, unless it has an owner (*LockedError).
func Remove(dir string) error {
	if err := file.CheckTree(dir, ""); err != nil {
		return fmt.Errorf("store: remove: %w", err)
	}
	lock, err := acquire(vfs.Default, filepath.Join(dir, lockName))
	if err != nil {
		return fmt.Errorf("store: remove %s: %w", dir, err)
	}
	return errors.Join(os.RemoveAll(dir), lock.Close())
}

// ownerLine is how long the text of a lock file is, so that a new owner's
// covers all of the one before.
const ownerLine = 128

// fileLock is held from acquire to Close. The file stays: removing it would let
// two processes lock two files of one name.
type fileLock struct {
	file vfs.File
	held io.Closer
}

// acquire takes the lock at once or not at all. Nothing is written before the
// lock is held.
func acquire(files vfs.FS, path string) (*fileLock, error) {
	f, err := files.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	held, err := exclude(files, f, path)
	if errors.Is(err, file.ErrLocked) {
		err = &LockedError{Owner: readOwner(f)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &fileLock{file: f, held: held}
	if _, err := f.WriteAt(fmt.Appendf(nil, "%-*.*s\n", ownerLine-1, ownerLine-1, thisOwner()), 0); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close lets the next owner in.
func (l *fileLock) Close() error { return errors.Join(l.held.Close(), l.file.Close()) }

func thisOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("pid %d on %s since %s", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
}

func readOwner(f vfs.File) string {
	line := make([]byte, ownerLine)
	n, _ := f.ReadAt(line, 0) // an unreadable name is an empty one
	return strings.TrimSpace(string(line[:n]))
}

// exclude locks f, or answers file.ErrLocked. Systems without flock(2), and files without a
// descriptor, which are in memory, lock a file beside it.
func exclude(files vfs.FS, f vfs.File, path string) (io.Closer, error) {
	fd := f.Fd()
	if fd != vfs.InvalidFd {
		switch err := file.Lock(fd); {
		case err == nil:
			return closerFunc(func() error { return file.Unlock(fd) }), nil
		case !errors.Is(err, errors.ErrUnsupported):
			return nil, err
		}
	}
	held, err := files.Lock(path + ".held")
	if err != nil && (fd != vfs.InvalidFd || errors.Is(err, syscall.EAGAIN)) {
		err = errors.Join(file.ErrLocked, err)
	}
	return held, err
}

// closerFunc is an io.Closer.
type closerFunc func() error

func (f closerFunc) Close() error { return f() }
