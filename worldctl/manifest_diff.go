package worldctl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
)

// manifestDiffAnswer says how two manifests differ.
type manifestDiffAnswer struct {
	A editionAnswer `json:"a"`
	B editionAnswer `json:"b"`
	changesAnswer
}

// changesAnswer is what one manifest has otherwise than another.
type changesAnswer struct {
	Gains   []manifest.Change `json:"gains"`   // rights, or may
	Loses   []manifest.Change `json:"loses"`   // rights
	Changes []manifest.Change `json:"changes"` // the rest
	Patch   manifest.Patch    `json:"patch"`   // makes b of a
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
	if answer.changesAnswer, err = changesOf(a, b); err != nil {
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

// changesOf returns what b has otherwise than a.
func changesOf(a, b *edition) (changesAnswer, error) {
	d := changesAnswer{Gains: []manifest.Change{}, Loses: []manifest.Change{}, Changes: []manifest.Change{}}
	keys := fingerprints(a.manifest.Governance, b.manifest.Governance)
	for _, change := range manifest.Changes(a.manifest, b.manifest) {
		change.Text = keys.Replace(change.Text)
		switch change.Risk {
		case manifest.Gains:
			d.Gains = append(d.Gains, change)
		case manifest.Loses:
			d.Loses = append(d.Loses, change)
		default:
			d.Changes = append(d.Changes, change)
		}
	}
	var err error
	d.Patch, err = manifest.Diff(a.manifest, b.manifest)
	return d, err
}

// fingerprints puts, behind the keys of approvers, how ssh-keygen -l prints them: who
// compares keys compares those.
func fingerprints(rules ...manifest.Governance) *strings.Replacer {
	var pairs []string
	for _, g := range rules {
		for _, who := range g.Approvers {
			pairs = append(pairs, who.Key.String(), who.Key.String()+" "+fingerprint(who.Key))
		}
	}
	return strings.NewReplacer(pairs...)
}

func (c *cli) showManifestDiff(d *manifestDiffAnswer, a, b *edition) error {
	if c.output != formTable {
		return c.object("manifest-diff", d, nil)
	}
	code, err := codeDiff(a, b)
	if err != nil {
		return err
	}
	if a.hash == b.hash {
		fmt.Fprintf(c.stdout, "the same: %s\n", d.A)
		return nil
	}
	fmt.Fprintf(c.stdout, "a  %s\nb  %s\n", d.A, d.B)
	c.showChanges(&d.changesAnswer, code)
	return nil
}

// showChanges prints changes and the code that differs, risk first.
func (c *cli) showChanges(d *changesAnswer, code string) {
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

// codeDiff returns how the code of reducers differs, by their names.
func codeDiff(a, b *edition) (string, error) {
	names := make(map[string]bool)
	for _, m := range []*manifest.Manifest{a.manifest, b.manifest} {
		for name := range m.Reducers {
			names[name] = true
		}
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := a.manifest.Reducers[name], b.manifest.Reducers[name]
		if was.Source == is.Source {
			continue
		}
		before, err := a.source(was)
		if err != nil {
			return "", err
		}
		after, err := b.source(is)
		if err != nil {
			return "", err
		}
		out.WriteString(udiff.Unified("a/"+name+" "+was.File, "b/"+name+" "+is.File, before, after))
	}
	return out.String(), nil
}

// source returns the code of a reducer, nothing for one that has none.
func (e *edition) source(r manifest.Reducer) (string, error) {
	if r.Source.IsZero() {
		return "", nil
	}
	code, err := e.content(r.Source)
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", e.name, r.File, err)
	}
	return string(code), nil
}
