package store

import (
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// countingFS counts the syncs of files that are written.
type countingFS struct {
	vfs.FS

	syncs *atomic.Uint64
}

func (c countingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, category)
	return countingFile{f, c.syncs}, err
}

func (c countingFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.OpenReadWrite(name, category, opts...)
	return countingFile{f, c.syncs}, err
}

type countingFile struct {
	vfs.File

	syncs *atomic.Uint64
}

func (f countingFile) Sync() error {
	f.syncs.Add(1)
	return f.File.Sync()
}

func (f countingFile) SyncData() error {
	f.syncs.Add(1)
	return f.File.SyncData()
}

func (f countingFile) SyncTo(length int64) (bool, error) {
	f.syncs.Add(1)
	return f.File.SyncTo(length)
}

// A world that is thrown away waits for no disk, and is read as any other.
func TestScratchStoreWaitsForNoDisk(t *testing.T) {
	for _, scratch := range []bool{true, false} {
		var syncs atomic.Uint64
		opts := Options{FS: countingFS{vfs.NewMem(), &syncs}, Scratch: scratch}
		s, err := Create("w", opts)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		s, err = Open("w", opts)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.Equal(t, scratch, syncs.Load() == 0)
	}
}
