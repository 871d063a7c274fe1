package worldctl

import (
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newUpgradeCommand(c *cli) *cobra.Command {
	var x proposeFlags
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Propose the newest engines: of reducers, and of policies",
		Long: `Propose the newest engines: of reducers, and of policies. A world runs on the versions that
it was made with, and replays under them for ever, whatever newer ones this program has.

Nothing changes by that. It is a change of the rules like any other, and of nothing but
the engines: worldctl shadow says what would have been otherwise, then it is approved
and applied. What was before is replayed by the engines of then.

Exit code 2 if the world runs on the newest engines already.`,
		Example: `  worldctl upgrade -m "gas is time"
  worldctl upgrade --key ~/.ssh/id_ed25519`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(func(lw *local.World) error {
				return c.proposeChange(cmd.Context(), lw, &x, "the newest engines", upgraded)
			})
		},
	}
	addMessage(cmd, &x.reason)
	addKey(cmd, &x.key)
	addActor(cmd, &x.as)
	return cmd
}

// upgraded is a world.Amendment.
func upgraded(base *manifest.Manifest) (*manifest.Manifest, map[manifest.Hash][]byte, error) {
	next, err := world.Upgraded(base)
	return next, nil, err
}
