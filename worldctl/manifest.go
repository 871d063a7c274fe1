package worldctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

func newManifestCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "manifest", Short: "Look at manifests, change and merge them"},
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
