package worldctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
)

// errConflicts says that patches were not merged. Why has been printed.
var errConflicts = errors.New("the patches conflict: nothing is merged")

func newManifestPatchCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "patch BASE PATCH",
		Long: `Print what a patch makes of a manifest, as JSON with its hash. BASE is a world.yaml, a
moment of the world such as head, or the hash of a manifest that the world has. PATCH is
a file as worldctl diff --patch prints it. Nothing is changed.`,
		Example:     `  worldctl manifest patch head stricter.json`,
		Annotations: map[string]string{takesMoments: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			return c.onBase(args[0], args[1:], func(base *view.Edition, patches []manifest.Patch) error {
				e, err := view.Patched(base, &patches[0])
				if err != nil {
					return ofPatch(err, args[1], base)
				}
				return c.objectJSON("manifest-patch", manifestAnswer{e.Hash, e.Manifest})
			})
		},
	}
}

func newManifestMergeCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "merge BASE PATCH...",
		Short: "Print what several patches make of one manifest together, or where they conflict",
		Long: `Print what several patches make of one manifest together, as JSON with its hash, or
all the places where they conflict. No patch wins by coming last: of patches that
conflict nothing is merged, and the exit code is 5. Nothing is changed.

BASE and PATCH are as for worldctl manifest patch. All patches need this base.`,
		Example:     `  worldctl manifest merge head limits.json tools.json`,
		Annotations: map[string]string{takesMoments: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			return c.onBase(args[0], args[1:], func(base *view.Edition, patches []manifest.Patch) error {
				return c.merge(base, args[1:], patches)
			})
		},
	}
}

// onBase finds a manifest, reads patches, and lets use work with them.
func (c *cli) onBase(name string, files []string, use func(*view.Edition, []manifest.Patch) error) (err error) {
	var worlds openWorlds
	defer func() { err = worlds.close(err) }()
	base, err := c.edition(&worlds, name)
	if err != nil {
		return err
	}
	patches := make([]manifest.Patch, len(files))
	for i, file := range files {
		data, err := c.readContent(file)
		if err != nil {
			return err
		}
		p, err := manifest.ParsePatchJSON(data)
		if err != nil {
			return hinted(fmt.Errorf("%s: %w", file, err), "a patch is as worldctl diff A B --patch prints it")
		}
		patches[i] = *p
	}
	return use(base, patches)
}

// ofPatch names the file in what is wrong with a patch, and what to do about it.
func ofPatch(err error, file string, base *view.Edition) error {
	if errors.Is(err, manifest.ErrOtherBase) {
		err = &fault{err: err, code: exitConflict, hint: fmt.Sprintf("make it for %s: worldctl diff %s B --patch", base.Name, base.Name)}
	} else {
		err = hinted(err, "correct the file")
	}
	return fmt.Errorf("%s: %w", file, err)
}

func (c *cli) merge(base *view.Edition, files []string, patches []manifest.Patch) error {
	answer, err := view.Merge(base, files, patches)
	var of *manifest.PatchError
	switch {
	case errors.As(err, &of):
		return ofPatch(of.Err, files[of.Patch], base)
	case err != nil:
		return hinted(err, "each patch may be right alone: make one of them that fits the others")
	}
	if answer.Manifest != nil {
		return c.objectJSON("manifest-merge", answer)
	}
	if c.output == formTable {
		err = c.showConflicts(answer.Conflicts)
	} else {
		err = c.object("manifest-merge", answer, nil)
	}
	return errors.Join(err, &fault{
		err: errConflicts, code: exitConflict, hint: "decide what is to stand at each path, write that into one of the patches, and merge again",
	})
}

func (c *cli) showConflicts(conflicts []view.Conflict) error {
	return list(c, "manifest-merge", "conflicts", allItems(conflicts), columns[view.Conflict]{
		header: table.Row{"path", "kind", "severity", "patches ask for"},
		row: func(x view.Conflict) table.Row {
			var asked []string
			for i, op := range x.Ops {
				asked = append(asked, x.Patches[i]+": "+opText(op))
			}
			return table.Row{x.Path, x.Kind, x.Severity, strings.Join(asked, "\n")}
		},
	})
}

func opText(op manifest.Op) string {
	var printed struct {
		Value json.RawMessage `json:"value"`
	}
	b, err := view.Marshal(op)
	if err == nil {
		err = json.Unmarshal(b, &printed)
	}
	if err != nil {
		return op.Op + " " + op.Path
	}
	return strings.TrimSpace(op.Op + " " + op.Path + " " + string(printed.Value))
}

// alwaysJSON prints what a file is to hold: JSON without a schema.
func (c *cli) alwaysJSON(v any) error {
	text, err := indent(view.Marshal(v))
	if err == nil {
		_, err = fmt.Fprintln(c.stdout, text)
	}
	return err
}
