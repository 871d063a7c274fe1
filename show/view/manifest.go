package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/sshkey"
	"github.com/worldkernel/worldkernel/manifest"
)

// ManifestChanges is the difference of two manifests.
type ManifestChanges struct {
	Gains   []manifest.Change `json:"gains"`   // rights, or may
	Loses   []manifest.Change `json:"loses"`   // rights
	Changes []manifest.Change `json:"changes"` // the rest
	Patch   manifest.Patch    `json:"patch"`   // makes b of a
}

// Contents reads the contents that a manifest names.
type Contents func(manifest.Hash) ([]byte, error)

// ChangesOf returns what manifest b has otherwise than a, risk first.
func ChangesOf(a, b *manifest.Manifest) (ManifestChanges, error) {
	d := ManifestChanges{Gains: []manifest.Change{}, Loses: []manifest.Change{}, Changes: []manifest.Change{}}
	keys := fingerprints(a.Governance, b.Governance)
	for _, change := range manifest.Changes(a, b, governance.Widens) {
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
	d.Patch, err = manifest.Diff(a, b)
	return d, err
}

// fingerprints puts, behind the keys of approvers, how ssh-keygen -l prints them: who
// compares keys compares those.
func fingerprints(rules ...manifest.Governance) *strings.Replacer {
	var pairs []string
	for _, g := range rules {
		for _, who := range g.Approvers {
			pairs = append(pairs, who.Key.String(), who.Key.String()+" "+sshkey.Fingerprint(who.Key[:]))
		}
	}
	return strings.NewReplacer(pairs...)
}

// CodeDiff returns how the code of the reducers of two manifests differs, as a
// unified diff, by their names.
func CodeDiff(a, b *manifest.Manifest, ofA, ofB Contents) (string, error) {
	names := maps.Clone(a.Reducers)
	maps.Copy(names, b.Reducers)
	var out strings.Builder
	shown := make(map[[2]manifest.Hash]bool) // modules that several reducers load
	diff := func(before, after string, was, is manifest.Hash) error {
		if was == is {
			return nil
		}
		from, err := ofA.code(before, was)
		if err != nil {
			return err
		}
		to, err := ofB.code(after, is)
		if err == nil {
			out.WriteString(udiff.Unified("a/"+before, "b/"+after, from, to))
		}
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := a.Reducers[name], b.Reducers[name]
		if err := diff(name+" "+was.File, name+" "+is.File, was.Source, is.Source); err != nil {
			return "", err
		}
		modules := maps.Clone(was.Modules)
		if modules == nil {
			modules = make(map[string]manifest.Hash)
		}
		maps.Copy(modules, is.Modules)
		for _, module := range slices.Sorted(maps.Keys(modules)) {
			both := [2]manifest.Hash{was.Modules[module], is.Modules[module]}
			if shown[both] {
				continue
			}
			shown[both] = true
			if err := diff(module, module, both[0], both[1]); err != nil {
				return "", err
			}
		}
	}
	return out.String(), nil
}

// code returns the text of a file, nothing for one that is not there.
func (read Contents) code(file string, hash manifest.Hash) (string, error) {
	if hash.IsZero() {
		return "", nil
	}
	text, err := read(hash)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return string(text), nil
}
