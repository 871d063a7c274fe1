package worldctl

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

// The formats of graphs.
const (
	formatMermaid = "mermaid"
	formatDOT     = "dot"
)

const (
	defaultNodes = 500    // of a graph: more can hardly be looked at
	lookBack     = 10_000 // records in which the last event is looked for
)

// graph is how records follow from each other. Causes come before effects.
type graph struct {
	Nodes []node `json:"nodes"`
	Edges []edge `json:"edges"`
}

type node struct {
	ID   journal.Seq   `json:"id"`
	Kind journal.Kind  `json:"kind"`
	Cell string        `json:"cell"` // that it concerns, several joined by a comma; empty: none
	Time manifest.Tick `json:"time"`
}

type edge struct {
	From journal.Seq `json:"from"` // the cause
	To   journal.Seq `json:"to"`
}

func newGraphCommand(c *cli) *cobra.Command {
	var format string
	var depth, limit uint64
	cmd := &cobra.Command{
		Use:   "graph [RECORD]",
		Short: "Draw what led to a record and all that it brought about",
		Long: `Draw what led to a record, up to the input it began with, and all that it brought
about: as text for Mermaid or, with --format dot, for Graphviz. Causes are those
of why. Without RECORD it is the last event that was submitted or, where the last
10,000 records hold none, the last input.`,
		Example: `  worldctl graph 20
  worldctl graph --format dot | dot -Tsvg > graph.svg
  worldctl graph '#20' --depth 3 -o json`,
		Args: args(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != formatMermaid && format != formatDOT {
				return usagef("type --format mermaid or --format dot", "%q is not a format of graphs", format)
			}
			return c.with(func(lw *local.World) error {
				j := recordsOf(lw)
				e, err := j.findOrLast(args)
				if err != nil {
					return err
				}
				g, whole, err := j.graph(e, depth, limit)
				if err != nil {
					return err
				}
				if !whole {
					c.note("there is more than these %d records: --limit N draws more of them, --limit 0 all", len(g.Nodes))
				}
				return c.object("graph", g, func() { g.draw(c.stdout, format) })
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", formatMermaid, "`FORMAT` of the text: mermaid or dot")
	cmd.Flags().Uint64Var(&depth, "depth", 0, "at most `N` links away from the record")
	cmd.Flags().Uint64Var(&limit, "limit", defaultNodes, "at most `N` records; 0: all")
	return cmd
}

// findOrLast reads the record that a person named, else the last that something
// began with.
func (j records) findOrLast(args []string) (*view.Entry, error) {
	if len(args) > 0 {
		return j.find(args[0])
	}
	end := j.End()
	var input *view.Entry
	for id := end; id > 0 && (input == nil || end-id < lookBack); id-- {
		e, err := j.Entry(id)
		switch {
		case err != nil:
			return nil, err
		case e.Kind == journal.KindSubmitted:
			return e, nil
		case e.Kind.Input() && input == nil:
			input = e
		}
	}
	return input, nil
}

// graph returns what a record followed from, and what follows from it, up to so
// many links away and so many records; 0 is no bound. whole is false where there
// are more records.
func (j records) graph(of *view.Entry, links, most uint64) (g *graph, whole bool, err error) {
	g = &graph{Nodes: []node{}, Edges: []edge{}}
	full := func() bool { return most != 0 && uint64(len(g.Nodes)) == most }
	causes := j.causes(of)
	if links != 0 {
		causes = first(causes, links+1) // the record is the first
	}
	var effect journal.Seq
	for e, err := range causes {
		if err != nil {
			return nil, false, err
		}
		if full() {
			return g.inOrder(), false, nil
		}
		if g.add(j, e); effect != 0 {
			g.Edges = append(g.Edges, edge{e.ID, effect})
		}
		effect = e.ID
	}
	g.inOrder()
	for x, err := range j.consequences(of, links) {
		if err != nil {
			return nil, false, err
		}
		if full() {
			return g, false, nil
		}
		g.add(j, x.Entry)
		g.Edges = append(g.Edges, edge{x.cause, x.ID})
	}
	return g, true, nil
}

func (g *graph) add(j records, e *view.Entry) {
	g.Nodes = append(g.Nodes, node{e.ID, e.Kind, strings.Join(j.Cells(e), ", "), e.Time})
}

// inOrder turns round what was gathered from the effect to its causes.
func (g *graph) inOrder() *graph {
	slices.Reverse(g.Nodes)
	slices.Reverse(g.Edges)
	return g
}

// draw writes a graph as text.
func (g *graph) draw(w io.Writer, format string) {
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
