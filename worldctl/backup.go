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
		Use:   "backup DIR",
		Short: "Make a copy of the world to restore it from",
		Long: `Make a copy of the world in DIR, which must be empty or not there: the journal
and all that belongs to it, the keyring as it is, sealed if that is sealed, and the
files beside world.yaml. Not .world/secrets: keep those yourself.

On the same disk the copy shares its files with the world, so it helps against
mistakes and not against a broken disk: back up to another one for that.

The copy is a world with the same id and keys. Do not run it beside this one: make
another world with fork, or restore it in the place of a lost one.`,
		Example: `  worldctl -w town backup /mnt/backups/town-monday
  worldctl restore /mnt/backups/town-monday -w town`,
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
		Use:   "restore BACKUP -w DIR",
		Short: "Make a world of a backup",
		Long: `Make a world in DIR, which must be empty or not there, of what backup made. Its
anchor is checked, and it is loaded, before the world is there. No world is written
over: move what is in DIR away first.

A restored world does not know what happened after the backup. Effects that were
performed since are unknown to its ledger, and it may perform them again, under the
same external keys where it comes the same way. Before you run it:

  - where the outside honours the external key, such as an Idempotency-Key, it
    does nothing twice;
  - where the lost world can still be opened, let it answer what it has done:
    run --effects recorded:OLD until that has no answer, and run only then;
  - else compare intent list with what the outside has.

Secrets are in no backup: bring .world/secrets back yourself.

With --store the world is made in the store, by its own id, where the store has none of
that id, and none that was moved out of it.`,
		Example: `  mv town town.old
  worldctl restore /mnt/backups/town-monday -w town
  worldctl -w town run --effects recorded:town.old`,
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
