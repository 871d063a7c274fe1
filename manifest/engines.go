package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The engines of rules, by name.
const (
	EngineCEL      = "cel"      // of policies and transforms
	EngineBudget   = "budget"   // that counts what effects use up
	EngineStarlark = "starlark" // of reducers
)

// EngineGo is the engine of reducers that a program brings along. It has no versions: each of them
// has its own.
const EngineGo = "go"

// engineRow is an engine whose versions a manifest may name.
type engineRow struct {
	name string
	code bool // it runs code of reducers; else what is allowed depends on it
}

func engineRows() []engineRow {
	return []engineRow{{name: EngineBudget}, {name: EngineCEL}, {name: EngineStarlark, code: true}}
}

// runsCode reports whether reducers of an engine have a source.
func runsCode(engine string) bool {
	return slices.Contains(engineRows(), engineRow{name: engine, code: true})
}

// engineNames returns the engines that have versions, or those of them that run code.
func engineNames(codeOnly bool) (names []string) {
	for _, e := range engineRows() {
		if e.code || !codeOnly {
			names = append(names, e.name)
		}
	}
	return names
}

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
	for _, e := range engineRows() {
		name := e.name
		was, is := cmp.Or(a[name], "the first version"), cmp.Or(b[name], "the first version")
		text := fmt.Sprintf("%s, not %s", is, was)
		if !e.code {
			r.unclear(path+"/"+name, "engine "+name, text, was != is)
		} else if was != is {
			r.add(Neutral, path+"/"+name, "engine "+name, "%s", text)
		}
	}
}

// maxEngineBytes is the greatest length of an engine's version.
const maxEngineBytes = 128

func (v *validator) engines(path string, e Engines) {
	known := engineNames(false)
	for _, name := range slices.Sorted(maps.Keys(e)) {
		at := path + "/" + escape(name)
		if !slices.Contains(known, name) {
			last := len(known) - 1
			v.fault(at, "%q is no engine that has versions; %s and %s are", name, strings.Join(known[:last], ", "), known[last])
		} else if n := len(e[name]); n == 0 || n > maxEngineBytes {
			v.fault(at, "want the version of the engine, 1 to %d bytes", maxEngineBytes)
		}
	}
}
