package journal

import (
	"errors"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
)

// EnginesVersion is the version of Created and Applied. Under version 1 each has a
// field for the version of Starlark, then one for that of CEL, where it has a list
// since; such journals are read, and their bodies have the list all the same.
const EnginesVersion = 2

// Engine is what runs reducers or policies, in a version: another may give other
// results.
type Engine struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Engines are those that replay needs, by name. On disk a list of arrays of name and
// version.
type Engines []Engine

// Of returns the version of an engine, "" if it is not listed.
func (e Engines) Of(name string) string {
	for _, x := range e {
		if x.Name == name {
			return x.Version
		}
	}
	return ""
}

// items returns how many items of a body's array they are.
func (Engines) items(version uint64) int {
	if version < EnginesVersion {
		return 2
	}
	return 1
}

func (e Engines) append(b []byte, version uint64) []byte {
	if version < EnginesVersion {
		return canon.AppendText(canon.AppendText(b, e.Of(manifest.EngineStarlark)), e.Of(manifest.EngineCEL))
	}
	b = canon.AppendArray(b, len(e))
	for _, x := range e {
		b = canon.AppendText(canon.AppendText(canon.AppendArray(b, 2), x.Name), x.Version)
	}
	return b
}

// readEngineFields reads what version 1 has in the place of the list.
func readEngineFields(r *canon.Reader) Engines {
	starlark := r.Text()
	return Engines{{manifest.EngineCEL, r.Text()}, {manifest.EngineStarlark, starlark}}
}

// MarshalCBOR returns the list.
func (e Engines) MarshalCBOR() ([]byte, error) { return e.append(nil, EnginesVersion), nil }

// UnmarshalCBOR parses a list. It refuses one that is not in the order of its names.
func (e *Engines) UnmarshalCBOR(data []byte) error {
	r := canon.NewReader(data)
	list := Engines{}
	for n := r.Array(); n > 0 && r.Err() == nil; n-- {
		r.ArrayOf(2)
		list = append(list, Engine{Name: r.Text(), Version: r.Text()})
	}
	if err := r.Close(); err != nil {
		return err
	}
	for i, x := range list[min(1, len(list)):] {
		if x.Name <= list[i].Name {
			return errors.New("engines are not listed by name, each once")
		}
	}
	*e = list
	return nil
}
