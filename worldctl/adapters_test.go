package worldctl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryAdapterOfAManifestIsThere(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.star"), []byte("def reduce(ctx, state, event):\n    return state\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(`
world: all
reducers: {a: {engine: starlark, source: a.star}}
effects:
  http: {adapter: http, config: {url: "http://127.0.0.1:1/"}}
  file: {adapter: file, config: {root: notes}}
  exec: {adapter: exec, config: {program: "true"}}
  llm: {adapter: llm, config: {base_url: "http://127.0.0.1:1/v1"}}
  mcp: {adapter: mcp, config: {command: ["true"]}}
`), 0o600))
	code, _, said := inProcess(t.Context(), "init", dir)
	require.Equal(t, exitOK, code, said)
}
