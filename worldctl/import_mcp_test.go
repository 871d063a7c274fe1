package worldctl

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/world/source"
)

// TestImportMCPPrintsWhatAWorldCanUse puts what the verb prints into a
// world.yaml, and has its gate judged by the tools' annotations.
func TestImportMCPPrintsWhatAWorldCanUse(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	for name, hints := range map[string]*mcp.ToolAnnotations{
		"Look-Up": {ReadOnlyHint: true}, "refund": nil,
	} {
		tool := &mcp.Tool{Name: name, Annotations: hints, Description: "Use " + name + "."}
		if name == "refund" {
			tool.InputSchema = json.RawMessage(`{"type": "object", "required": ["cents"], "properties": {"cents": {"$ref": "#/$defs/c"}}, "$defs": {"c": {"type": "integer"}}}`)
		}
		mcp.AddTool(server, tool,
			func(_ context.Context, _ *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	loaded := worldOfMCP(t, web.URL)
	effects := loaded.Manifest.Effects
	require.Equal(t, manifest.ClassRead, effects["shop.look-up"].Class)
	require.True(t, effects["shop.look-up"].Idempotent)
	require.Equal(t, manifest.ClassDestructive, effects["shop.refund"].Class)
	require.False(t, effects["shop.refund"].Idempotent)
	require.Equal(t, []string{"Look-Up", "refund"}, loaded.Manifest.Caps["shop"].Params.Tools)

	require.JSONEq(t, `{
		"type": "object", "description": "Use refund.", "required": ["arguments"],
		"properties": {"arguments": {
			"$id": "arguments", "type": "object", "required": ["cents"], "properties": {"cents": {"$ref": "#/$defs/c"}}, "$defs": {"c": {"type": "integer"}}
		}}
	}`, string(loaded.Contents[effects["shop.refund"].Params]))

	// What the server calls harmless is allowed by a person's word only.
	trusting := worldOfMCP(t, web.URL, "--allow-reads")
	for tool, want := range map[string][2]governance.Verdict{
		"Look-Up": {governance.RequireApproval, governance.Allow},
		"refund":  {governance.RequireApproval, governance.RequireApproval},
	} {
		for i, world := range []*source.Loaded{loaded, trusting} {
			gate, err := governance.NewGate(world.Manifest, nil)
			require.NoError(t, err)
			params, err := canon.FromJSON([]byte(`{"tool":"` + tool + `"}`))
			require.NoError(t, err)
			d := gate.Decide(&governance.Request{
				World: "w", Cell: reducer.Cell{Reducer: "a", Key: "k"}, Kind: "shop." + strings.ToLower(tool), Params: params,
			})
			require.Equal(t, want[i], d.Verdict, "%s: %s", tool, d.Reason)
		}
	}
}

// TestToolsThatWouldBeOneEffectAreRefused: a world.yaml would have lost one of them.
func TestToolsThatWouldBeOneEffectAreRefused(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	for _, name := range []string{"Look-Up", "look-up"} {
		mcp.AddTool(server, &mcp.Tool{Name: name},
			func(_ context.Context, _ *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	code, out, said := inProcess(t.Context(), "import", "mcp", "--url", web.URL, "--prefix", "shop")
	require.Equal(t, exitFailed, code)
	require.Empty(t, out)
	require.Contains(t, said, `"Look-Up" and "look-up" are shop.look-up`)
}

// worldOfMCP is a world with what the verb prints.
func worldOfMCP(t *testing.T, url string, flags ...string) *source.Loaded {
	t.Helper()
	out := string(worldctl(t, nil, append([]string{"import", "mcp", "--url", url, "--prefix", "shop"}, flags...)...))
	dir := t.TempDir()
	world := "world: w\nreducers:\n  a: {engine: starlark, source: a.star, grants: [shop]}\n" + out
	require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(world), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.star"), []byte("def reduce(ctx, state, event):\n    return state\n"), 0o600))
	loaded, err := source.Load(filepath.Join(dir, "world.yaml"))
	require.NoError(t, err)
	return loaded
}
