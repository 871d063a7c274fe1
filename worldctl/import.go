package worldctl

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

type importAnswer struct {
	World   string       `json:"world"`
	WorldID string       `json:"world_id"`
	Dir     string       `json:"dir"`
	Records uint64       `json:"records"`
	Head    journal.Head `json:"head"`
	CanRun  bool         `json:"can_run"` // it has receipt keys
}

func newImportCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "import"},
		newImportJournalCommand(c), newImportChatCommand(c), newImportMCPCommand(c))
}

func newImportJournalCommand(c *cli) *cobra.Command {
	var keyring string
	cmd := &cobra.Command{
		Use: "journal FILE",
		RunE: func(cmd *cobra.Command, args []string) error {
			var keys []byte
			if keyring != "" {
				var err error
				if keys, err = os.ReadFile(keyring); err != nil {
					return err
				}
			}
			return c.importJournal(cmd.Context(), args[0], keys)
		},
	}
	c.addBounds(cmd)
	c.addTime(cmd)
	c.addSize(cmd)
	cmd.Flags().StringVar(&keyring, "keyring", "", "the keyring `FILE` of the world that wrote it")
	return cmd
}

func (c *cli) importJournal(ctx context.Context, file string, keyring []byte) error {
	in, err := c.open(file)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	if c.world == "" {
		c.world = "."
	}
	report, stop := c.progress("records", 0)
	err = local.Import(ctx, c.world, in, keyring, c.throwaway(), report)
	stop()
	if err != nil {
		return notImported(err)
	}
	return c.with(func(lw *local.World) error {
		s := lw.Status()
		answer := importAnswer{
			World: s.World, WorldID: s.ID, Dir: c.world, Records: uint64(s.Head.ID), Head: s.Head, CanRun: lw.Keys().CanSign(),
		}
		return c.object("import-journal", answer, func() {
			fmt.Fprintf(c.stdout, "world %s is in %s, %s\n", s.World, c.world, view.Number(answer.Records, "record"))
			c.hintNext("worldctl verify")
		})
	})
}

// notImported says what to do about a file of which no world is made.
func notImported(err error) error {
	switch damage := (*bundle.DamageError)(nil); {
	case errors.As(err, &damage):
		return hinted(err, "export it again: what is there was changed or cut off")
	case errors.Is(err, bundle.ErrNotBundle):
		return hinted(err, "import takes a bundle, as export writes it without --format")
	case errors.Is(err, local.ErrPart):
		return hinted(err, "export it without --from and --redact; verify FILE checks a part")
	}
	return err
}
