package worldctl

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// The formats of graphs.
const (
	formatMermaid = "mermaid"
	formatDOT     = "dot"
)

const defaultNodes = 500 // of a graph: more can hardly be looked at

func newGraphCommand(c *cli) *cobra.Command {
	var format string
	depth, limit := uint64(0), uint64(defaultNodes)
	cmd := &cobra.Command{
		Use:         "graph [RECORD]",
		Annotations: map[string]string{takesMoments: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != formatMermaid && format != formatDOT {
				return usagef("type --format mermaid or --format dot", "%q is not a format of graphs", format)
			}
			return c.with(func(lw *local.World) error {
				j := recordsOf(lw)
				e, err := j.LastBeginning()
				if len(args) > 0 {
					e, err = j.EntryAt(args[0])
				}
				if err != nil {
					return err
				}
				g, err := j.Graph(cmd.Context(), e, depth, limit)
				if err != nil {
					return err
				}
				if !g.Whole {
					c.note("there is more than these %d records: --limit N draws more of them, --limit 0 all", len(g.Nodes))
				}
				return c.object("graph", g, func() { draw(c.stdout, g, format) })
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", formatMermaid, "`FORMAT` of the text: mermaid or dot")
	cmd.Flags().Uint64Var(&depth, "depth", 0, "at most `N` links away from the record")
	addLimit(cmd, &limit, "records")
	return cmd
}

// draw writes a graph as text.
func draw(w io.Writer, g *view.Graph, format string) {
	open, nodes, edges, end := "graph TD\n", "  r%d[\"%s\"]\n", "  r%d --> r%d\n", ""
	escape := escapeMermaid
	if format == formatDOT {
		open, nodes, edges, end = "digraph world {\n  node [shape=box]\n", "  r%d [label=\"%s\"]\n", "  r%d -> r%d\n", "}\n"
		escape = escapeDOT
	}
	fmt.Fprint(w, open)
	for _, n := range g.Nodes {
		fmt.Fprintf(w, nodes, n.ID, strings.TrimSuffix(fmt.Sprintf("#%d %s %s", n.ID, n.Kind, escape(n.Cell)), " "))
	}
	for _, e := range g.Edges {
		fmt.Fprintf(w, edges, e.From, e.To)
	}
	fmt.Fprint(w, end)
}

// escapeMermaid makes text of the world a part of a label in quotes. Mermaid
// reads #NUMBER; as a character, which needs its semicolon, and looks for HTML,
// Markdown and styles.
func escapeMermaid(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\"&:;<>\\`*", r) {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// escapeDOT makes text of the world a part of a label in quotes. Graphviz reads
// HTML's entities and escapes of its own in it.
func escapeDOT(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `&`, `&amp;`).Replace(text)
}
