package worldctl

import (
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/host/mcp"
	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// maxArgs is more than a command line holds.
const maxArgs = 1 << 20

// mcpImport is what was typed for import mcp.
type mcpImport struct {
	url, prefix       string
	allowReads, write bool
}

func newImportMCPCommand(c *cli) *cobra.Command {
	var m mcpImport
	cmd := &cobra.Command{
		Use:  "mcp [--url URL | -- COMMAND [ARG]...]",
		Args: args(0, maxArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (m.url == "") == (len(args) == 0) {
				return usagef("worldctl import mcp -- ./tools/server", "want either --url or a command after --")
			}
			dir := "."
			if m.write {
				dir = c.sourceDir()
			}
			sections, err := mcp.Import(cmd.Context(), filepath.Join(dir, "."), m.url, args, m.prefix)
			if err == nil && m.allowReads {
				sections.AllowReads(m.prefix)
			}
			if err == nil && m.write {
				return c.writeMCP(filepath.Join(dir, local.ManifestFile), sections, m.prefix)
			}
			return answer(c, "import-mcp", c.showMCP)(sections, err)
		},
	}
	cmd.Flags().StringVar(&m.url, "url", "", "the `URL` of a streamable HTTP server")
	cmd.Flags().StringVar(&m.prefix, "prefix", "tool", "`NAME` that the kinds of the effects begin with")
	cmd.Flags().BoolVar(&m.allowReads, "allow-reads", false, "take the server's word for which tools only read, and allow these")
	cmd.Flags().BoolVar(&m.write, "write", false, "write into world.yaml, and print what was added")
	return cmd
}

// sourceDir returns the directory of the world.yaml that is meant.
func (c *cli) sourceDir() string {
	if c.world != "" {
		return c.world
	}
	if found, err := local.Find("."); err == nil {
		return relative(found)
	}
	return "."
}

// toolsYAML returns sections as they stand in a world file.
func toolsYAML(sections *mcp.Sections) ([]byte, error) {
	plain := *sections
	plain.Effects = make(map[string]mcp.SectionEffect, len(sections.Effects))
	for kind, e := range sections.Effects {
		e.Params, _ = withNumbers(e.Params).(map[string]any)
		plain.Effects[kind] = e
	}
	return yaml.Dump(plain, yaml.WithIndent(2))
}

// withNumbers returns data whose great integers are no text in YAML.
func withNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			out[name] = withNumbers(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = withNumbers(x)
		}
		return out
	case *big.Int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: v.String()}
	}
	return v
}

func (c *cli) showMCP(sections *mcp.Sections) {
	text, err := toolsYAML(sections)
	if err == nil {
		_, err = source.NewDocument("what is printed", "a mapping", text)
	}
	if err != nil {
		text = []byte(err.Error())
	}
	fmt.Fprintln(c.document(), strings.TrimSuffix(string(text), "\n"))
	c.warnOfTools(sections)
	c.hintNext("put these into %s (--write does), grant the capability to a reducer, and worldctl validate", local.ManifestFile)
}

func (c *cli) warnOfTools(sections *mcp.Sections) {
	for _, w := range sections.Warnings {
		c.note("warning: %s", w)
	}
}

// written is the answer of import mcp --write.
type written struct {
	File     string   `json:"file"`
	Added    []string `json:"added"`
	Warnings []string `json:"warnings,omitempty"`
}

// writeMCP adds sections to a world file, which is valid then.
func (c *cli) writeMCP(path string, sections *mcp.Sections, prefix string) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return hinted(err, "--world names the directory of another world.yaml")
	}
	data, err := file.ReadRegular(target, source.MaxWorldBytes)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	more, err := toolsYAML(sections)
	if err != nil {
		return err
	}
	text, added, err := source.Add(path, data, more)
	if errors.As(err, new(*source.TakenError)) {
		return hinted(fmt.Errorf("%s: %w; nothing is written", path, err), "take these out of the file first, or name others with --prefix, which is %s", prefix)
	}
	if err == nil && len(added) > 0 {
		_, err = c.loadWorld(path, source.WithText(text))
	}
	if err != nil {
		return hinted(fmt.Errorf("nothing is written, since the file would not be valid:\n%w", err), "lines are those of the file with what would be added: correct what is wrong without that, or leave out --write")
	}
	if len(added) > 0 {
		if err := file.Put(target, text, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return c.object("import-mcp", written{path, added, sections.Warnings}, func() {
		if len(added) == 0 {
			fmt.Fprintf(c.stdout, "%s has all of it already\n", path)
		}
		for _, name := range added {
			fmt.Fprintf(c.stdout, "%s: added %s\n", path, name)
		}
		c.warnOfTools(sections)
		c.hintNext("grant the capability %s to a reducer, look at the policies, and worldctl validate %s", prefix, shellWord(path))
	})
}
