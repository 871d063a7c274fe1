package worldctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

func newManifestCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "manifest"},
		newManifestShowCommand(c), newManifestHashCommand(c),
		newManifestPatchCommand(c), newManifestMergeCommand(c))
}

// manifestForms says how a person names a manifest.
const manifestForms = "a manifest is a world.yaml, or of the world: head or another moment at which it was in force, " +
	"or 8 digits of its hash or more"

// edition finds the manifest that a person named. Worlds that it opens, worlds
// closes.
func (c *cli) edition(worlds *openWorlds, name string) (*view.Edition, error) {
	if c.isFile(name) {
		return c.editionOf(worlds, name)
	}
	if strings.Contains(name, "@") || strings.ContainsRune(name, filepath.Separator) {
		s, err := c.side(worlds, name)
		if err != nil {
			return nil, err
		}
		return view.EditionOf(name, s.Moment.Manifest(), s.Local.Blob)
	}
	dir, err := c.dir()
	if err != nil {
		return nil, hinted(fmt.Errorf("%q: no such file, and %w", name, err), "%s", manifestForms)
	}
	lw, err := worlds.openReadOnly(c, dir)
	if err != nil {
		return nil, err
	}
	return editionIn(lw, name)
}

// editionIn finds a manifest that a world has.
func editionIn(lw *local.World, name string) (*view.Edition, error) {
	e, err := recordsOf(lw).Edition(name)
	if errors.As(err, new(*view.MomentError)) || errors.Is(err, view.ErrNoManifest) {
		err = hinted(err, "%s", manifestForms)
	}
	return e, err
}

// isFile reports whether a name is that of a world file, there or not, or of
// whatever file there is.
func (c *cli) isFile(name string) bool {
	info, err := os.Stat(c.path(name))
	return isManifestFile(name) || err == nil && !info.IsDir()
}

// loadWorld reads a world file. A signal ends that as it ends the opening of a world: schemas alone
// can take a second each.
func (c *cli) loadWorld(file string, options ...source.Option) (*source.Loaded, error) {
	defer c.opts.interrupts.opening()()
	return local.Load(file, c.options(), options...)
}

// readWorld reads a world file for what performs nothing: adapters that this program lacks
// are no fault of it.
func (c *cli) readWorld(file string, options ...source.Option) (*source.Loaded, error) {
	loaded, err := c.loadWorld(c.path(file), options...)
	if errors.As(err, new(*manifest.NoAdapterError)) {
		return local.Read(c.path(file), c.options(), options...)
	}
	return loaded, err
}

// editionOf reads a world file: as a change of the world that it is for, or else as
// that of a new one. Worlds that it opens, worlds closes.
func (c *cli) editionOf(worlds *openWorlds, file string) (*view.Edition, error) {
	loaded, err := c.readWorld(file)
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			return nil, hinted(fmt.Errorf("%s: %w", file, at.Err), "%s", manifestForms)
		}
		return nil, toCorrect(err, file)
	}
	m := loaded.Manifest
	if dir, err := c.dir(); err == nil {
		if lw, err := worlds.openReadOnly(c, dir); err == nil {
			m, _, _ = loaded.Amend(inForce(lw)) // never fails
		}
	}
	return view.EditionOf(file, m, func(h manifest.Hash) ([]byte, error) { return loaded.Contents[h], nil })
}

// manifestAnswer is a manifest with its hash, which is that of its canonical
// CBOR and not of this form.
type manifestAnswer struct {
	Hash     manifest.Hash      `json:"hash"`
	Manifest *manifest.Manifest `json:"manifest"`
}

func newManifestShowCommand(c *cli) *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use: "show",
		RunE: c.onWorld(func(_ context.Context, lw *local.World, _ []string) error {
			e, err := recordsOf(lw).InForce(at)
			if err != nil {
				return err
			}
			return c.object("manifest-show", manifestAnswer{e.Hash, e.Manifest}, func() { c.showManifest(e) })
		}),
	}
	addAt(cmd, &at, "as it was at this")
	return cmd
}

func newManifestHashCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "hash [FILE]",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return c.hashOf(args[0])
			}
			return c.with(func(lw *local.World) error { return c.showHash(recordsOf(lw).InForce(view.HeadName)) })
		},
	}
}

func (c *cli) hashOf(file string) (err error) {
	var worlds openWorlds
	defer func() { err = worlds.close(err) }()
	return c.showHash(c.editionOf(&worlds, file))
}

func (c *cli) showHash(e *view.Edition, err error) error {
	return answer(c, "manifest-hash", func(e *view.Edition) { fmt.Fprintln(c.stdout, e.Hash) })(e, err)
}

// showManifest says what a manifest has, each thing in a line.
func (c *cli) showManifest(e *view.Edition) {
	m := e.Manifest
	c.facts([2]any{"world", m.World}, [2]any{"version", m.Version}, [2]any{"hash", e.Hash},
		[2]any{"reducers", entries(m.Reducers, func(r manifest.Reducer) string {
			code := r.File
			if r.Engine == manifest.EngineGo {
				code = r.Name + " " + r.Version
			}
			return strings.TrimSpace(r.Engine+" "+code) + granted(r.Grants)
		})},
		[2]any{"events", strings.Join(slices.Sorted(maps.Keys(m.Events)), "\n")},
		[2]any{"effects", entries(m.Effects, func(f manifest.Effect) string {
			return strings.TrimSpace(f.Adapter+" "+f.Class) + ", in doubt: " + f.OnInDoubt
		})},
		[2]any{"capabilities", entries(m.Caps, func(k manifest.Cap) string {
			text := k.Type + atMost(k.Budget)
			if k.Expires != 0 {
				text += fmt.Sprintf(", expires at tick %d", k.Expires)
			}
			return text
		})},
		[2]any{"policies", policyLines(m.Policies)},
		[2]any{"governance", governanceLines(m.Governance)},
		[2]any{"limits", fmt.Sprintf("%d in flight, %d events a tick, mailbox %d%s",
			m.Limits.InFlight, m.Limits.EventsPerTick, m.Limits.Mailbox, atMost(m.Budget))})
}

// entries shows the entries of a section, sorted by name.
func entries[T any](section map[string]T, show func(T) string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(section)) {
		out = append(out, name+": "+show(section[name]))
	}
	return strings.Join(out, "\n")
}

func granted(caps []string) string {
	if len(caps) == 0 {
		return ", without capabilities"
	}
	return ", may use " + strings.Join(caps, ", ")
}

func atMost(b manifest.Budget) string {
	var text strings.Builder
	for _, unit := range []struct {
		n    uint64
		name string
	}{{b.Calls, "calls"}, {b.Tokens, "tokens"}, {b.Bytes, "bytes"}, {b.Micros, "micros"}} {
		if unit.n > 0 {
			fmt.Fprintf(&text, ", at most %d %s", unit.n, unit.name)
		}
	}
	return text.String()
}

// governanceLines says who changes the manifest, an approver a line.
func governanceLines(g manifest.Governance) string {
	text := "needs " + view.Count(g.Needed(), "approval", "")
	if g.FourEyes {
		text += ", four_eyes"
	}
	if len(g.Approvers) == 0 {
		return text + ", by any key"
	}
	text += ", by"
	for _, who := range g.Approvers {
		signer := view.SignerOf(who.Key, g)
		text += "\n" + nameOf(&signer)
	}
	return text
}

func policyLines(policies []manifest.Policy) string {
	var out []string
	for _, p := range policies {
		out = append(out, visible(fmt.Sprintf("%s: %s when %s", p.Name, p.Decide, p.When), ""))
	}
	return strings.Join(out, "\n")
}

// errConflicts says that patches were not merged. Why has been printed.
var errConflicts = errors.New("the patches conflict: nothing is merged")

func newManifestPatchCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:         "patch BASE PATCH",
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
		Use:         "merge BASE PATCH...",
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
