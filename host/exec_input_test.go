//go:build unix

package host

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInputWithoutAFileInMemoryHasNoNameAndIsRead(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	f, err := unlinked([]byte("all of it"))
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // nothing was written but what is read here
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
	info, err := f.Stat()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "all of it", string(text))
}
