package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// TestSoManyNamesAreComparedAndNoMore: each is held against all that there are, so a file of nothing but
// names would take their product. All of them are told.
func TestSoManyNamesAreComparedAndNoMore(t *testing.T) {
	dir := t.TempDir()
	var code strings.Builder
	code.WriteString("def reduce(ctx, state, event):\n")
	for n := range 150 {
		fmt.Fprintf(&code, "    ctx.effect(\"mail.send%d\", {})\n", n)
	}
	path := filepath.Join(dir, "world.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.star"), []byte(code.String()), 0o600))
	require.NoError(t, os.WriteFile(path, []byte(`world: w
version: 1
reducers:
  a: {engine: starlark, source: a.star}
effects:
  mail.send: {adapter: file, config: {root: .}}
`), 0o600))
	loaded, err := source.Load(path)
	require.NoError(t, err)
	told, meant := 0, 0
	for _, w := range local.Warnings(path, dir, loaded) {
		if strings.Contains(w.Message, "is asked for") {
			told++
		}
		if strings.Contains(w.Message, "did you mean") {
			meant++
		}
	}
	require.Equal(t, 150, told)
	require.Equal(t, 100, meant)
}
