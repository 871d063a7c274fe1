package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// watched is a file system that has somebody look after each change of its names.
type watched struct {
	vfs.FS
	look func()
}

func (w watched) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.FS.Create(name, c)
	w.look()
	return f, err
}

func (w watched) Rename(from, to string) error {
	err := w.FS.Rename(from, to)
	w.look()
	return err
}

// TestTheMarkOfACopyIsNeverGone, or a process that is killed would leave what is taken for a world of its own.
func TestTheMarkOfACopyIsNeverGone(t *testing.T) {
	dir, looked := t.TempDir(), 0
	s := &Store{dir: dir}
	s.opts.FS, s.opts.disk = vfs.Default, vfs.Default
	require.NoError(t, s.setMark(markInUse))
	s.opts.disk = watched{vfs.Default, func() {
		looked++
		mark, there, err := s.readMark()
		require.NoError(t, err)
		require.True(t, there)
		require.Contains(t, []string{markInUse, markClean}, mark)
	}}
	require.NoError(t, s.setMark(markClean))
	require.Equal(t, 2, looked)
	mark, _, err := s.readMark()
	require.NoError(t, err)
	require.Equal(t, markClean, mark)
}
