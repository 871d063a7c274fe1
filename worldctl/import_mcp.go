package worldctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
)

// maxArgs is more than a command line holds.
const maxArgs = 1 << 20

// The parts of a world.yaml that the tools of a server come to.
type (
	mcpSections struct {
		Effects  map[string]mcpEffect `yaml:"effects" json:"effects"`
		Caps     map[string]mcpCap    `yaml:"caps" json:"caps"`
		Policies []mcpPolicy          `yaml:"policies" json:"policies"`
	}
	mcpEffect struct {
		Adapter    string         `yaml:"adapter" json:"adapter"`
		Config     map[string]any `yaml:"config,flow" json:"config"`
		Class      string         `yaml:"class" json:"class"`
		Idempotent bool           `yaml:"idempotent,omitempty" json:"idempotent"`
	}
	mcpCap struct {
		Type   string              `yaml:"type" json:"type"`
		Params map[string][]string `yaml:"params" json:"params"`
	}
	mcpPolicy struct {
		Name   string `yaml:"name" json:"name"`
		When   string `yaml:"when" json:"when"`
		Decide string `yaml:"decide" json:"decide"`
	}
)

func newImportMCPCommand(c *cli) *cobra.Command {
	var url, prefix string
	cmd := &cobra.Command{
		Use:   "mcp [--url URL | -- COMMAND [ARG]...]",
		Short: "Print the effects, capability and policies for the tools of an MCP server",
		Long: `Ask an MCP server for its tools and print the sections of a world.yaml for them:
an effect for each tool, whose class and idempotent are what the server's
annotations say of it, a capability that names them, and policies that allow what
only reads and have a person approve the rest. Nothing is written.`,
		Example: `  worldctl import mcp -- ./tools/server --stdio
  worldctl import mcp --url http://127.0.0.1:8931/mcp --prefix web`,
		Args: args(0, maxArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (url == "") == (len(args) == 0) {
				return usagef("worldctl import mcp -- ./tools/server", "want either --url or a command after --")
			}
			server, config := url, map[string]any{"url": url}
			if url == "" {
				server, config = args[0], map[string]any{"command": args}
			}
			tools, err := describeMCP(cmd.Context(), config)
			if err != nil {
				return err
			}
			sections := mcpSectionsOf(server, prefix, config, tools)
			return c.object("import-mcp", sections, func() { c.showMCP(&sections) })
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "the `URL` of a streamable HTTP server")
	cmd.Flags().StringVar(&prefix, "prefix", "tool", "what the names of the effects begin with")
	return cmd
}

func describeMCP(ctx context.Context, config map[string]any) ([]mcp.Tool, error) {
	data, err := canon.Marshal(config)
	if err != nil {
		return nil, err
	}
	return mcp.Describe(ctx, host.Setup{Kind: "import", Config: data, Dir: "."})
}

func mcpSectionsOf(server, prefix string, config map[string]any, tools []mcp.Tool) mcpSections {
	effects := make(map[string]mcpEffect, len(tools))
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
		fixed := map[string]any{"tool": t.Name}
		for key, value := range config {
			fixed[key] = value
		}
		effects[prefix+"."+effectName(t.Name)] = mcpEffect{Adapter: manifest.CapMCP, Config: fixed, Class: t.Class, Idempotent: t.Idempotent}
	}
	return mcpSections{
		Effects: effects,
		Caps:    map[string]mcpCap{prefix: {Type: manifest.CapMCP, Params: map[string][]string{"servers": {server}, "tools": names}}},
		Policies: []mcpPolicy{
			{Name: prefix + ": what only reads", When: fmt.Sprintf("intent.kind.startsWith(%q) && intent.class == %q", prefix+".", manifest.ClassRead), Decide: manifest.DecideAllow},
			{Name: prefix + ": a person approves the rest", When: fmt.Sprintf("intent.kind.startsWith(%q) && intent.class != %q", prefix+".", manifest.ClassRead), Decide: manifest.DecideRequireApproval},
		},
	}
}

// effectName makes the name of a tool one of an effect.
func effectName(tool string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, strings.ToLower(tool))
}

func (c *cli) showMCP(sections *mcpSections) {
	text, err := yaml.Marshal(sections)
	if err != nil {
		text = []byte(err.Error())
	}
	fmt.Fprint(c.stdout, string(text))
	c.note("next: put these into %s, grant the capability to a reducer, and worldctl validate", local.ManifestFile)
}
