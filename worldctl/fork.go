package worldctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newForkCommand(c *cli) *cobra.Command {
	var at, effects, patch string
	var seed uint64
	var f local.ForkOptions
	cmd := &cobra.Command{
		Use: "fork [DIR]",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := c.forkDir(args, f.ID)
			if err != nil {
				return err
			}
			f.Actor, f.Effects = c.by, journal.ForkEffects(effects)
			if cmd.Flags().Changed("seed") {
				f.Seed = &seed
			}
			if f.Amend, err = c.readAmendment(patch); err != nil {
				return err
			}
			ctx, cancel := c.timed(cmd.Context())
			defer cancel()
			return c.with(func(lw *local.World) error { return c.fork(ctx, lw, dir, at, f) })
		},
	}
	addAt(cmd, &at, "fork at this")
	cmd.Flags().StringVar(&effects, "effects", "", "`WHO` performs the fork's effects: hold, live or recorded; if not given, recorded with --live, else hold")
	cmd.Flags().StringVar(&f.ID, "id", "", "the fork's `ID`; a random one if not given")
	addLive(cmd, &f.Live)
	addPatch(cmd, &patch)
	addSeed(cmd, &seed)
	addActor(cmd, "does it")
	c.addBounds(cmd)
	c.addTime(cmd)
	return cmd
}

// forkDir is where a fork is to be; empty: beside its parent, in a store.
func (c *cli) forkDir(args []string, id string) (string, error) {
	inStore := c.storeURL() != "" || c.origin.Stored
	switch {
	case len(args) > 0:
		return args[0], nil
	case !inStore:
		return "", usagef("worldctl fork DIR", "fork needs to know where to")
	case id == "":
		return "", usagef("worldctl fork --id NEW has it in the store, worldctl fork DIR in a directory", "fork needs to know where to")
	}
	return "", nil
}

func (c *cli) fork(ctx context.Context, lw *local.World, dir, at string, f local.ForkOptions) error {
	if at != "" {
		var err error
		if f.At, err = recordsOf(lw).At(at); err != nil {
			return err
		}
	}
	asked := cmp.Or(f.At, lw.Head().ID)
	done, err := c.makeFork(ctx, lw, dir, f)
	if err != nil {
		return notCopied(dir, unmade(err, f.Amend))
	}
	if asked > done.At {
		c.note("note: #%d is in the middle of a tick; the fork begins before that", asked)
	}
	return c.object("fork", done, func() {
		then := func(verb string) string { return inDirectory(dir) + " " + verb }
		if dir == "" {
			then = func(verb string) string { return c.typed(done.ID).Replace("worldctl " + verb) }
			fmt.Fprintf(c.stdout, "world %s is in the store, forked from %s at #%d\n", done.ID, done.Parent, done.At)
		} else {
			fmt.Fprintf(c.stdout, "world %s is in %s, forked from %s at #%d, %s\n", done.ID, dir, done.Parent, done.At, sharing(done.Linked))
		}
		next := map[journal.ForkEffects]string{
			journal.ForkHold:     "its effects wait for you: " + then("intent list --state awaiting_approval"),
			journal.ForkLive:     "its effects of these kinds are performed, for real, and others wait for you: " + strings.Join(done.Live, ", "),
			journal.ForkRecorded: "its effects are answered by what this world recorded",
		}[done.Effects]
		if done.Effects == journal.ForkRecorded && len(done.Live) > 0 {
			next += ", and what it has not asked for is performed, for real, of these kinds: " + strings.Join(done.Live, ", ")
		}
		c.hintNext("%s; %s", then("run"), next)
	})
}

// makeFork makes a fork in a directory, as it was typed, or beside its parent, and says what was under way then.
func (c *cli) makeFork(ctx context.Context, lw *local.World, dir string, f local.ForkOptions) (*local.Forked, error) {
	var done *local.Forked
	var err error
	if dir == "" {
		done, err = lw.ForkBeside(ctx, f)
	} else if done, err = lw.Fork(ctx, c.path(dir), f); err == nil {
		done.Dir = dir
	}
	if err != nil || done.Effects == journal.ForkRecorded {
		return done, err
	}
	under := uint64(0)
	for _, e := range recordsOf(lw).Ledger() {
		if at := uint64(done.At); e.Started > 0 && e.Started <= at && (e.Finished == 0 || e.Finished > at) {
			under++
		}
	}
	if under > 0 {
		c.note("note: %s under way at #%d: in doubt in the fork, which does not see what came of it here later", view.Number(under, "effect"), done.At)
	}
	return done, nil
}

// sharing says what a copy takes of the disk.
func sharing(linked bool) string {
	if linked {
		return "linked: what both have is on the disk once"
	}
	return "copied"
}

// isFile reports whether something is there that is no directory.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// notCopied says what to do about a copy of a world that was not made.
func notCopied(dir string, err error) error {
	const emptyDirectory = "name a directory that is empty or not there"
	switch {
	case errors.Is(err, local.ErrExists):
		hint := "no world is written over: name another directory"
		if name := filepath.Base(dir); name != "." && name != ".." { // these have no name to move them by
			here := ""
			if strings.HasPrefix(dir, "-") { // which mv would take for an option
				here = "./"
			}
			hint += ", or move that one away: mv " + shellWord(here+dir) + " " + shellWord(here+filepath.Clean(dir)+".old")
		}
		return hinted(err, "%s", hint)
	case errors.Is(err, syscall.ENOTDIR) && isFile(dir):
		return &fault{err: err, code: exitConflict, hint: emptyDirectory}
	}
	other := "choose another --id, or none: then it is a random one"
	if dir == "" {
		other = "choose another --id"
	}
	return advised(err, []advice{
		{local.ErrNotEmpty, exitConflict, emptyDirectory},
		{local.ErrRecordedBeside, exitUsage, "worldctl fork DIR --effects recorded has it in a directory, where it runs; in the store --effects hold or live"},
		{world.ErrSameWorld, exitUsage, other},
		{world.ErrForkLive, exitUsage, "--live KIND names what is performed, such as --live model.ask; several times, or with commas"},
		{world.ErrForkEffects, exitUsage, "type --effects hold, --effects live or --effects recorded"},
	}...)
}
