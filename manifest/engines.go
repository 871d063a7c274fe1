package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The engines of rules, by name. With [EngineStarlark] they are those whose versions a manifest may
// name.
const (
	EngineCEL    = "cel"    // of policies and transforms
	EngineBudget = "budget" // that counts what effects use up
)

// Engines are versions of engines, by the engines' names. An engine that is not
// named has its first version.
type Engines map[string]string

// MissingEngineError says that a program does not carry the version of an engine that
// rules name.
type MissingEngineError struct {
	Name    string // of the engine
	Version string
	Carried []string // by the program, oldest first
}

func (e *MissingEngineError) Error() string {
	return fmt.Sprintf("it needs %s as its engine %s, this program has %s", e.Version, e.Name, strings.Join(e.Carried, ", "))
}

// Version returns which of the versions of an engine that a program carries, oldest
// first, is meant. The error is a *MissingEngineError.
func (e Engines) Version(name string, carried []string) (string, error) {
	v := cmp.Or(e[name], carried[0])
	if !slices.Contains(carried, v) {
		return "", &MissingEngineError{name, v, carried}
	}
	return v, nil
}

// engines notes other engines. What is allowed depends on those of policies and budgets.
func (r *risks) engines(path string, a, b Engines) {
	for _, name := range []string{EngineBudget, EngineCEL, EngineStarlark} {
		was, is := cmp.Or(a[name], "the first version"), cmp.Or(b[name], "the first version")
		text := fmt.Sprintf("%s, not %s", is, was)
		if name != EngineStarlark {
			r.unclear(path+"/"+name, "engine "+name, text, was != is)
		} else if was != is {
			r.add(Neutral, path+"/"+name, "engine "+name, "%s", text)
		}
	}
}

// maxEngineBytes is the greatest length of an engine's version.
const maxEngineBytes = 128

func (v *validator) engines(path string, e Engines) {
	for _, name := range slices.Sorted(maps.Keys(e)) {
		at := path + "/" + escape(name)
		if name != EngineStarlark && name != EngineCEL && name != EngineBudget {
			v.fault(at, "%q is no engine that has versions; %s, %s and %s are", name, EngineBudget, EngineCEL, EngineStarlark)
		} else if n := len(e[name]); n == 0 || n > maxEngineBytes {
			v.fault(at, "want the version of the engine, 1 to %d bytes", maxEngineBytes)
		}
	}
}
