package worldctl

import (
	"context"
	"encoding/json"
	"fmt"
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

// TestOfToolsThatWouldBeOneEffectTheSecondIsLeftOut: the others are of use, and world.yaml says which is not there.
func TestOfToolsThatWouldBeOneEffectTheSecondIsLeftOut(t *testing.T) {
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
	require.Equal(t, 0, code, said)
	require.Contains(t, out, "tool: Look-Up")
	require.NotContains(t, out, "tool: look-up")
	require.Contains(t, said, "shop.look-up")
}

// TestToolWhoseSchemaBlowsUpIsNamed: three kilobytes of a stranger's schema can take more
// steps than a check has.
func TestToolWhoseSchemaBlowsUpIsNamed(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name: "boom", InputSchema: json.RawMessage(`{"type": "object", "properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}`),
	}, func(_ context.Context, _ *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	code, _, said := inProcess(t.Context(), "import", "mcp", "--url", web.URL, "--prefix", "shop")
	require.Equal(t, 0, code, said)
	require.Contains(t, said, "warning: tool \"boom\": its schema: it evaluates parts twice")
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

// toolsServer is an MCP server that lists tools as they are written here.
func toolsServer(t *testing.T, tools ...string) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var msg struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&msg)
		result := `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		switch msg.Method {
		case "initialize":
		case "tools/list":
			result = `{"tools":[` + strings.Join(tools, ",") + `]}`
		case "server/discover":
			http.Error(w, "what?", http.StatusNotFound)
			return
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(msg.ID) + `,"result":` + result + `}`))
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// TestWhatImportMCPPrintsIsValid: whatever a server says of its tools.
func TestWhatImportMCPPrintsIsValid(t *testing.T) {
	const object = `"inputSchema":{"type":"object"}`
	var tools []string
	for i, schema := range []string{
		`{"properties":{"q":{"pattern":"^(?!a)\\s.+$"},"<<":{"const":"1e3"},"":{"default":1.5},"yes":{"enum":["2026-01-01","null","~","0x1f",null,true]}}}`,
		`{"properties":{"a":{"type":"any","required":true},"b":{"minimum":0,"exclusiveMinimum":true}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/t","definitions":{"t":{"properties":{"next":{"$ref":"#/definitions/t"}}}}}`,
		`{"properties":{"self":{"$ref":"#"},"all":true,"none":false},"required":["self"]}`,
		`{"maximum":123456789012345678901234567890,"multipleOf":1e-7}`, `{"maximum":1e400}`,
		`{"description":"--- # : \u0007 \u0085 \u2028 \ufeff \u202e\r\n\t- ? x\n","title":"` + strings.Repeat("long ", 500) + `"}`,
	} {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","description":"%%YAML\n...\n","inputSchema":%s}`, i, schema))
	}
	tools = append(tools, `{"name":"Ünïcode ✓","annotations":{"readOnlyHint":1},`+object+`}`, `{"name":"secret://X",`+object+`}`, `{"name":"<<",`+object+`}`, `{"name":"",`+object+`}`,
		`{"name":"bad","inputSchema":{"$ref":"file:///etc/passwd"}}`, `7`)
	loaded := worldOfMCP(t, toolsServer(t, tools...))
	require.Len(t, loaded.Manifest.Effects, 6+3)
	code, out, _ := inProcess(t.Context(), "import", "mcp", "--url", toolsServer(t, tools...), "--prefix", "No Name")
	require.Equal(t, exitFailed, code)
	require.Empty(t, out)
}

// TestWhatImportMCPPrintsIsValidWhateverToolsThereAre: a policy that fits no effect is a fault of a world.yaml.
func TestWhatImportMCPPrintsIsValidWhateverToolsThereAre(t *testing.T) {
	const reads, writes = `{"name":"r","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, `{"name":"w","inputSchema":{"type":"object"}}`
	for name, tools := range map[string][]string{"none": {}, "reads": {reads}, "writes": {writes}, "both": {reads, writes}} {
		for _, flags := range [][]string{nil, {"--allow-reads"}} {
			t.Run(name+strings.Join(flags, ""), func(t *testing.T) {
				url := toolsServer(t, tools...)
				dir := t.TempDir()
				const world = "world: w\nreducers:\n  a: {engine: starlark, source: a.star}\n"
				require.NoError(t, os.WriteFile(filepath.Join(dir, "world.yaml"), []byte(world), 0o600))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "a.star"), []byte("def reduce(ctx, state, event):\n    return state\n"), 0o600))
				code, out, said := inProcess(t.Context(), append([]string{"-w", dir, "import", "mcp", "--write", "--url", url}, flags...)...)
				if name == "none" {
					require.Equal(t, exitFailed, code)
					require.Empty(t, out)
					require.Contains(t, said, "the server lists none")
				} else {
					require.Equal(t, exitOK, code, said)
				}
				code, _, said = inProcess(t.Context(), "validate", filepath.Join(dir, "world.yaml"))
				require.Equal(t, exitOK, code, said)
			})
		}
	}
}

func TestImportMCPWritesIntoTheWorldFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "world.yaml")
	const world = "world: w # mine\nreducers:\n  a: {engine: starlark, source: a.star, grants: [shop]}\ncaps:\n    own: {type: file, params: {root: f, access: [read]}}\n# the end"
	require.NoError(t, os.WriteFile(file, []byte(world), 0o640)) //nolint:gosec // its mode stays
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.star"), []byte("def reduce(ctx, state, event):\n    return state\n"), 0o600))
	write := func(tools ...string) (int, string, string) {
		return inProcess(t.Context(), "-w", dir, "import", "mcp", "--write", "--url", toolsServer(t, tools...), "--prefix", "shop")
	}
	tool := func(name string) string { return `{"name":"` + name + `","inputSchema":{"type":"object"}}` }
	url := toolsServer(t, tool("buy"))
	run := func() (int, string, string) {
		return inProcess(t.Context(), "-w", dir, "import", "mcp", "--write", "--url", url, "--prefix", "shop")
	}
	code, out, said := run()
	require.Equal(t, 0, code, said)
	require.Contains(t, out, "added effects.shop.buy\n")
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(got), "access: [read]}}\n    shop:\n      type: mcp\n")
	before, after, _ := strings.Cut(world, "# the end")
	require.True(t, strings.HasPrefix(string(got), before) && strings.Contains(string(got), "\n# the end"+after+"\neffects:\n"), "%s", got)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	worldctl(t, nil, "validate", file)

	code, out, said = run()
	require.Equal(t, 0, code, said)
	require.Contains(t, out, "has all of it already")
	code, _, said = write(tool("buy"), tool("sell"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, said, "effects.shop.buy, caps.shop: there already, and not the same; nothing is written")
	same, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(got), string(same))

	require.NoError(t, os.WriteFile(file, []byte("world: w\nreducers:\n  a: {engine: starlark, source: none.star}\n"), 0o600))
	code, _, said = write(tool("buy"))
	require.NotEqual(t, 0, code)
	require.Contains(t, said, "none.star")
	same, err = os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(same), "shop", "what would not be valid is not written")
}
