package worldctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal/pglog"
)

func newNodeCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "node"},
		newNodeGiveCommand(c),
		c.storeVerb("list", func(ctx context.Context, _ string) error { return c.listNodes(ctx, c.storeURLs()) }))
}

func newNodeGiveCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "give NODE",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.placeWorld(); err != nil {
				return err
			}
			return c.stored.Give(cmd.Context(), c.world, args[0])
		},
	}
}

// nodeLine is a process that owns worlds.
type nodeLine struct {
	Node    string   `json:"node"`
	Alive   bool     `json:"alive"`
	URL     string   `json:"url,omitempty"`
	Version string   `json:"version,omitempty"`
	Lease   int64    `json:"lease_millis"`      // that is left; negative: it has run out
	Worlds  int      `json:"worlds"`            // that it owns
	Resting []string `json:"resting,omitempty"` // worlds that cannot go on there, each with the reason
	Store   string   `json:"store,omitempty"`   // where that is; of several
}

// listNodes lists those of some stores. One that does not answer is an error, beside what the others say.
func (c *cli) listNodes(ctx context.Context, urls []string) error {
	a := struct {
		Nodes []nodeLine `json:"nodes"`
	}{[]nodeLine{}}
	several := len(urls) > 1
	var failed error
	for _, url := range urls {
		store, err := "", error(nil)
		if several {
			store, err = pglog.Where(url)
		}
		if err != nil {
			return err
		}
		lines, err := nodesOf(ctx, url, store)
		if err != nil && several {
			err = fmt.Errorf("store %s: %w", store, err)
		}
		a.Nodes, failed = append(a.Nodes, lines...), errors.Join(failed, err)
	}
	if failed != nil && len(a.Nodes) == 0 {
		return failed
	}
	return errors.Join(c.object("nodes", a, func() { c.nodesTable(a.Nodes, several) }), failed)
}

// nodesOf are the nodes of a store, which is called by where it is if it is one of several.
func nodesOf(ctx context.Context, url, store string) (lines []nodeLine, err error) {
	s, err := pglog.Open(ctx, url, pglog.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	all, err := s.Nodes(ctx)
	for _, n := range all {
		lines = append(lines, nodeLine{n.Name, n.Alive(), n.URL, n.Version, n.Lease.Milliseconds(), n.Worlds, n.Resting, store})
	}
	return lines, err
}

func (c *cli) nodesTable(nodes []nodeLine, several bool) {
	head := table.Row{"node", "worlds", "alive for", "url", "version"}
	if several {
		head = append(head, "store")
	}
	tabulate(c, head, nodes, func(n *nodeLine) table.Row {
		alive := "gone"
		if n.Alive {
			alive = (time.Duration(n.Lease) * time.Millisecond).Round(time.Second).String()
		}
		row := table.Row{n.Node, n.Worlds, alive, n.URL, n.Version}
		if several {
			row = append(row, n.Store)
		}
		return row
	})
	for _, n := range nodes {
		for _, line := range n.Resting {
			c.note("%s cannot go on with %s", n.Node, visible(line, ""))
		}
	}
}
