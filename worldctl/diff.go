package worldctl

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
)

// manifestWord stands before moments whose manifests are meant.
const manifestWord = "manifest"

func newDiffCommand(c *cli) *cobra.Command {
	var limit uint64
	var patch bool
	cmd := &cobra.Command{
		Use:         "diff [CELL | manifest] A B",
		Args:        args(2, 3),
		Annotations: map[string]string{takesMoments: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			what, a, b := "", args[0], args[1]
			if len(args) == 3 {
				what, a, b = args[0], args[1], args[2]
			}
			if patch && what == "" {
				what = manifestWord
			}
			return trouble(c.diff(what, [2]string{a, b}, limit, patch))
		},
	}
	addLimit(cmd, &limit, "cells")
	cmd.Flags().BoolVar(&patch, "patch", false, "of manifests: print the patch that makes B of A, as JSON")
	return cmd
}

// diff compares what two names are of: cells where what names one, manifests, or
// moments.
func (c *cli) diff(what string, names [2]string, limit uint64, patch bool) (err error) {
	var worlds openWorlds
	defer func() { err = worlds.close(err) }()
	switch {
	case what == manifestWord || isManifestFile(names[0]) || isManifestFile(names[1]):
		return c.diffManifests(&worlds, names, patch)
	case what != "":
		return c.with(func(lw *local.World) error { return c.diffCell(lw, what, names) })
	}
	var sides [2]*view.Side
	for i, name := range names {
		if sides[i], err = c.side(&worlds, name); err == nil {
			continue
		}
		_, other := c.edition(&worlds, name)
		if other == nil {
			return c.diffManifests(&worlds, names, patch)
		}
		if _, notHash := canon.ParseHash(name); notHash == nil {
			err = other // nothing but a manifest is named by all of its hash
		}
		return err
	}
	answer, err := view.Compare(sides[0], sides[1], view.Most{Cells: limit})
	if err != nil {
		return err
	}
	return unless(answer.Same, c.object("diff", answer, func() { c.showComparison(answer, sides[0], sides[1], 0) }))
}

func (c *cli) diffCell(lw *local.World, name string, at [2]string) error {
	cell, err := parseCell(name)
	if err != nil {
		return err
	}
	answer, err := recordsOf(lw).CompareCell(cell, at[0], at[1])
	if err != nil {
		return err
	}
	return unless(answer.Same, c.object("state-diff", answer, func() {
		for _, x := range answer.State {
			fmt.Fprintln(c.stdout, c.lineOf(&x))
		}
		if answer.Same {
			c.note("%s has the same state at #%d and #%d", name, answer.A, answer.B)
		}
	}))
}

// unless is the error of a diff whose answer has been given: that they differ, if they
// do.
func unless(same bool, err error) error {
	if err == nil && !same {
		err = errDifferent
	}
	return err
}

// trouble gives an error of a diff verb, that they differ aside, the exit code
// that is not taken for an answer.
func trouble(err error) error {
	code, hint := exitOK, ""
	if err != nil {
		code, hint = judge(err)
	}
	if err == nil || errors.Is(err, errDifferent) || code == exitInterrupted {
		return err
	}
	return &fault{err: err, code: exitUsage, hint: hint}
}

// openWorlds are worlds that are open together, each once.
type openWorlds struct {
	paths  []string
	worlds []*local.World
}

