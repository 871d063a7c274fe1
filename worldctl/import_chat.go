package worldctl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/lab/chat"
	"github.com/worldkernel/worldkernel/world/local"
)

type importChatAnswer struct {
	World   string `json:"world"`
	WorldID string `json:"world_id"`
	Dir     string `json:"dir"`
	chat.Sums
}

func newImportChatCommand(c *cli) *cobra.Command {
	var flags creationFlags
	cmd := &cobra.Command{
		Use: "chat FILE",
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.world == "" {
				return usagef("worldctl import chat "+args[0]+" -w DIR", "import chat needs the directory of the new world")
			}
			birth, err := flags.birth(cmd)
			if err != nil {
				return err
			}
			return c.importChat(cmd.Context(), args[0], birth)
		},
	}
	flags.add(cmd)
	return cmd
}

func (c *cli) importChat(ctx context.Context, file string, birth local.CreateOptions) error {
	data, err := c.readContent(file)
	if err != nil {
		return err
	}
	rec, err := chat.Read(file, data)
	if err != nil {
		return err
	}
	a := importChatAnswer{Dir: c.world, Sums: rec.Sums()}
	report, stop := c.progress("import "+filepath.Base(file), uint64(a.Messages))
	err = rec.Create(ctx, c.world, birth, c.options(), report)
	stop()
	if errors.Is(err, local.ErrNotEmpty) {
		return hinted(err, "choose another directory: one that does not exist is made")
	}
	if err != nil {
		return err
	}
	return c.with(func(lw *local.World) error {
		s := lw.Status()
		a.World, a.WorldID = s.World, s.ID
		return c.object("import-chat", a, func() {
			c.facts(
				[2]any{"world", a.World}, [2]any{"id", a.WorldID}, [2]any{"runs", a.Runs},
				[2]any{"messages", a.Messages}, [2]any{"tool calls", fmt.Sprintf("%d, %d failed, %d without an answer", a.Calls, a.Failed, a.Lost)},
			)
			if a.Lost > 0 {
				c.note("\nWhat came of a call without an answer is in doubt: worldctl intent list --state in_doubt")
			}
			c.note("\nNext:\n  worldctl -w %s run --until-idle\n  worldctl -w %s cell list", shellWord(a.Dir), shellWord(a.Dir))
		})
	})
}
