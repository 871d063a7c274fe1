package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// A symbolic link comes and goes where a directory and a file are, while calls
// run: it leads out of the root, or into the world's own directory, which
// is below the root.
func TestFileNeverLeavesItsRootInARace(t *testing.T) {
	for name, to := range map[string]string{"outside": "../outside", "world": ".world"} {
		t.Run(name, func(t *testing.T) {
			base, dir := trap(t)
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".world/f"), []byte("OUTSIDE-CANARY\n"), 0o600))
			protected := []string{filepath.Join(base, "outside"), filepath.Join(dir, ".world")}
			trees := func() []canon.Hash { return []canon.Hash{treeOf(t, protected[0]), treeOf(t, protected[1])} }
			before := trees()
			require.NoError(t, os.Rename(filepath.Join(dir, "out/a"), filepath.Join(dir, "a")))
			require.NoError(t, os.Symlink(to, filepath.Join(dir, "evil-dir")))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
			require.NoError(t, os.Symlink(to+"/f", filepath.Join(dir, "evil-file")))
			stop, stopped := make(chan struct{}), make(chan error, 1)
			go func() { stopped <- swap(dir, stop) }()
			a := fileIn(t, dir, `{"root": "."}`)
			worked := 0
			for i := range 6000 {
				all := []string{
					`{"op": "read", "path": "a/f"}`, `{"op": "write", "path": "a/f", "data": "changed"}`,
					`{"op": "append", "path": "a/f", "data": "changed"}`, `{"op": "list", "path": "a"}`,
					`{"op": "read", "path": "f"}`, `{"op": "append", "path": "f", "data": "changed"}`,
					`{"op": "write", "path": "a/new", "data": "changed"}`,
				}
				params := all[0] // after 1,000 calls of all kinds the one that is fast
				if i < 1000 {
					params = all[i%len(all)]
				}
				r := performed(t, a, params)
				if r.Status == receipt.StatusOK {
					worked++
				}
				require.NotContains(t, payloadOf(t, r), "CANARY")
				require.NotContains(t, payloadOf(t, r), "keyring")
				require.NotContains(t, payloadOf(t, r), base)
			}
			close(stop)
			require.NoError(t, <-stopped)
			require.NotZero(t, worked, "a race that is always lost proves nothing")
			require.Equal(t, before, trees())
		})
	}
}

// swap exchanges evil-dir with a, and evil-file with f, until stop is closed.
func swap(dir string, stop <-chan struct{}) error {
	for {
		for good, evil := range map[string]string{"a": "evil-dir", "f": "evil-file"} {
			err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, good), unix.AT_FDCWD, filepath.Join(dir, evil), unix.RENAME_EXCHANGE)
			if err != nil {
				return err
			}
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}
