//go:build unix

package host

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/receipt"
)

// trap is a world in a directory full of ways out of it.
func trap(t *testing.T) (base, dir string) {
	t.Helper()
	base = t.TempDir()
	return base, trapIn(t, base)
}

// trapIn makes it in a directory that is empty, and returns the world's.
func trapIn(t *testing.T, base string) (dir string) {
	t.Helper()
	dir = filepath.Join(base, "w")
	for _, d := range []string{"outside/d", "w/.world/store", "w/out/a/b", "w/.worker/worlds", "other/.world"} {
		require.NoError(t, os.MkdirAll(filepath.Join(base, d), 0o755))
	}
	for _, f := range []string{"outside/f", "outside/d/f", "w/f", "w/.world/keyring", "w/.world/store/f", "w/.worker/name", "other/.world/keyring"} {
		require.NoError(t, os.WriteFile(filepath.Join(base, f), []byte("OUTSIDE-CANARY\n"), 0o644))
	}
	for _, f := range []string{"w/out/f", "w/out/a/f"} {
		require.NoError(t, os.WriteFile(filepath.Join(base, f), []byte("inside\n"), 0o644))
	}
	for name, to := range map[string]string{
		"out/link-file": "../../outside/f", "out/link-abs": filepath.Join(base, "outside/f"), "out/link-near": "../f",
		"out/link-dir": "../../outside/d", "out/link-dir-abs": filepath.Join(base, "outside/d"), "out/link-up": "..",
		"out/a/link-deep": "../../../outside", "out/chain": "chain2", "out/chain2": "link-file", "out/chain-dir": "a/link-deep",
		"out/dangling": "../../outside/new", "out/dangling-near": "new", "out/loop": "loop", "out/loop-a": "loop-b", "out/loop-b": "loop-a",
		"out/link-root": "/", "out/link-proc": "/proc/self/root", "out/link-fd": "/proc/self/fd/0", "out/link-dot": ".",
		"out/link-in": "a/f", "out/link-in-dir": "a", "out/link-world": "../.world", "out/link-null": "/dev/null",
		"link-world": ".world", "link-key": ".world/keyring", "link-store": "out/../.world/store", "a-world": "out/link-world",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "out/fifo"), 0o644))
	if err := syscall.Mknod(filepath.Join(dir, "out/null"), syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
		require.ErrorIs(t, err, fs.ErrPermission)
	}
	return dir
}

