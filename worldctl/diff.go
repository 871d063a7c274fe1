package worldctl

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

func newDiffCommand(c *cli) *cobra.Command {
	var limit uint64
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show how two moments differ, of this world or of others: cells, intents, cost",
		Long: `Show how two moments differ: where their journals part, which cells differ and where
their states do, which intents only one of them has and which ended otherwise, and
what effects cost since they parted. Intents are the same where cell, kind, params
and occurrence are: their keys differ between worlds.

A and B are moments of the world: a record (120 or #120), the end of a tick (t5),
head, records before it (-10), a snapshot. Or moments of other worlds: DIR, which
is its head, or DIR@MOMENT. A directory whose name reads as a moment is ./DIR.

` + diffCodes,
		Example: `  worldctl diff t5 head
  worldctl diff head ../fork
  worldctl diff ./monday@t100 ./tuesday@t100 -o json`,
		Args:        args(2, 2),
		Annotations: map[string]string{takesMoments: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			return trouble(c.diff(args[0], args[1], limit))
		},
	}
	cmd.Flags().Uint64Var(&limit, "limit", 0, "only the first `N` cells")
	return cmd
}

func (c *cli) diff(from, to string, limit uint64) (err error) {
	var worlds openWorlds
	defer func() { err = worlds.close(err) }()
	var sides [2]*side
	for i, name := range []string{from, to} {
		if sides[i], err = c.side(&worlds, name); err != nil {
			return err
		}
	}
	answer, err := compare(sides[0], sides[1], limit)
	if err != nil {
		return err
	}
	if err := c.object("diff", answer, func() { c.showComparison(answer, sides[0], sides[1]) }); err != nil || answer.Same {
		return err
	}
	return errDifferent
}

// openWorlds are worlds that are open together, each once.
type openWorlds struct {
	paths  []string
	worlds []*local.World
}

// look opens the world in a directory to be read, if it is not open yet. What is
// open in this process already is not among those that close gives up.
func (o *openWorlds) look(c *cli, dir string) (*local.World, error) {
	if c.owns(c.path(dir)) {
		return c.owned, nil
	}
	path, err := filepath.Abs(c.path(dir))
	if err == nil {
		if followed, err := filepath.EvalSymlinks(path); err == nil {
			path = followed
		}
	}
	for i, known := range o.paths {
		if known == path {
			return o.worlds[i], nil
		}
	}
	lw, err := local.Look(c.path(dir), c.options())
	if err != nil {
		return nil, ownedIn(dir, err)
	}
	o.paths, o.worlds = append(o.paths, path), append(o.worlds, lw)
	return lw, nil
}

// close gives all of them up. It returns the error that there was before, or the
// first of its own.
func (o *openWorlds) close(err error) error {
	for _, lw := range o.worlds {
		if closed := lw.Close(); err == nil {
			err = closed
		}
	}
	return err
}

// side is one of two moments that are compared.
type side struct {
	records
	moment *world.Moment
	end    journal.Seq // the last record that belongs to it
}

func sideOf(lw *local.World, m *world.Moment) *side {
	return &side{records: recordsOf(lw), moment: m, end: m.Head().ID}
}

// side finds the moment that a person named: of the world that is meant or of
// another one. A bare name that is both is a moment.
func (c *cli) side(worlds *openWorlds, name string) (*side, error) {
	if cut := strings.LastIndex(name, "@"); cut > 0 {
		return c.sideIn(worlds, name[:cut], name[cut+1:])
	}
	if strings.ContainsRune(name, filepath.Separator) || name == "." || name == ".." {
		return c.sideIn(worlds, name, headName)
	}
	dir, err := c.dir()
	if err == nil {
		if _, err := worlds.look(c, dir); err != nil {
			return nil, err
		}
		var s *side
		if s, err = c.sideIn(worlds, dir, name); err == nil {
			return s, nil
		}
	}
	if s, other := c.sideIn(worlds, name, headName); !errors.Is(other, local.ErrNoWorld) {
		return s, other
	}
	return nil, hinted(fmt.Errorf("%q: %w", name, err), "%s; or DIR or DIR@MOMENT for another world", momentForms)
}

// sideIn finds a moment of the world in a directory.
func (c *cli) sideIn(worlds *openWorlds, dir, at string) (*side, error) {
	lw, err := worlds.look(c, dir)
	if err != nil {
		return nil, err
	}
	m, err := momentAt(lw, at)
	if err != nil {
		return nil, err
	}
	return sideOf(lw, m), nil
}
