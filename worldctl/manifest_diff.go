package worldctl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world/view"
)

// manifestDiffAnswer says how two manifests differ.
type manifestDiffAnswer struct {
	A editionAnswer `json:"a"`
	B editionAnswer `json:"b"`
	view.ManifestChanges
}

func newManifestDiffCommand(c *cli) *cobra.Command {
	var asPatch bool
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show how two manifests differ: what gains rights first",
		Long: `Show how two manifests differ, as one who has to approve of it reads it: first what
gains rights, or may, such as new capabilities, grants, budgets and policies that
allow; then what loses them; then the code of reducers; then the rest.

A and B are world.yaml files, moments of the world at which a manifest was in force
(head, t5, 120, -10, a snapshot), or hashes of manifests that the world has. A patch
names the contents of files by their hash and does not carry them.

` + diffCodes,
		Example: `  worldctl manifest diff head world.yaml
  worldctl manifest diff head stricter.yaml --patch > stricter.json`,
		Args:        args(2, 2),
		Annotations: map[string]string{takesMoments: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			return trouble(c.manifestDiff(args[0], args[1], asPatch))
		},
	}
	cmd.Flags().BoolVar(&asPatch, "patch", false, "print the patch that makes B of A, as JSON")
	return cmd
}

func (c *cli) manifestDiff(from, to string, asPatch bool) (err error) {
	var worlds openWorlds
	defer func() { err = worlds.close(err) }()
	var sides [2]*edition
	for i, name := range []string{from, to} {
		if sides[i], err = c.edition(&worlds, name); err != nil {
			return err
		}
	}
	a, b := sides[0], sides[1]
	answer := manifestDiffAnswer{A: a.answer(), B: b.answer()}
	if answer.ManifestChanges, err = view.ChangesOf(a.manifest, b.manifest); err != nil {
		return err
	}
	if asPatch {
		err = c.alwaysJSON(answer.Patch)
	} else {
		err = c.showManifestDiff(&answer, a, b)
	}
	if err != nil || a.hash == b.hash {
		return err
	}
	return errDifferent
}

func (c *cli) showManifestDiff(d *manifestDiffAnswer, a, b *edition) error {
	if c.output != formTable {
		return c.object("manifest-diff", d, nil)
	}
	code, err := view.CodeDiff(a.manifest, b.manifest, a.content, b.content)
	if err != nil {
		return err
	}
	if a.hash == b.hash {
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
	if c.origin.Width > 0 && !c.plain() {
		title = color.Sprint(title)
	}
	fmt.Fprintf(c.stdout, "\n%s\n", title)
	for _, change := range changes {
		fmt.Fprintf(c.stdout, "%s %s\n", sign, visible(change.Name+": "+change.Text, ""))
	}
}
