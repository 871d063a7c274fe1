package world

import (
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/engines"
)

// Finding is something about a name in a manifest, or in code that it names.
type Finding struct {
	Path         string // of the name in the manifest, a JSON pointer; empty: it stands in code
	File         string // of code, as the manifest names it
	Line, Column int    // in the file, or in the expression at Path; 0: no place but Path
	Msg          string
}

// fault returns what is found as a fault of the manifest.
func (f *Finding) fault() manifest.Fault {
	switch {
	case f.Path == "":
		return manifest.Fault{Path: "/reducers", Msg: fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Msg)}
	case f.Line > 0:
		return manifest.Fault{Path: f.Path, Msg: fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Msg)}
	}
	return manifest.Fault{Path: f.Path, Msg: f.Msg}
}

// String returns what is found with its place.
func (f *Finding) String() string {
	switch {
	case f.Path != "":
		return f.Path + ": " + f.Msg
	case f.Line > 0:
		return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Msg)
	}
	return f.File + ": " + f.Msg
}

// RefuseNames refuses a manifest without other faults that names what it does not declare:
// see CheckNames. The error is a *manifest.FaultsError.
func RefuseNames(m *manifest.Manifest, content func(manifest.Hash) ([]byte, error), ended func() bool) error {
	found, err := CheckNames(m, content, ended)
	if err != nil || len(found) == 0 {
		return err
	}
	faults := make([]manifest.Fault, len(found))
	for i := range found {
		faults[i] = found[i].fault()
	}
	return &manifest.FaultsError{Faults: faults}
}

// CheckNames returns the names in rules, in capabilities and in the options of agents that
// nothing in a manifest has. Rules are those of [governance.CheckRules]; options of agents
// are those of the module @agent that stand in code or in params of a reducer.
func CheckNames(m *manifest.Manifest, content func(manifest.Hash) ([]byte, error), ended func() bool) ([]Finding, error) {
	rules, err := governance.CheckRules(m, content, ended)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, f := range rules {
		out = append(out, Finding{Path: f.Path, Line: f.Line, Column: f.Column, Msg: f.Msg})
	}
	loads, err := loadedNames(m, content)
	if err != nil {
		return nil, err
	}
	faults, _, err := agentNames(m, content)
	return slices.Concat(out, loads, faults), err
}

// loadedNames returns the names that files take from modules that do not define them: no step
// of such a program begins.
func loadedNames(m *manifest.Manifest, content func(manifest.Hash) ([]byte, error)) (out []Finding, err error) {
	seen := make(map[manifest.Hash]bool)
	for _, name := range slices.Sorted(maps.Keys(m.Reducers)) {
		r := m.Reducers[name]
		reader, ok := engines.ReaderOf(r.Engine)
		if !ok || len(r.Modules) == 0 {
			continue
		}
		code := r.Code()
		found, defined := make(map[string]*reducer.Mentions), make(map[string][]string)
		for _, file := range slices.Sorted(maps.Keys(code)) {
			text, err := content(code[file])
			if err != nil {
				return nil, err
			}
			if found[file], err = reader.Mentions(file, text); err != nil {
				return out, nil //nolint:nilerr // which others report
			}
			if defined[file], err = reader.Defined(file, text); err != nil {
				return nil, err
			}
		}
		for _, file := range slices.Sorted(maps.Keys(code)) {
			if seen[code[file]] {
				continue
			}
			seen[code[file]] = true
			for _, l := range found[file].Loaded {
				if names, ok := defined[l.Module]; ok && !slices.Contains(names, l.Text) {
					msg := fmt.Sprintf("the module %q defines no %q%s", l.Module, l.Text, manifest.Instead(l.Text, names))
					out = append(out, Finding{File: file, Line: l.Line, Column: l.Column, Msg: msg})
				}
			}
		}
	}
	return out, nil
}
