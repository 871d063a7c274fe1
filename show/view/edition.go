package view

import (
	"errors"
	"fmt"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/world"
	"github.com/worldkernel/worldkernel/world/local"
	"github.com/worldkernel/worldkernel/world/source"
)

// ErrNoManifest means that no manifest has the given name.
var ErrNoManifest = errors.New("no manifest")

// Edition is a manifest that a person named.
type Edition struct {
	Name    string        `json:"name"` // as it was given
	World   string        `json:"world"`
	Version uint64        `json:"version"`
	Hash    manifest.Hash `json:"hash"`

	Manifest *manifest.Manifest `json:"-"`
	Contents Contents           `json:"-"` // that it names
}

// EditionOf returns a manifest under the name that a person gave it.
func EditionOf(name string, m *manifest.Manifest, contents Contents) (*Edition, error) {
	hash, err := m.Hash()
	return &Edition{Name: name, World: m.World, Version: m.Version, Hash: hash, Manifest: m, Contents: contents}, err
}

// String names the manifest.
func (e *Edition) String() string {
	return fmt.Sprintf("%s: world %s, version %d, manifest %s", e.Name, e.World, e.Version, e.Hash)
}

// Edition finds a manifest that a world has: by a moment at which it was in force, by its
// hash, or, if it was in force, by the first 8 digits of that or more. The error is
// ErrNoManifest or that of World.
func (j Journal) Edition(name string) (*Edition, error) {
	h, err := canon.ParseHash(name)
	if err != nil {
		m, err := j.World(name)
		if err == nil {
			return EditionOf(name, m.Manifest(), j.Local.Blob)
		}
		var found bool
		if h, found = j.wasInForce(name); !found {
			return nil, err
		}
	}
	encoded, err := j.Local.Blob(h)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return nil, fmt.Errorf("the world has %w %s", ErrNoManifest, h)
	case err != nil:
		return nil, err
	}
	m, err := manifest.Decode(encoded)
	if err != nil {
		return nil, fmt.Errorf("%s is %w: %w", h, ErrNoManifest, err)
	}
	return EditionOf(name, m, j.Local.Blob)
}

// wasInForce finds a manifest that is or was in force by the first digits of its hash.
func (j Journal) wasInForce(digits string) (last manifest.Hash, ok bool) {
	const least = 8
	found := make(map[manifest.Hash]bool)
	for e, err := range j.Scan(0, journal.KindCreated, journal.KindForked, journal.KindApplied) {
		if err != nil {
			break // verify tells of it
		}
		h, _ := journal.ManifestOf(e.Body)
		if strings.HasPrefix(h.String(), digits) {
			found[h], last = true, h
		}
	}
	return last, len(digits) >= least && len(found) == 1
}

// InForce returns the manifest that was in force at the moment that a person named, or
// is where none is named.
func (j Journal) InForce(moment string) (*Edition, error) {
	if moment == "" {
		m, _ := j.Local.InForce()
		return EditionOf(moment, m, j.Local.Blob)
	}
	m, err := j.World(moment)
	if err != nil {
		return nil, err
	}
	return EditionOf(moment, m.Manifest(), j.Local.Blob)
}

// ManifestDiff says how two manifests differ.
type ManifestDiff struct {
	A *Edition `json:"a"`
	B *Edition `json:"b"`
	ManifestChanges
}

// CompareManifests compares two manifests, risk first.
func CompareManifests(a, b *Edition) (*ManifestDiff, error) {
	changes, err := ChangesOf(a.Manifest, b.Manifest)
	return &ManifestDiff{A: a, B: b, ManifestChanges: changes}, err
}

// Validation says whether a world file is valid, or what is wrong with it.
type Validation struct {
	OK     bool           `json:"ok"`
	World  string         `json:"world"`
	Hash   *manifest.Hash `json:"hash"` // null where it is not valid
	Faults []source.Fault `json:"faults"`

	Warnings []local.Warning `json:"warnings"` // of one that is valid
}

// ValidationOf returns the result of validating a world file: the manifest and warnings, or faults.
func ValidationOf(m *manifest.Manifest, warnings []local.Warning, wrong *source.Error) (*Validation, error) {
	if wrong != nil {
		return &Validation{Faults: wrong.Faults, Warnings: []local.Warning{}}, nil
	}
	if warnings == nil {
		warnings = []local.Warning{}
	}
	e, err := EditionOf("", m, nil)
	if err != nil {
		return nil, err
	}
	return &Validation{OK: true, World: e.World, Hash: &e.Hash, Faults: []source.Fault{}, Warnings: warnings}, nil
}

// Merged is what patches make of a manifest together, or why they do not.
type Merged struct {
	Hash      *manifest.Hash     `json:"hash"`     // null where they conflict
	Manifest  *manifest.Manifest `json:"manifest"` // likewise
	Conflicts []Conflict         `json:"conflicts"`
}

// Conflict is a place where patches ask for what does not go together.
type Conflict struct {
	Path     string        `json:"path"`
	Kind     string        `json:"kind"`
	Severity string        `json:"severity"`
	Patches  []string      `json:"patches"` // their names
	Ops      []manifest.Op `json:"ops"`     // of each patch
}

// Patched returns what a patch makes of a manifest. The error is that of Patch.Apply.
func Patched(base *Edition, patch *manifest.Patch) (*Edition, error) {
	m, err := patch.Apply(base.Manifest)
	if err == nil {
		err = base.refuse(m)
	}
	if err != nil {
		return nil, err
	}
	return EditionOf("", m, base.Contents)
}

// refuse reports rules of what was made of e that name what there is not. Of schemas that e
// does not have nothing is known.
func (e *Edition) refuse(m *manifest.Manifest) error {
	return world.RefuseNames(m, func(h manifest.Hash) ([]byte, error) {
		schema, err := e.Contents(h)
		if errors.Is(err, journal.ErrNotFound) || err == nil && schema == nil {
			return []byte("true"), nil
		}
		return schema, err
	}, nil)
}

// Merge returns what patches with these names make of a manifest. The error is that of
// manifest.Merge.
func Merge(base *Edition, names []string, patches []manifest.Patch) (*Merged, error) {
	m, conflicts, err := manifest.Merge(base.Manifest, patches)
	if err != nil {
		return nil, err
	}
	out := &Merged{Conflicts: []Conflict{}}
	for _, x := range conflicts {
		c := Conflict{Path: x.Path, Kind: x.Kind, Severity: x.Severity, Ops: x.Ops}
		for _, i := range x.Patches {
			c.Patches = append(c.Patches, names[i])
		}
		out.Conflicts = append(out.Conflicts, c)
	}
	if m == nil {
		return out, nil
	}
	if err := base.refuse(m); err != nil {
		return nil, err
	}
	e, err := EditionOf("", m, nil)
	if err == nil {
		out.Hash, out.Manifest = &e.Hash, m
	}
	return out, err
}
