package store

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/internal/file"
)

// readPatience is how long who reads, or opens a store, waits for a file descriptor
// where the process has none left: that fails then, and no more.
const readPatience = 5 * time.Second

// descriptorFS waits where the process has no file descriptor left: Pebble takes it
// for a disk that fails, and a process whose disk fails ends. Who writes waits for as
// long as it takes; nothing is lost meanwhile, and nothing acknowledged.
type descriptorFS struct {
	vfs.FS

	opened *atomic.Bool // the store is
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
	return file.Patiently(d.patience(), func() (vfs.File, error) { return d.FS.Create(name, category) })
}

// OpenReadWrite implements vfs.FS.
func (d descriptorFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return file.Patiently(d.patience(), func() (vfs.File, error) { return d.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (d descriptorFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return file.Patiently(d.patience(), func() (vfs.File, error) { return d.FS.ReuseForWrite(oldname, newname, category) })
}

// OpenDir implements vfs.FS.
func (d descriptorFS) OpenDir(name string) (vfs.File, error) {
	return file.Patiently(d.patience(), func() (vfs.File, error) { return d.FS.OpenDir(name) })
}

// Open implements vfs.FS.
func (d descriptorFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return file.Patiently(readPatience, func() (vfs.File, error) { return d.FS.Open(name, opts...) })
}

// List implements vfs.FS.
func (d descriptorFS) List(dir string) ([]string, error) {
	return file.Patiently(d.patience(), func() ([]string, error) { return d.FS.List(dir) })
}