func TestFileNeverLeavesItsRoot(t *testing.T) {
	base, dir := trap(t)
	outside := filepath.Join(base, "outside")
	const notList = "read write append"
	cases := []struct{ root, path, ops string }{
		{"out", "..", ""},
		{"out", "../f", ""},
		{"out", "../../outside/f", ""},
		{"out", "a/../../f", ""},
		{"out", "a/..", ""},
		{"out", "./f", ""},
		{"out", "a/./f", ""},
		{"out", "f/.", ""},
		{"out", "f/..", ""},
		{"out", "a//f", ""},
		{"out", "f//", ""},
		{"out", outside + "/f", ""},
		{"out", "/" + outside + "/f", ""},
		{"out", "/", ""},
		{"out", "f/", ""},
		{"out", "a/", notList},
		{"out", "new/", ""},
		{"out", "%2e%2e/f", ""},
		{"out", "..%2f..%2foutside%2ff", ""},
		{"out", "%2E%2E%5Cf", ""},
		{"out", "f%00", ""},
		{"out", `..\f`, ""},
		{"out", `..\..\outside\f`, ""},
		{"out", `\\host\share`, ""},
		{"out", `C:\f`, ""},
		{"out", "C:f", ""},
		{"out", "file:///etc/passwd", ""},
		{"out", `f\u0000.txt`, ""},
		{"out", `f\n`, ""},
		{"out", "...", ""},
		{"out", ".. /f", ""},
		{"out", "con", ""},
		{"out", "nul.txt", ""},
		{"out", "f:stream", ""},
		{"out", strings.Repeat("../", 40) + "etc/passwd", ""},
		{"out", strings.Repeat("a/", 3000) + "f", ""},
		{"out", strings.Repeat("n", 300), ""},

		{"out", "link-file", ""},
		{"out", "link-abs", ""},
		{"out", "link-near", ""},
		{"out", "link-dir", ""},
		{"out", "link-dir/f", ""},
		{"out", "link-dir/new", ""},
		{"out", "link-dir-abs/f", ""},
		{"out", "link-dir/../f", ""},
		{"out", "link-up/f", ""},
		{"out", "link-up/new", ""},
		{"out", "link-up/out/f", ""},
		{"out", "a/link-deep/f", ""},
		{"out", "chain", ""},
		{"out", "chain-dir/f", ""},
		{"out", "dangling", ""},
		{"out", "dangling-near", ""},
		{"out", "loop", ""},
		{"out", "loop/f", ""},
		{"out", "loop-a", ""},
		{"out", "loop-b/x", ""},
		{"out", "link-root/etc/passwd", ""},
		{"out", "link-proc/etc/passwd", ""},
		{"out", "link-fd", ""},
		{"out", "link-null", ""},
		{"out", "link-dot/f", ""},
		{"out", "link-dot/link-dot/link-file", ""},
		{"out", "link-in", ""},
		{"out", "link-in-dir/f", ""},
		{"out", "fifo", ""},
		{"out", "null", ""},
		{"out", "a", notList},
		{"out", "f/x", ""},
		{"out", "fifo/x", ""},

		{"out", "link-world", ""},
		{"out", "link-world/keyring", ""},
		{"out", "link-journal/store/new", ""},
		{"out", "../.world/keyring", ""},
		{".", ".world", ""},
		{".", ".world/keyring", ""},
		{".", ".world/new", ""},
		{".", ".WORLD/keyring", ""},
		{".", ".worker", ""},
		{".", ".worker/name", ""},
		{".", ".worker/worlds/new", ""},
		{".worker", "name", ""},
		{".worker/worlds", "new", ""},
		{base, "w/.worker/name", ""},
		{".", ".world./keyring", ""},
		{".", "link-world/keyring", ""},
		{".", "link-key", ""},
		{".", "link-store/f", ""},
		{".", "out/link-world/keyring", ""},
		{".", "out/../.world/keyring", ""},
		{base, "w/.world/keyring", ""},
		{base, "w/link-world/keyring", ""},
		{base, "w/.world/new", ""},
		{base, "other/.world/keyring", ""},
		{"link-world", "keyring", ""},
		{"link-world", "new", ""},
		{"link-store", "f", ""},
		{"out/link-world", "keyring", ""},
		{"out/link-journal/store", "new", ""},
		{"a-world", "keyring", ""},
		{dir + "/link-world", "keyring", ""},
		{dir + "/link-store", "f", ""},
	}
	require.GreaterOrEqual(t, len(cases), 40)
	before := treeOf(t, base)
	for _, c := range cases {
		if c.ops == "" {
			c.ops = notList + " list"
		}
		a := fileIn(t, dir, fmt.Sprintf(`{"root": %q}`, c.root))
		for _, op := range strings.Fields(c.ops) {
			data := ""
			if op == "write" || op == "append" {
				data = `, "data": "changed"`
			}
			path := c.path
			if !strings.Contains(path, `\u`) && !strings.Contains(path, `\n`) {
				path = strings.ReplaceAll(path, `\`, `\\`)
			}
			r := performed(t, a, fmt.Sprintf(`{"op": %q, "path": "%s"%s}`, op, path, data))
			require.Equal(t, receipt.StatusError, r.Status, "%s %s in %s", op, c.path, c.root)
			require.True(t, r.Unsent, "%s %s", op, c.path)
			require.NotContains(t, payloadOf(t, r), "CANARY")
		}
	}
	require.Equal(t, before, treeOf(t, base))
	for _, root := range []string{"..", "out/../..", "../outside", ".world", "./.world/store", dir + "/.world", "out/.WORLD", "", "out\x00"} {
		_, err := newFile(Setup{Dir: dir, Config: liveData(t, fmt.Sprintf(`{"root": %q}`, strings.ReplaceAll(root, "\x00", "\n")))})
		require.Error(t, err, root)
	}
	require.Equal(t, receipt.StatusOK, performed(t, fileIn(t, dir, `{"root": "out"}`), `{"op": "write", "path": "a/f", "data": "x"}`).Status, "the trap has a way in")
}

// Where a name would get past governance.ParseFile, as on a file system that
// folds more than case, the directory itself is known.
func TestFileKnowsTheWorldsDirectoryByItself(t *testing.T) {
	base, dir := trap(t)
	for root, below := range map[string]string{".": ".world", "./": ".world/store", base: "w/.world", ".world": ".", ".world/store": "."} {
		_, err := openDir(dir, root, below)
		require.ErrorIs(t, err, errWorld, "%s %s", root, below)
	}
}
