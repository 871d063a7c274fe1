package store

import "github.com/cockroachdb/pebble/v2/vfs"

// unsyncedFS has files that nobody waits for: a crash may take all of them. See
// Options.Scratch.
type unsyncedFS struct{ vfs.FS }

// Unwrap implements vfs.FS.
func (u unsyncedFS) Unwrap() vfs.FS { return u.FS }

func unsynced(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

// Create implements vfs.FS.
func (u unsyncedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return unsynced(u.FS.Create(name, category))
}

// OpenReadWrite implements vfs.FS.
func (u unsyncedFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return unsynced(u.FS.OpenReadWrite(name, category, opts...))
}

// ReuseForWrite implements vfs.FS.
func (u unsyncedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return unsynced(u.FS.ReuseForWrite(oldname, newname, category))
}

// OpenDir implements vfs.FS.
func (u unsyncedFS) OpenDir(name string) (vfs.File, error) { return unsynced(u.FS.OpenDir(name)) }

type unsyncedFile struct{ vfs.File }

// Sync implements vfs.File.
func (unsyncedFile) Sync() error { return nil }

// SyncData implements vfs.File.
func (unsyncedFile) SyncData() error { return nil }

// SyncTo implements vfs.File.
func (unsyncedFile) SyncTo(int64) (fullSync bool, err error) { return false, nil }
