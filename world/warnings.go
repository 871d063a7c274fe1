package world

import (
	"fmt"
	"maps"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/schema"
	"github.com/worldkernel/worldkernel/manifest"
)

// Warnings returns what a valid manifest says and hardly means, as far as it and its contents
// tell: effects that are denied whatever their params; options of modules that come with
// worldctl that these do not have, so that a step which gives one fails; and schemas whose
// checks multiply with each level of the data.
func Warnings(m *manifest.Manifest, content func(manifest.Hash) ([]byte, error)) (out []Finding, err error) {
	for _, lack := range append(governance.Ungranted(m), governance.Unmeasured(m)...) {
		out = append(out, Finding{Path: manifest.Pointer("effects", lack.Kind), Msg: fmt.Sprintf("effect %s: %s", lack.Kind, lack.Msg)})
	}
	_, unknown, err := agentNames(m, content)
	if err != nil {
		return out, err
	}
	out = append(out, unknown...)
	costly := func(of, file string, hash manifest.Hash, at ...string) error {
		if hash.IsZero() {
			return nil
		}
		text, err := content(hash)
		if err != nil {
			return err
		}
		s, err := schema.Compile(text)
		if err != nil {
			return nil //nolint:nilerr // which others report
		}
		if says := s.Growth(canon.MaxDepth); says != "" {
			f := Finding{File: file, Msg: of + ": " + says}
			if file == "" { // it stands in the manifest
				f.Path = manifest.Pointer(at...)
			}
			out = append(out, f)
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.Events)) {
		e := m.Events[name]
		if err := costly("the schema of event "+name, e.File, e.Schema, "events", name, "schema"); err != nil {
			return out, err
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(m.Effects)) {
		e := m.Effects[kind]
		if err := costly("the params of effect "+kind, e.ParamsFile, e.Params, "effects", kind, "params"); err != nil {
			return out, err
		}
	}
	return out, nil
}
