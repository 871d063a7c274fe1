package worldctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newAgentEnvCommand(c *cli) *cobra.Command {
	x := agentRun{sums: true}
	cmd := &cobra.Command{
		Use: "env",
		RunE: func(cmd *cobra.Command, _ []string) error {
			x.serve = c.serveEnv
			return c.runAgent(cmd.Context(), &x)
		},
	}
	cmd.Flags().StringVar(&x.Name, "name", "", "the session's `NAME`; agent if not given")
	x.bind(cmd)
	return cmd
}

// serveEnv prints the environment of an agent, and waits until somebody ends that.
func (c *cli) serveEnv(ctx context.Context, g *attached) (code int, err error) {
	for _, pair := range agentEnv(nil, g) {
		if _, err = fmt.Fprintln(c.stdout, pair); err != nil {
			return 0, err
		}
	}
	if err = c.stdout.Flush(); err == nil {
		c.note("note: the session %s lasts until this ends: Ctrl-C", g.Name)
		<-ctx.Done()
	}
	return 0, err
}
