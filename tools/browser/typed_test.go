package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page's modules are JavaScript whose types are in comments: TypeScript finds a name
// that is not there, a value that may be none, and what is imported for nothing. The
// lockfile in typed has the compiler's hash. What others published is theirs.
func TestPageIsTyped(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("skipped: no npm here, which fetches typescript")
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("typed")))
	require.NoError(t, os.CopyFS(filepath.Join(dir, "page"), os.DirFS(filepath.Join("..", "..", "serve", "ui", "page"))))
	fetch := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	fetch.Dir = dir
	out, err := fetch.CombinedOutput()
	require.NoError(t, err, "%s", out)
	check := exec.CommandContext(t.Context(), filepath.Join(dir, "node_modules", ".bin", "tsc"), "--pretty", "false", "-p", ".")
	check.Dir = dir
	out, err = check.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit, "%s", out)
	}
	require.Contains(t, string(out), "page/vendor/", "it has looked at all that there is")
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "page/vendor/") && !strings.HasPrefix(line, " ") {
			t.Error(strings.TrimSpace(line))
		}
	}
}
