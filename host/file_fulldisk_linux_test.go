package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

func TestFileOnAFullDiskLeavesNothingBehindOrSaysThatItDid(t *testing.T) {
	dir := worldDir(t)
	mount := filepath.Join(dir, "out")
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(mount, syscall.MNT_DETACH)) })
	a := fileIn(t, dir, `{"root": "out"}`)
	require.NoError(t, os.WriteFile(filepath.Join(mount, "ballast"), make([]byte, 48<<10), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(mount, "x"), []byte("old"), 0o600))

	names := func() (names []string) {
		entries, err := os.ReadDir(mount)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	big := fmt.Sprintf(`{"op": %%q, "path": "x", "data": %q}`, strings.Repeat("n", 40<<10))
	r := performed(t, a, fmt.Sprintf(big, "write"))
	require.Equal(t, receipt.StatusError, r.Status)
	require.Equal(t, receipt.OutcomeRetryableFailure, r.Class)
	require.True(t, r.Unsent)
	require.Equal(t, []string{"ballast", "x"}, names(), "nothing is left behind")
	data, err := os.ReadFile(filepath.Join(mount, "x"))
	require.NoError(t, err)
	require.Equal(t, "old", string(data))

	_, err = a.Perform(t.Context(), liveCall(t, fmt.Sprintf(big, "append"), 0))
	var doubt *doubtError
	require.ErrorAs(t, err, &doubt, "a part is appended: nobody can tell")

	require.NoError(t, os.WriteFile(filepath.Join(mount, "y"), nil, 0o600))
	r = performed(t, a, `{"op": "append", "path": "y", "data": "n"}`)
	require.Equal(t, receipt.StatusError, r.Status, "nothing is appended, and that can be told")
	require.True(t, r.Unsent)
}
