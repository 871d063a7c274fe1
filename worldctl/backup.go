package worldctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/serve/shared"
	"github.com/worldkernel/worldkernel/world/local"
)

func newBackupCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "backup DIR",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, args []string) error {
			done, err := lw.Backup(c.path(args[0]))
			if err != nil {
				return notCopied(args[0], err)
			}
			done.Dir = args[0] // as it was typed
			return c.object("backup", done, func() {
				fmt.Fprintf(c.stdout, "world %s is backed up to %s, up to #%d, %s\n", done.ID, args[0], done.Head.ID, sharing(done.Linked))
				to := "-w DIR"
				if c.storeURL() != "" {
					to = "-w " + done.ID
				}
				c.note("to bring it back: worldctl restore %s %s", shellWord(args[0]), to)
			})
		}),
	}
}

func newRestoreCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "restore BACKUP -w DIR",
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.storeURL() != "" {
				return c.restoreStored(cmd.Context(), args[0])
			}
			if c.world == "" {
				return usagef("worldctl restore "+args[0]+" -w DIR", "restore needs to know where to")
			}
			done, err := local.Restore(args[0], c.world, c.throwaway())
			if err != nil {
				return notCopied(c.world, notBackup(args[0], err))
			}
			return c.object("restore", done, func() {
				fmt.Fprintf(c.stdout, "world %s is in %s, as it was at #%d, %s\n", done.ID, c.world, done.Head.ID, sharing(done.Linked))
				c.noteRestored()
				c.hintNext("worldctl status")
			})
		},
	}
}

func (c *cli) noteRestored() {
	c.note("note: it does not know what happened after the backup, and may perform again what was performed since; worldctl restore --help says what to do")
}

// restoreStored makes a world of a backup in a store.
func (c *cli) restoreStored(ctx context.Context, backup string) error {
	s, err := c.openStore()
	if err != nil {
		return err
	}
	done, err := s.Restore(ctx, c.path(backup), c.world, c.throwaway())
	if other, ok := errors.AsType[*shared.OtherWorldError](err); ok {
		return &fault{err: err, code: exitUsage, hint: "type -w " + other.ID}
	}
	if moved := (*local.MovedError)(nil); errors.As(err, &moved) {
		return hinted(err, "it lives there: worldctl move in DIR brings it back; only if it is lost: %s= worldctl restore %s -w DIR, and worldctl move in DIR", storeEnv, shellWord(backup))
	}
	if errors.Is(err, local.ErrNoWorld) || isFile(backup) {
		return notBackup(backup, err)
	}
	if err != nil {
		return c.notMovedIn(backup, err)
	}
	return c.object("restore", done, func() {
		fmt.Fprintf(c.stdout, "world %s is in the store, as it was at #%d\n", done.ID, done.Head.ID)
		c.noteRestored()
		c.hintNext("%s", c.typed(done.ID).Replace("worldctl status"))
	})
}

// notBackup says what to do about what is no backup.
func notBackup(backup string, err error) error {
	if errors.Is(err, local.ErrNoWorld) || isFile(backup) {
		return hinted(err, "name a directory that a backup has made, not %s", backup)
	}
	return err
}
