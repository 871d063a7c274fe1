package worldctl

import (
	"context"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal/pglog"
)

func newNodeCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "node", Short: "Look at the processes that own worlds of a store, and give them worlds"},
		newNodeGiveCommand(c),
		c.storeVerb("node", "list", "List the processes that own worlds of a store",
			"List the processes that own worlds of a store, with where they answer, for how long they\nare taken to be alive if they are heard of no more, and how many worlds they own.", c.listNodes))
}

func newNodeGiveCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "give NODE",
		Short: "Give the world of -w to a node",
		Long: `Give the world of -w to another of the processes that own worlds of a store. The one that
has it gives it up when effects under way have ended, and NODE opens it within seconds. To
have a node give up all its worlds, end it with SIGTERM.`,
		Example: "  worldctl -w town node give two --store 'postgres://kernel@db.example.com/worlds?sslmode=verify-full'",
		Args:    args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.storeURL() == "" {
				return errWhichStore()
			}
			if _, err := c.place(c.world); err != nil {
				return err
			}
			return c.stored.Give(cmd.Context(), c.world, args[0])
		},
	}
}

// nodeLine is a process that owns worlds.
type nodeLine struct {
	Node    string `json:"node"`
	Alive   bool   `json:"alive"`
	URL     string `json:"url,omitempty"`
	Version string `json:"version,omitempty"`
	Lease   int64  `json:"lease_millis"` // that is left; negative: it has run out
	Worlds  int    `json:"worlds"`       // that it owns
}

func (c *cli) listNodes(ctx context.Context, url string) error {
	s, err := pglog.Open(ctx, url, pglog.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := s.Nodes(ctx)
	if err != nil {
		return err
	}
	a := struct {
		Nodes []nodeLine `json:"nodes"`
	}{[]nodeLine{}}
	for _, n := range all {
		a.Nodes = append(a.Nodes, nodeLine{n.Name, n.Alive(), n.URL, n.Version, n.Lease.Milliseconds(), n.Worlds})
	}
	return c.object("nodes", a, func() {
		t := c.newTable()
		t.AppendHeader(table.Row{"node", "worlds", "alive for", "url", "version"})
		for _, n := range all {
			alive := "gone"
			if n.Alive() {
				alive = n.Lease.Round(time.Second).String()
			}
			t.AppendRow(table.Row{n.Name, n.Worlds, alive, n.URL, n.Version})
		}
		t.Render()
	})
}
