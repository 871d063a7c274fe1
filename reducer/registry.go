package reducer

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/manifest"
)

// Factory makes a Reducer for one world, so that an instance may keep scratch
// memory without locks.
type Factory func() Reducer

// Registry holds the Go reducers of a program by NAME@VERSION, as manifests name
// them. It must not be changed once a world has it.
type Registry map[string]Factory

// MissingError says that a world cannot go on in this program, which lacks some of
// its Go reducers.
type MissingError struct {
	Reducers []string // NAME@VERSION, sorted, at least one
	Known    []string // what the program has, likewise
}

func (e *MissingError) Error() string {
	text := "this program has no Go reducer " + strings.Join(e.Reducers, ", ")
	if len(e.Known) > 0 {
		text += "; it has " + strings.Join(e.Known, ", ")
	}
	return text
}

// New returns a new instance of a reducer, or a *MissingError where there is none.
func (r Registry) New(name, version string) (made Reducer, err error) {
	id := name + "@" + version
	f, ok := r[id]
	if !ok {
		return nil, r.missing(id)
	}
	defer caught(&err)
	if made = f(); made == nil {
		return nil, errors.New("its factory makes none")
	}
	return made, nil
}

// Lacks returns a *MissingError about the reducers of a manifest that are not
// there, or nil.
func (r Registry) Lacks(m *manifest.Manifest) error {
	var missing []string
	for _, def := range m.Reducers { // order cannot show: sorted below
		id := def.Name + "@" + def.Version
		if _, ok := r[id]; def.Engine == manifest.EngineGo && !ok && !slices.Contains(missing, id) {
			missing = append(missing, id)
		}
	}
	if missing == nil {
		return nil
	}
	slices.Sort(missing)
	return r.missing(missing...)
}

func (r Registry) missing(ids ...string) error {
	return &MissingError{Reducers: ids, Known: slices.Sorted(maps.Keys(r))}
}
