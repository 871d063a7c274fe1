//go:build !race

package worldctl

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// processes lets the tests start themselves as worldctl.
func processes(m *testing.M) testscript.TestingM { return m }

// scripts are all of them.
func scripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(scriptDir, "*.txt*"))
	require.NoError(t, err)
	return files
}
