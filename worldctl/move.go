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
	return group(&cobra.Command{Use: "move", Short: "Move a world from a directory into a store on PostgreSQL, back, and between stores"},
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
		Use:   "in DIR",
		Short: "Move the world in a directory into a store",
		Long: `Move the world in DIR into the store of --store, where its id names it: its journal and
all that belongs to that, effects under way, and its keyring, which has to be sealed. It
is copied, compared, and then lives there; DIR says where it went and does not open any
more. At no moment there are two. Interrupted, the same again goes on: after a kill when
the store has seen that process gone, after 10 s.

The files in DIR stay: world.yaml, which is a world's no more, and .world/secrets, which in
a store come from the environment.

A world that was moved out of a store comes back from the directory that it was moved to, or
that it has come to since by other moves. Copies, such as a backup, do not: that one lives.
Where it is lost, --lost with the word after "copy" in store status has DIR take its place,
as it is: what was done there since is not known to it, and may be done again.`,
		Example: `  worldctl -w town keys seal
  worldctl move in town --store 'postgres://kernel@db.example.com/worlds?sslmode=verify-full'`,
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
		Use:   "out DIR",
		Short: "Move a world out of a store, into a directory",
		Long: `Move the world of -w out of the store of --store into DIR, which must be empty or not
there. It is copied, compared, and then lives there; the store says where it went. At no
moment there are two. Interrupted, the same again goes on: after a kill when the store
has seen that process gone, after 10 s, or at once with --take. A node that has the world
is asked to give it up, which it does when effects under way have ended.

DIR has no world.yaml, which the world does not need: the manifest and its sources are in
the journal. Bring that and other files from where they are kept. What was permitted and
has no result may have been done.`,
		Example: "  worldctl -w town move out town-home --store 'postgres://kernel@db.example.com/worlds?sslmode=verify-full'",
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
		Use:   "to",
		Short: "Move a world from one store into another",
		Long: `Move the world of -w from the store of --store into that of --to-store: out, into a
directory beside the copies, and in from there. At no moment there are two. Interrupted, the
same again on this machine goes on: after a kill when the stores have seen that process gone,
after 10 s. A node that has the world is asked to give it up, which it does when effects
under way have ended, and opens it from there if it has both stores.

The passphrase opens the keyring, and is the same there.`,
		Example: "  worldctl -w town move to --store 'postgres://kernel@db1/worlds?sslmode=verify-full' --to-store 'postgres://kernel@db2/worlds?sslmode=verify-full'",
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
