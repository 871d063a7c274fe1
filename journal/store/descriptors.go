package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/internal/file"
)

const (
	// readPatience is how long who reads, or opens or closes a store, waits for a file descriptor
	// where the process has none left: that fails then, and no more.
	readPatience = 5 * time.Second
	// writePatience is how long who writes waits: then the world ends, as where its disk fails.
	writePatience = time.Minute
)

// errWaited says that a descriptor was waited for.
var errWaited = errors.New("there was no file descriptor for it")

// descriptorFS waits where the process has no file descriptor left: Pebble takes it
// for a disk that fails, and a world whose disk fails ends. Nothing is lost meanwhile,
// and nothing acknowledged.
type descriptorFS struct {
	vfs.FS

	s *Store
}

// writing opens something that is written.
func writing[T any](d descriptorFS, name string, open func() (T, error)) (T, error) {
	for left := writePatience; ; left -= readPatience {
		got, err := file.Patiently(readPatience, open)
		if !file.NoDescriptor(err) || !d.s.opened.Load() {
			return got, err
		}
		if !d.waits(name, left) {
			return got, fmt.Errorf("%w: %w", errWaited, err)
		}
	}
}

// waits reports whether who writes waits on, and says what for.
func (d descriptorFS) waits(name string, left time.Duration) bool {
	if left == writePatience {
		d.s.opts.Logf("store: %s waits for a file descriptor, of which the process has none left, for %v at most: raise ulimit -n", name, writePatience)
	}
	return left > readPatience && !d.s.closing.Load()
}

// Unwrap implements vfs.FS.
func (d descriptorFS) Unwrap() vfs.FS { return d.FS }

// Create implements vfs.FS.
func (d descriptorFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return writing(d, name, func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// OpenReadWrite implements vfs.FS.
func (d descriptorFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return writing(d, name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (d descriptorFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return writing(d, newname, func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, category) })
}

// OpenDir implements vfs.FS.
func (d descriptorFS) OpenDir(name string) (vfs.File, error) {
	return writing(d, name, func() (vfs.File, error) { return d.FS.OpenDir(name) })
}

// Open implements vfs.FS.
func (d descriptorFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return file.Patiently(readPatience, func() (vfs.File, error) { return d.FS.Open(name, opts...) })
}

// List implements vfs.FS.
func (d descriptorFS) List(dir string) ([]string, error) {
	return file.Patiently(readPatience, func() ([]string, error) { return d.FS.List(dir) })
}
