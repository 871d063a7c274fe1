package worldctl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/world/local"
)

// maxArgs is more than a command line holds.
const maxArgs = 1 << 20

func newImportMCPCommand(c *cli) *cobra.Command {
	var url, prefix string
	var allowReads bool
	cmd := &cobra.Command{
		Use:   "mcp [--url URL | -- COMMAND [ARG]...]",
		Short: "Print the effects, capability and policies for the tools of an MCP server",
		Long: `Ask an MCP server for its tools and print the sections of a world.yaml for them:
an effect for each tool, whose class and idempotent are what the server's
annotations say of it, a capability that names them, and a policy that has a
person approve each call. With --allow-reads what the server says only reads is
allowed: that it does is the server's word, so look at the tools before you take
it. Nothing is written.`,
		Example: `  worldctl import mcp -- ./tools/server --stdio
  worldctl import mcp --url http://127.0.0.1:8931/mcp --prefix web`,
		Args: args(0, maxArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (url == "") == (len(args) == 0) {
				return usagef("worldctl import mcp -- ./tools/server", "want either --url or a command after --")
			}
			sections, err := mcp.Import(cmd.Context(), url, args, prefix)
			if err == nil && allowReads {
				sections.AllowReads(prefix)
			}
			if errors.Is(err, mcp.ErrSameName) {
				err = hinted(err, "an effect has one tool: write the effects of these by hand, with kinds of their own and config.tool")
			}
			return answer(c, "import-mcp", c.showMCP)(sections, err)
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "the `URL` of a streamable HTTP server")
	cmd.Flags().StringVar(&prefix, "prefix", "tool", "`NAME` that the kinds of the effects begin with")
	cmd.Flags().BoolVar(&allowReads, "allow-reads", false, "take the server's word for which tools only read, and allow these")
	return cmd
}

func (c *cli) showMCP(sections *mcp.Sections) {
	text, err := yaml.Marshal(sections)
	if err != nil {
		text = []byte(err.Error())
	}
	fmt.Fprint(c.document(), string(text))
	c.note("next: put these into %s, grant the capability to a reducer, and worldctl validate", local.ManifestFile)
}
