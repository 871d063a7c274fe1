package worldctl

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
)

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