// openReadOnly opens the world in a directory to be read, if it is not open yet. What is
// open in this process already is not among those that close gives up.
func (o *openWorlds) openReadOnly(c *cli, dir string) (*local.World, error) {
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
	lw, err := c.opened(c.path(dir), c.in(dir, c.options()), local.OpenReadOnly)
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

// side finds the moment that a person named: of the world that is meant or of
// another one. A bare name that is both is a moment.
func (c *cli) side(worlds *openWorlds, name string) (*view.Side, error) {
	if cut := strings.LastIndex(name, "@"); cut > 0 {
		return c.sideIn(worlds, name[:cut], name[cut+1:])
	}
	if strings.ContainsRune(name, filepath.Separator) || name == "." || name == ".." {
		return c.sideIn(worlds, name, view.HeadName)
	}
	dir, err := c.dir()
	if err == nil {
		if _, err := worlds.openReadOnly(c, dir); err != nil {
			return nil, err
		}
		var s *view.Side
		if s, err = c.sideIn(worlds, dir, name); err == nil {
			return s, nil
		}
	}
	if s, other := c.sideIn(worlds, name, view.HeadName); !errors.Is(other, local.ErrNoWorld) {
		return s, other
	}
	if errors.As(err, new(*reducer.MissingError)) {
		return nil, err // it is a moment, which this program cannot compute
	}
	return nil, hinted(fmt.Errorf("%q: %w", name, err), "%s; or DIR or DIR@MOMENT for another world, or a world.yaml", momentForms)
}

// sideIn finds a moment of the world in a directory.
func (c *cli) sideIn(worlds *openWorlds, dir, at string) (*view.Side, error) {
	lw, err := worlds.openReadOnly(c, dir)
	if err != nil {
		return nil, err
	}
	m, err := recordsOf(lw).World(at)
	if err != nil {
		return nil, err
	}
	return &view.Side{Journal: recordsOf(lw), Moment: m}, nil
}

// summary is a whole comparison in one line.
func summary(x *view.Comparison, unknown int) string {
	if x.Same && unknown > 0 {
		return fmt.Sprintf("what is known is the same, and %s unknown", cellsAre(unknown))
	}
	if x.Same {
		return "the same: cells, intents, timers and scheduled events"
	}
	d := &x.Found
	line := fmt.Sprintf("cells: %d added, %d gone, %d changed; intents: %d added, %d gone, %d changed",
		len(d.CellsAdded), len(d.CellsGone), len(d.CellsChanged), len(d.IntentsAdded), len(d.IntentsGone), len(d.IntentsChanged))
	return line + "; cost: " + view.Arrow(view.Cost(x.Cost.A), view.Cost(x.Cost.B))
}

func (c *cli) showComparison(x *view.Comparison, a, b *view.Side, unknown int) {
	fmt.Fprintln(c.stdout, summary(x, unknown))
	c.facts([2]any{"a", x.A}, [2]any{"b", x.B}, [2]any{"state root", view.Arrow(x.A.StateRoot, x.B.StateRoot)},
		[2]any{"parted", fmt.Sprintf("after #%d", x.Parted.Common)},
		[2]any{"a goes on", c.tellRecord(a.Journal, x.Parted.A)}, [2]any{"b goes on", c.tellRecord(b.Journal, x.Parted.B)},
		[2]any{"cost since", view.Arrow(view.Cost(x.Cost.A), view.Cost(x.Cost.B))})
	if x.Same {
		return
	}
	c.showCells(x)
	c.showIntents(&x.Intents)
}

// tellRecord says what a record records; 0: there is none.
func (c *cli) tellRecord(j view.Journal, id journal.Seq) string {
	if id == 0 {
		return "no further"
	}
	e, err := j.Entry(id)
	if err != nil {
		return err.Error()
	}
	text, err := view.Describer{Journal: j, Full: c.verbose}.Describe(e)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("with #%d %s", id, text)
}

func (c *cli) showIntents(x *view.Differing[view.IntentDifference]) {
	var rows []table.Row
	for _, some := range []struct {
		is  string
		all []view.IntentDifference
	}{{"added", x.Added}, {"gone", x.Gone}, {"changed", x.Changed}} {
		for i := range some.all {
			d := &some.all[i]
			params := view.Describer{Full: c.verbose}.Data(d.Params)
			rows = append(rows, table.Row{d.Cell, d.Kind, params, some.is, standsAs(d.A) + " -> " + standsAs(d.B)})
		}
	}
	tabulate(c, table.Row{"cell", "asks for", "params", "is", "stands"}, rows, func(row *table.Row) table.Row { return *row })
}

// standsAs prints where an intent stands, and why where it came to nothing.
func standsAs(s *view.IntentSide) string {
	switch {
	case s == nil:
		return "not asked"
	case s.Reason != "":
		return string(s.State) + " (" + visible(s.Reason, "") + ")"
	}
	return string(s.State)
}

func (c *cli) showCells(a *view.Comparison) {
	cells := a.Cells.ByName()
	tabulate(c, table.Row{"cell", "is", "steps", "mailbox", "halted"}, cells, func(d *view.CellDifference) table.Row {
		left, right := cmp.Or(d.A, new(view.CellLine)), cmp.Or(d.B, new(view.CellLine))
		return table.Row{d.Cell, d.Change, view.Arrow(left.N, right.N), view.Arrow(left.Mailbox, right.Mailbox), view.Arrow(left.Halted, right.Halted)}
	})
	for _, d := range cells {
		for _, x := range d.State {
			fmt.Fprintln(c.stdout, d.Cell, c.lineOf(&x))
		}
	}
	if a.Cells.Histories > 0 {
		fmt.Fprintf(c.stdout, "cells that look the same and came there by other events: %d\n", a.Cells.Histories)
	}
	for _, x := range []struct {
		what string
		n    world.AlarmChange
	}{{"timers", a.Timers}, {"scheduled events", a.Scheduled}} {
		if !x.n.Same {
			fmt.Fprintf(c.stdout, "%s: %d -> %d, and not the same\n", x.what, x.n.A, x.n.B)
		}
	}
}

// lineOf prints a change: the path, and what is there on both sides.
func (c *cli) lineOf(x *view.StateChange) string {
	side := func(d *journal.Data) string {
		if d == nil {
			return "nothing"
		}
		text, err := d.MarshalJSON()
		if err != nil {
			return err.Error()
		}
		if c.brief {
			return view.Brief(string(text))
		}
		return string(text)
	}
	path := x.Path
	if path == "" {
		path = "(all)"
	}
	return fmt.Sprintf("%s: %s -> %s", path, side(x.A), side(x.B))
}

// isManifestFile reports whether a name is that of a world file, there or not.
func isManifestFile(name string) bool {
	extension := filepath.Ext(name)
	return extension == ".yaml" || extension == ".yml"
}

func (c *cli) diffManifests(worlds *openWorlds, names [2]string, asPatch bool) (err error) {
	var sides [2]*view.Edition
	for i, name := range names {
		if sides[i], err = c.edition(worlds, name); err != nil {
			return err
		}
	}
	d, err := view.CompareManifests(sides[0], sides[1])
	if err != nil {
		return err
	}
	if asPatch {
		err = c.alwaysJSON(d.Patch)
	} else {
		err = c.showManifestDiff(d)
	}
	return unless(d.A.Hash == d.B.Hash, err)
}

func (c *cli) showManifestDiff(d *view.ManifestDiff) error {
	if c.output != formTable {
		return c.object("manifest-diff", d, nil)
	}
	code, err := view.CodeDiff(d.A.Manifest, d.B.Manifest, d.A.Contents, d.B.Contents)
	if err != nil {
		return err
	}
	if d.A.Hash == d.B.Hash {
		fmt.Fprintf(c.stdout, "the same: %s\n", d.A)
		return nil
	}
	fmt.Fprintf(c.stdout, "a  %s\nb  %s\n", d.A, d.B)
	c.showChanges(&d.ManifestChanges, code)
	return nil
}

// showChanges prints changes and the code that differs, risk first.
func (c *cli) showChanges(d *view.ManifestChanges, code string) {
	rest := slices.DeleteFunc(slices.Clone(d.Changes), func(x manifest.Change) bool {
		return strings.HasPrefix(x.Name, "reducer ") && strings.HasSuffix(x.Path, "/source") // its code is shown
	})
	c.changeLines("gains rights, or may:", "+", text.FgRed, d.Gains)
	c.changeLines("loses rights:", "-", text.FgGreen, d.Loses)
	if code != "" {
		fmt.Fprintf(c.stdout, "\ncode:\n%s", visible(code, "\n\t"))
	}
	c.changeLines("besides:", "~", text.FgYellow, rest)
}

func (c *cli) changeLines(title, sign string, color text.Color, changes []manifest.Change) {
	if len(changes) == 0 {
		return
	}
	fmt.Fprintln(c.stdout)
	c.paintedOut(color.EscapeSeq(), title)
	fmt.Fprintln(c.stdout)
	for _, change := range changes {
		fmt.Fprintf(c.stdout, "%s %s\n", sign, visible(change.Name+": "+change.Text, ""))
	}
}
