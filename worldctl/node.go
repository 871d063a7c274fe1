package worldctl

import (
	"context"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal/pglog"
)

func newNodeCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "node", Short: "Look at the processes that own worlds of a store"},
		c.storeVerb("node", "list", "List the processes that own worlds of a store",
			"List the processes that own worlds of a store, with where they answer, for how long they\nare taken to be alive if they are heard of no more, and how many worlds they own.", c.listNodes))
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
