package worldctl

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/llm"
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

func TestPoliciesAreTriedWithTheAdaptersOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.star"), []byte("def reduce(ctx, state, event):\n    return state\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(`
world: own
reducers: {a: {engine: starlark, source: a.star}}
effects: {mail: {adapter: mail, config: {base_url: "http://127.0.0.1:1/v1"}}}
`), 0o600))
	own := Options{Adapters: map[string]host.Factory{"mail": llm.New}}
	for _, args := range [][]string{{"init", dir}, {"-w", dir, "policy", "eval"}} {
		var out, said bytes.Buffer
		require.Equal(t, exitOK, run(t.Context(), own, args, strings.NewReader(""), &out, &said), said.String())
	}
}
