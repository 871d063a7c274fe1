package worldctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/view"
)

func newManifestCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "manifest", Short: "Look at manifests, change and merge them"},
		newManifestShowCommand(c), newManifestHashCommand(c),
		newManifestPatchCommand(c), newManifestMergeCommand(c))
}

// manifestForms says how a person names a manifest.
const manifestForms = "a manifest is a world.yaml, or of the world: head or another moment at which it was in force, " +
	"or 8 digits of its hash or more"

// edition is a manifest that a person named.
type edition struct {
	name     string
	manifest *manifest.Manifest
	hash     manifest.Hash
	content  view.Contents // that it names
}

// editionAnswer names an edition.
type editionAnswer struct {
	Name    string        `json:"name"` // as it was given
	World   string        `json:"world"`
	Version uint64        `json:"version"`
	Hash    manifest.Hash `json:"hash"`
}

func (e *edition) answer() editionAnswer {
	return editionAnswer{Name: e.name, World: e.manifest.World, Version: e.manifest.Version, Hash: e.hash}
}

func (a editionAnswer) String() string {
	return fmt.Sprintf("%s: world %s, version %d, manifest %s", a.Name, a.World, a.Version, a.Hash)
}

func newEdition(name string, m *manifest.Manifest, content view.Contents) (*edition, error) {
	encoded, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return &edition{name: name, manifest: m, hash: canon.Sum(encoded), content: content}, nil
}

// edition finds the manifest that a person named. Worlds that it opens, worlds
// closes.
func (c *cli) edition(worlds *openWorlds, name string) (*edition, error) {
	if c.isFile(name) {
		return c.editionOf(worlds, name)
	}
	if strings.Contains(name, "@") || strings.ContainsRune(name, filepath.Separator) {
		s, err := c.side(worlds, name)
		if err != nil {
			return nil, err
		}
		return newEdition(name, s.Moment.Manifest(), s.Local.Blob)
	}
	dir, err := c.dir()
	if err != nil {
		return nil, hinted(fmt.Errorf("%q: no such file, and %w", name, err), "%s", manifestForms)
	}
	lw, err := worlds.look(c, dir)
	if err != nil {
		return nil, err
	}
	return editionIn(lw, name)
}

// editionIn finds a manifest that a world has or had in force, or otherwise has.
func editionIn(lw *local.World, name string) (*edition, error) {
	if h, err := canon.ParseHash(name); err == nil {
		return storedEdition(lw, name, h)
	}
	m, err := recordsOf(lw).World(name)
	if err == nil {
		return newEdition(name, m.Manifest(), lw.Blob)
	}
	h, found := manifestBefore(lw, name)
	if !found {
		return nil, hinted(err, "%s", manifestForms)
	}
	return storedEdition(lw, name, h)
}

// isFile reports whether a name is that of a world file, there or not, or of
// whatever file there is.
func (c *cli) isFile(name string) bool {
	info, err := os.Stat(c.path(name))
	return isManifestFile(name) || err == nil && !info.IsDir()
}

// editionOf reads a world file: as a change of the world that it is for, or else as
// that of a new one. Worlds that it opens, worlds closes.
func (c *cli) editionOf(worlds *openWorlds, file string) (*edition, error) {
	loaded, err := local.Load(c.path(file), c.options())
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			return nil, hinted(fmt.Errorf("%s: %w", file, at.Err), "%s", manifestForms)
		}
		return nil, toCorrect(err, file)
	}
	m := loaded.Manifest
	if dir, err := c.dir(); err == nil {
		if lw, err := worlds.look(c, dir); err == nil {
			m, _, _ = loaded.Amend(inForce(lw)) // never fails
		}
	}
	return newEdition(file, m, func(h manifest.Hash) ([]byte, error) { return loaded.Contents[h], nil })
}

// storedEdition reads a manifest that the world has.
func storedEdition(lw *local.World, name string, h manifest.Hash) (*edition, error) {
	encoded, err := lw.Blob(h)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, hinted(fmt.Errorf("the world has no manifest %s", h), "%s", manifestForms)
	}
	if err != nil {
		return nil, err
	}
	m, err := manifest.Decode(encoded)
	if err != nil {
		return nil, hinted(fmt.Errorf("%s is no manifest: %w", h, err), "%s", manifestForms)
	}
	return newEdition(name, m, lw.Blob)
}

// manifestBefore finds a manifest that is or was in force by the first digits of
// its hash.
func manifestBefore(lw *local.World, digits string) (manifest.Hash, bool) {
	const least = 8
	found := make(map[manifest.Hash]bool)
	var last manifest.Hash
	for e, err := range recordsOf(lw).Scan(0, journal.KindCreated, journal.KindForked, journal.KindApplied) {
		if err != nil {
			break // verify tells of it
		}
		var h manifest.Hash
		switch b := e.Body.(type) {
		case *journal.Created:
			h = b.Manifest
		case *journal.Forked:
			h = b.Manifest
		case *journal.Applied:
			h = b.Manifest
		}
		if strings.HasPrefix(h.String(), digits) {
			found[h], last = true, h
		}
	}
	return last, len(digits) >= least && len(found) == 1
}

// atMoment is edition for a moment of the world; none is its head.
func (c *cli) atMoment(lw *local.World, at string) (e *edition, err error) {
	err = look(lw, at, func(m *world.Moment) error {
		e, err = newEdition(at, m.Manifest(), lw.Blob)
		return err
	})
	return e, err
}
