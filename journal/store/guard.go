package store

import (
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walSuffix ends the names of Pebble's logs.
const walSuffix = ".log"

// guardFS is what Pebble writes to. Pebble cannot go on where a log, a manifest or a
// directory cannot be written: it panics, in any goroutine. And what it cannot flush it
// tries again, where somebody waits, forever. So the store fails then, and acknowledges
// nothing more; Pebble is told that all went well, and from there on nothing of what it
// does reaches the disk, which is as if the process had ended in that moment.
//
// It also closes a gap: Pebble makes a file, then a marker that names it, and syncs
// their directory once; a file system might keep the marker alone.
type guardFS struct {
	vfs.FS

	s *Store
}

// Unwrap implements vfs.FS.
func (g *guardFS) Unwrap() vfs.FS { return g.FS }

// vital reports whether Pebble cannot do without a file that it writes.
func (g *guardFS) vital(name string) bool {
	base := g.PathBase(name)
	return strings.HasSuffix(base, walSuffix) || strings.HasPrefix(base, "MANIFEST-") || strings.HasPrefix(base, "marker.")
}

// Create implements vfs.FS.
func (g *guardFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(g.PathBase(name), "marker.") {
		if err := syncDir(g, g.PathDir(name)); err != nil {
			return nil, err
		}
	}
	return g.open(name, "", func() (vfs.File, error) { return g.FS.Create(name, category) })
}

// ReuseForWrite implements vfs.FS.
func (g *guardFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.open(newname, oldname, func() (vfs.File, error) { return g.FS.ReuseForWrite(oldname, newname, category) })
}

// OpenReadWrite implements vfs.FS.
func (g *guardFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.open(name, "", func() (vfs.File, error) { return g.FS.OpenReadWrite(name, category, opts...) })
}

// open opens a file that is to be written, which a log may have been before.
func (g *guardFS) open(name, was string, open func() (vfs.File, error)) (vfs.File, error) {
	if g.s.severed.Load() {
		return lost(name)
	}
	f, err := open()
	vital := g.vital(name)
	if err != nil && vital {
		g.s.broken(err)
		return lost(name)
	}
	if err != nil {
		return nil, err
	}
	guarded := &guardFile{File: f, s: g.s, vital: vital}
	if !strings.HasSuffix(name, walSuffix) {
		return guarded, nil
	}
	g.s.wals.change(name, was)
	return &walFile{guardFile: guarded, syncs: &g.s.logSyncs}, nil
}

// lost returns a file that is on no disk.
func lost(name string) (vfs.File, error) {
	return vfs.NewMem().Create(vfs.Default.PathBase(name), vfs.WriteCategoryUnspecified)
}

// Open implements vfs.FS. What Pebble takes to be there, and is lost, is no damage.
func (g *guardFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.Open(name, opts...)
	if errors.Is(err, fs.ErrNotExist) && g.s.severed.Load() {
		return nil, g.s.failed()
	}
	return f, err
}

// OpenDir implements vfs.FS.
func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	if g.s.severed.Load() {
		return lost(name)
	}
	f, err := g.FS.OpenDir(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		g.s.broken(err)
		return lost(name)
	}
	return &guardFile{File: f, s: g.s, vital: true}, nil
}

// Remove implements vfs.FS.
func (g *guardFS) Remove(name string) error {
	return g.unless(func() error {
		if strings.HasSuffix(name, walSuffix) {
			g.s.wals.change("", name)
		}
		return g.FS.Remove(name)
	})
}

// RemoveAll implements vfs.FS.
func (g *guardFS) RemoveAll(name string) error {
	return g.unless(func() error { return g.FS.RemoveAll(name) })
}

// Rename implements vfs.FS.
func (g *guardFS) Rename(oldname, newname string) error {
	return g.unless(func() error { return g.FS.Rename(oldname, newname) })
}

// Link implements vfs.FS.
func (g *guardFS) Link(oldname, newname string) error {
	return g.unless(func() error { return g.FS.Link(oldname, newname) })
}

// MkdirAll implements vfs.FS.
func (g *guardFS) MkdirAll(dir string, perm fs.FileMode) error {
	return g.unless(func() error { return g.FS.MkdirAll(dir, perm) })
}

