package worldctl

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/source"
)

// TestImportMCPPrintsWhatAWorldCanUse puts what the verb prints into a
// world.yaml, and has its gate judged by the tools' annotations.
func TestImportMCPPrintsWhatAWorldCanUse(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	for name, hints := range map[string]*mcp.ToolAnnotations{
		"Look-Up": {ReadOnlyHint: true}, "refund": nil,
	} {
		mcp.AddTool(server, &mcp.Tool{Name: name, Annotations: hints},
			func(_ context.Context, _ *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	out := string(worldctl(t, nil, "import", "mcp", "--url", web.URL, "--prefix", "shop"))
	dir := t.TempDir()
	world := "world: w\nreducers:\n  a: {engine: starlark, source: a.star, grants: [shop]}\n" + out
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(world), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.star"), []byte("def reduce(ctx, state, event):\n    return state\n"), 0o600))
	loaded, err := source.Load(filepath.Join(dir, "world.yaml"))
	require.NoError(t, err)
	effects := loaded.Manifest.Effects
	require.Equal(t, manifest.ClassRead, effects["shop.look-up"].Class)
	require.True(t, effects["shop.look-up"].Idempotent)
	require.Equal(t, manifest.ClassDestructive, effects["shop.refund"].Class)
	require.False(t, effects["shop.refund"].Idempotent)
	require.Equal(t, []string{"Look-Up", "refund"}, loaded.Manifest.Caps["shop"].Params.Tools)
}
