package worldctl

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/pglog"
	"github.com/worldkernel/worldkernel/serve/shared"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

func newMoveCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "move"},
		newMoveInCommand(c), newMoveOutCommand(c), newMoveToCommand(c))
}

// moveAnswer says what was moved.
type moveAnswer struct {
	*local.Moved
	Records journal.Seq `json:"records"`
}

func newMoveInCommand(c *cli) *cobra.Command {
	var lost string
	cmd := &cobra.Command{
		Use: "in DIR",
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.storeURL() == "" {
				return errWhichStore()
			}
			if c.world != "" {
				return usagef("worldctl move in "+shellWord(args[0]), "a world that moves keeps its id: leave -w out")
			}
			s, err := c.openStore()
			if err != nil {
				return err
			}
			done, err := s.MoveIn(cmd.Context(), c.path(args[0]), c.options(), lost)
			if err != nil {
				return c.notMovedIn(args[0], err)
			}
			done.From = args[0] // as it was typed
			return c.moved(done, func() {
				c.note("%s does not open any more; its files stay", args[0])
				if _, err := os.Stat(filepath.Join(c.path(args[0]), ".world", "secrets")); err == nil {
					c.note("note: .world/secrets stays, too: in a store secrets come from the environment")
				}
				c.hintNext("%s", c.typed(done.ID).Replace("worldctl status"))
			})
		},
	}
	cmd.Flags().StringVar(&lost, "lost", "", "the `COPY` that the world was moved out to, which is lost: DIR takes its place")
	return cmd
}

// notMovedIn says what to do about a world that was not moved into a store.
func (c *cli) notMovedIn(dir string, err error) error {
	here := inDirectory(dir)
	if stale := (*local.StaleError)(nil); errors.As(err, &stale) {
		return hinted(err, "move that one in; only if it is lost, and nothing goes on there: worldctl move in %s --lost %s", shellWord(dir), shellWord(stale.Copy()))
	}
	return advised(err, []advice{
		{local.ErrNoWorld, 0, "name the directory of a world"},
		{local.ErrNotSealed, 0, here + " keys seal"},
		{local.ErrExists, 0, "the store has it, and it goes on there; another world that begins as this one does: " + here + " fork NEW"},
		{local.ErrRecorded, 0, "it goes on in its directory: " + here + " run"},
	}...)
}

// inDirectory is how a verb about a world in a directory begins, where the environment may name a
// store.
func inDirectory(dir string) string {
	here := "worldctl -w " + shellWord(dir)
	if os.Getenv(storeEnv) != "" {
		return storeEnv + "= " + here
	}
	return here
}

func newMoveOutCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "out DIR",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.placeWorld(); err != nil {
				return err
			}
			done, err := c.stored.MoveOut(cmd.Context(), c.world, c.path(args[0]), c.options())
			if err != nil {
				return notCopied(args[0], err)
			}
			done.To = args[0] // as it was typed
			return c.moved(done, func() {
				c.hintNext("%s status", inDirectory(args[0]))
			})
		},
	}
}

// toStoreEnv is storeEnv of the store that a world moves to.
const toStoreEnv = "WORLDCTL_TO_STORE"

func newMoveToCommand(c *cli) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "to",
		RunE: func(cmd *cobra.Command, _ []string) error {
			to := cmp.Or(to, os.Getenv(toStoreEnv))
			if c.storeURL() == "" || to == "" {
				return usagef("type --store URL and --to-store URL, or put them into "+storeEnv+" and "+toStoreEnv, "which stores are meant?")
			}
			if _, err := c.place(c.world); err != nil {
				return err
			}
			other, err := shared.Open(cmd.Context(), to, shared.Options{Copies: c.path(c.copies), Take: c.take, Version: version().Version})
			if err != nil {
				return notReached(err)
			}
			defer other.Close()
			done, err := c.stored.MoveTo(cmd.Context(), c.world, other, c.options())
			if err != nil {
				return err
			}
			return c.moved(done, func() { c.hintNext("worldctl -w %s status, in that store", shellWord(done.ID)) })
		},
	}
	cmd.Flags().StringVar(&to, "to-store", "", "the `URL` of the store that the world moves to; "+toStoreEnv+" does the same")
	return cmd
}

// notReached says of which store it is that a world cannot move there.
func notReached(err error) error {
	err = fmt.Errorf("--to-store: %w", err)
	if refused := (*pglog.RefusedError)(nil); errors.As(err, &refused) && refused.State == pglog.NoStore {
		return &fault{err: err, hint: "make one there: " + storeEnv + "=URL worldctl store init, with the URL of --to-store"}
	}
	return err
}

func (c *cli) moved(done *local.Moved, next func()) error {
	return c.object("move", moveAnswer{done, done.Head.ID}, func() {
		fmt.Fprintf(c.stdout, "world %s has moved from %s to %s, with %s\n", done.ID, done.From, done.To, view.Number(uint64(done.Head.ID), "record"))
		next()
	})
}
