//go:build unix

package experiment_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/lab/experiment"
	"github.com/worldkernel/worldkernel/world/source"
)

// What is no regular file is refused, and not waited for.
func TestPipesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"p.jsonl": sir(t, "people.star", "p.jsonl"), "p.star": sir(t, "people.star", "p.star"), "p.patch": sir(t, "{params: {person.infect: 10}}", "{patch: p.patch}"),
		"m.star": sir(t, "  left:", "  m: {star: m.star}\n  left:"),
	} {
		path := document(t, text)
		require.NoError(t, syscall.Mkfifo(filepath.Join(filepath.Dir(path), name), 0o600))
		_, err := experiment.Load(path, experiment.LoadOptions{})
		require.ErrorAs(t, err, new(*source.Error))
		require.ErrorContains(t, err, "is not a regular file")
		require.ErrorContains(t, err, "experiment.yaml:")
	}
	for _, path := range []string{"/dev/zero", t.TempDir()} {
		_, err := experiment.Load(path, experiment.LoadOptions{})
		require.ErrorContains(t, err, path+":1:1: is not a regular file")
	}
}
