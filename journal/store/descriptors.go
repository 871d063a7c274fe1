package store

import (
	"errors"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// How long a store waits for a file descriptor where the process has none left. They
// come back as requests end.
const (
	descriptorWait = 20 * time.Millisecond // between two tries
	readPatience   = 5 * time.Second       // of who reads, or opens the store: that fails, and no more
)

// descriptorFS waits where the process has no file descriptor left: Pebble takes it
// for a disk that fails, and a process whose disk fails ends. Who writes waits for as
// long as it takes; nothing is lost meanwhile, and nothing acknowledged.
type descriptorFS struct {
	vfs.FS

	opened *atomic.Bool // the store is
}

// noDescriptor reports whether err is about descriptors, and not about a disk.
func noDescriptor(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// patience is that of who writes; 0: without end.
func (d descriptorFS) patience() time.Duration {
	if d.opened.Load() {
		return 0
	}
	return readPatience
}

// Unwrap implements vfs.FS.
func (d descriptorFS) Unwrap() vfs.FS { return d.FS }

// Create implements vfs.FS.
func (d descriptorFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return patiently(d.patience(), func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// OpenReadWrite implements vfs.FS.
func (d descriptorFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return patiently(d.patience(), func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (d descriptorFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return patiently(d.patience(), func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, category) })
}

// OpenDir implements vfs.FS.
func (d descriptorFS) OpenDir(name string) (vfs.File, error) {
	return patiently(d.patience(), func() (vfs.File, error) { return d.FS.OpenDir(name) })
}

// Open implements vfs.FS.
func (d descriptorFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return patiently(readPatience, func() (vfs.File, error) { return d.FS.Open(name, opts...) })
}

// List implements vfs.FS.
func (d descriptorFS) List(dir string) ([]string, error) {
	return patiently(d.patience(), func() ([]string, error) { return d.FS.List(dir) })
}

// patiently tries until there is a descriptor, or for so long; 0: without end.
func patiently[T any](limit time.Duration, try func() (T, error)) (T, error) {
	for began := time.Now(); ; time.Sleep(descriptorWait) { //nolint:forbidigo // nobody tells when a descriptor is free
		got, err := try()
		if !noDescriptor(err) || limit > 0 && time.Since(began) > limit {
			return got, err
		}
	}
}
