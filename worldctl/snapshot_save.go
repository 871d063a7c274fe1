package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world/local"
)

// savedSuffix ends the names of saved snapshots in a directory.
const savedSuffix = ".snapshot"

func newSnapshotSaveCommand(c *cli) *cobra.Command {
	var to *target
	cmd := &cobra.Command{
		Use:   "save NAME DIR|FILE",
		Short: "Write a snapshot to a file, to keep it elsewhere",
		Long: `Write a snapshot to a file, or as NAME` + savedSuffix + ` into a directory: a signed bundle of the
journal up to it, from which verify proves its cells, mailboxes and timers. A file that
is there already is written over with --force only.`,
		Example: "  worldctl snapshot save before-lunch /mnt/backup",
		RunE: c.onWorld(func(ctx context.Context, lw *local.World, args []string) error {
			return c.saveSnapshot(ctx, lw, to, args[0], args[1])
		}),
	}
	to = c.savesTo(cmd, func(args []string) string { return args[1] })
	return cmd
}

func (c *cli) saveSnapshot(ctx context.Context, lw *local.World, save *target, name, to string) error {
	s, err := recordsOf(lw).Snapshot(name)
	if err != nil {
		return err
	}
	if at, err := os.Stat(c.path(to)); err == nil && at.IsDir() {
		to = filepath.Join(to, s.Name+savedSuffix)
	}
	err = save.write(to, func(w io.Writer) error {
		_, err := lw.SaveSnapshot(ctx, w, s.Name)
		return err
	})
	if err != nil {
		return err
	}
	done := struct {
		snapshot.Snapshot
		File string `json:"file"`
	}{s, to}
	return c.object("snapshot-saved", done, func() {
		fmt.Fprintf(c.stdout, "snapshot %s, hash %s, is in %s\n", s.Name, s.Hash, to)
	})
}

func newSnapshotRestoreCommand(c *cli) *cobra.Command {
	var x rollbackFlags
	cmd := &cobra.Command{
		Use:   "restore DIR|FILE",
		Short: "Roll back to the snapshot that a file holds, if it is one of this world's",
		Long: `Roll back to the snapshot that a file of snapshot save holds, or the only one in a
directory: if the file is whole and its records are those of this world.
` + rollbackHelp,
		Example: `  worldctl snapshot restore /mnt/backup/before-lunch.snapshot --reason "as we agreed" --ack`,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := savedIn(c.path(args[0]))
			if err != nil {
				return err
			}
			return c.with(func(lw *local.World) error {
				f, err := os.Open(file)
				if err != nil {
					return err
				}
				s, err := lw.ReadSnapshot(cmd.Context(), f)
				_ = f.Close() // it was only read
				if err != nil {
					return notKept(file, err)
				}
				return c.rollback(cmd.Context(), lw, &s, &x)
			})
		},
	}
	x.add(cmd)
	return cmd
}

// savedIn returns the saved snapshot that a path means: itself, or the only one
// in the directory that it is.
func savedIn(path string) (string, error) {
	if at, err := os.Stat(path); err != nil || !at.IsDir() {
		return path, nil // opening it says what is wrong
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "", err
	}
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == savedSuffix {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) != 1 {
		return "", usagef("name the file", "%s holds %d files *%s, and one can be meant", path, len(files), savedSuffix)
	}
	return files[0], nil
}

// notKept says what to do about a file whose snapshot the world has let go.
func notKept(file string, err error) error {
	err = fmt.Errorf("%s: %w", file, err)
	if errors.Is(err, snapshot.ErrNoSnapshot) {
		return hinted(err, "the world has deleted that snapshot, and returns only to those it keeps: worldctl snapshot list; next time, worldctl snapshot pin NAME")
	}
	return err
}
