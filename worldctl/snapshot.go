package worldctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/snapshot"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newSnapshotCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "snapshot"},
		newSnapshotCreateCommand(c), newSnapshotListCommand(c), newSnapshotShowCommand(c),
		newSnapshotPruneCommand(c), newSnapshotPinCommand(c), newSnapshotRetentionCommand(c),
		newSnapshotSaveCommand(c), newSnapshotRestoreCommand(c))
}

// acting makes a verb that does something with the world that is meant, for the journal by somebody.
func (c *cli) acting(use string, do func(ctx context.Context, lw *local.World, args []string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, RunE: c.onWorld(do)}
	addActor(cmd, "does it")
	return cmd
}

func newSnapshotCreateCommand(c *cli) *cobra.Command {
	var label string
	cmd := &cobra.Command{
		Use: "create [NAME]",
		RunE: func(cmd *cobra.Command, args []string) error {
			name := strings.Join(args, "")
			switch {
			case len(args) == 1 && name == "":
				return fmt.Errorf("%w: it is empty", snapshot.ErrBadName)
			case view.ReadsAsMoment(name):
				return usagef("choose another name", "%w: %q reads as a moment: %s", snapshot.ErrBadName, name, momentForms)
			}
			return c.with(func(lw *local.World) error {
				return answer(c, "snapshot", func(s snapshot.Snapshot) {
					fmt.Fprintf(c.stdout, "snapshot %s at #%d, tick %d, state root %s\n", s.Name, s.Record, s.Time, s.State)
					c.hintNext("worldctl rollback %s --reason TEXT returns to it", s.Name)
				})(local.Change(lw, func(w *world.World) (snapshot.Snapshot, error) { return w.Snapshot(cmd.Context(), name, label, c.by) }))
			})
		},
	}
	cmd.Flags().StringVarP(&label, "message", "m", "", "what it is for: `TEXT`")
	addActor(cmd, "does it")
	return cmd
}

func newSnapshotListCommand(c *cli) *cobra.Command {
	var limit uint64
	cmd := &cobra.Command{
		Use: "list",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, _ []string) error {
			var kept []snapshot.Snapshot
			lw.View(func(w *world.Moment) { kept = w.Snapshots() })
			return list(c, "snapshot-list", "snapshots", first(allItems(kept), limit), columns[snapshot.Snapshot]{
				header: table.Row{"name", "record", "tick", "cells", "state root", "hash", "pinned", "label"},
				row: func(s snapshot.Snapshot) table.Row {
					pinned := ""
					if s.Pinned {
						pinned = "pinned"
					}
					return table.Row{s.Name, fmt.Sprintf("#%d", s.Record), s.Time, s.Cells, s.State.String()[:12], s.Hash.String()[:12], pinned, s.Label}
				},
				none: "no snapshots yet: worldctl snapshot create",
			})
		}),
	}
	addLimit(cmd, &limit, "snapshots")
	return cmd
}

func newSnapshotPruneCommand(c *cli) *cobra.Command {
	return c.acting("prune NAME", func(ctx context.Context, lw *local.World, args []string) error {
		return answer(c, "snapshot-pruned", func(done view.Cataloged) {
			fmt.Fprintf(c.stdout, "#%d %s is gone\n", done.Record, done.Name)
		})(recordsOf(lw).Prune(ctx, args[0], c.by))
	})
}

func newSnapshotPinCommand(c *cli) *cobra.Command {
	var off bool
	cmd := c.acting("pin NAME", func(ctx context.Context, lw *local.World, args []string) error {
		return answer(c, "snapshot-pinned", func(done view.Pinned) {
			fmt.Fprintf(c.stdout, "#%d %s pinned: %t\n", done.Record, done.Name, done.Pinned)
		})(recordsOf(lw).Pin(ctx, args[0], !off, c.by))
	})
	cmd.Flags().BoolVar(&off, "off", false, "let the retention decide again")
	return cmd
}

func newSnapshotRetentionCommand(c *cli) *cobra.Command {
	var most uint64
	cmd := c.acting("retention --max N", func(ctx context.Context, lw *local.World, _ []string) error {
		done := struct {
			Max    uint64      `json:"max"`
			Record journal.Seq `json:"record"`
			Pruned []string    `json:"pruned"`
		}{Max: most}
		err := lw.Update(func(w *world.World) (err error) {
			done.Record, done.Pruned, err = w.Retain(ctx, journal.SnapshotRetention{Max: most, Actor: c.by})
			return err
		})
		return answer(c, "snapshot-retention", func(any) {
			fmt.Fprintf(c.stdout, "#%d at most %d snapshots are kept\n", done.Record, most)
			if len(done.Pruned) > 0 {
				fmt.Fprintf(c.stdout, "gone: %s\n", strings.Join(done.Pruned, ", "))
			}
		})(done, err)
	})
	cmd.Flags().Uint64Var(&most, "max", 0, "keep at most `N`")
	return cmd
}

func newSnapshotShowCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, args []string) error {
			return answer(c, "snapshot", c.showSnapshot)(recordsOf(lw).Snapshot(args[0]))
		}),
	}
}

func (c *cli) showSnapshot(s snapshot.Snapshot) {
	c.facts(
		[2]any{"name", s.Name},
		[2]any{"record", fmt.Sprintf("#%d", s.Record)},
		[2]any{"at", fmt.Sprintf("#%d", s.At)},
		[2]any{"tick", s.Time},
		[2]any{"chain root", s.Root},
		[2]any{"state root", s.State},
		[2]any{"cells", s.Cells},
		[2]any{"label", s.Label},
		[2]any{"pinned", s.Pinned},
		[2]any{"hash", s.Hash},
	)
}

// savedSuffix ends the names of saved snapshots in a directory.
const savedSuffix = ".snapshot"

func newSnapshotSaveCommand(c *cli) *cobra.Command {
	var to *target
	cmd := &cobra.Command{
		Use: "save NAME DIR|FILE",
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
		Use: "restore DIR|FILE",
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