func (g *guardFS) unless(do func() error) error {
	if g.s.severed.Load() {
		return nil
	}
	return do()
}

// guardFile is a file that Pebble writes, or a directory that it syncs.
type guardFile struct {
	vfs.File

	s     *Store
	vital bool
}

// guarded does something with the file, unless Pebble is kept from it.
func (f *guardFile) guarded(do func() error) error {
	if f.s.severed.Load() {
		return nil
	}
	err := do()
	if err != nil && f.vital {
		f.s.broken(err)
		return nil
	}
	return err
}

// Write implements vfs.File.
func (f *guardFile) Write(p []byte) (n int, err error) {
	err = f.guarded(func() error { n, err = f.File.Write(p); return err })
	if err == nil {
		n = len(p)
	}
	return n, err
}

// WriteAt implements vfs.File.
func (f *guardFile) WriteAt(p []byte, at int64) (n int, err error) {
	err = f.guarded(func() error { n, err = f.File.WriteAt(p, at); return err })
	if err == nil {
		n = len(p)
	}
	return n, err
}

// Preallocate implements vfs.File.
func (f *guardFile) Preallocate(at, length int64) error {
	return f.guarded(func() error { return f.File.Preallocate(at, length) })
}

// Sync implements vfs.File.
func (f *guardFile) Sync() error { return f.guarded(f.File.Sync) }

// SyncData implements vfs.File.
func (f *guardFile) SyncData() error { return f.guarded(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *guardFile) SyncTo(length int64) (full bool, err error) {
	err = f.guarded(func() error { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Close implements vfs.File.
func (f *guardFile) Close() error {
	err := f.File.Close() // in any case: the descriptor is to go
	return f.guarded(func() error { return err })
}

// walFile is a log of Pebble.
type walFile struct {
	*guardFile

	syncs        *atomic.Uint64 // counts
	size, filled int64          // bytes written, and zeros up to where
	since, last  int64          // bytes written since the last sync, and between the two before
}

// Preallocate implements vfs.File. It does nothing: Pebble would set aside a
// memtable's size for every log, for a world that may hold ten records. Write
// does it, step by step.
func (f *walFile) Preallocate(int64, int64) error { return nil }

// aheadBytes is how far a log is filled with zeros before they are overwritten.
// Syncing what has its place in the file already takes half the time, or less,
// of syncing what makes the file longer. Pebble ends reading at zeros. It is as
// much as the log has already, within bounds; and where much is written between
// two syncs, nothing: it would be written twice for little.
func (f *walFile) aheadBytes() int64 { return min(max(f.size, 4<<10), 128<<10) }

// aheadUpTo is how many bytes between two syncs are not much.
const aheadUpTo = 32 << 10

// Write implements vfs.File.
func (f *walFile) Write(p []byte) (int, error) {
	if end := f.size + int64(len(p)); end > f.filled && f.last <= aheadUpTo {
		from := max(f.filled, end)
		ahead := f.aheadBytes()
		if _, err := f.WriteAt(make([]byte, ahead), from); err != nil {
			return 0, err
		}
		f.filled = from + ahead
	}
	n, err := f.guardFile.Write(p)
	f.size += int64(n)
	f.since += int64(n)
	return n, err
}

// Sync implements vfs.File.
func (f *walFile) Sync() error {
	f.count()
	return f.guardFile.Sync()
}

// SyncData implements vfs.File.
func (f *walFile) SyncData() error {
	f.count()
	return f.guardFile.SyncData()
}

// count counts the syncs. Pebble writes and syncs a log from a single goroutine.
func (f *walFile) count() {
	f.syncs.Add(1)
	f.last, f.since = f.since, 0
}

// Stat implements vfs.File. Pebble asks a log that it is to write over for its size.
func (f *walFile) Stat() (info vfs.FileInfo, err error) {
	if err = f.guarded(func() error { info, err = f.File.Stat(); return err }); err != nil || info != nil {
		return info, err
	}
	gone, err := lost(f.s.dir)
	if err != nil {
		return nil, err
	}
	return gone.Stat()
}
