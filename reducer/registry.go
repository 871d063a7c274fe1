package reducer

import (
	"fmt"
	"slices"
)

// Factory makes a Reducer for one world, so that an instance may keep scratch
// memory without locks.
type Factory func() Reducer

// Registry holds the Go reducers of a program by name and version. The zero
// value is empty and ready. Fill it before opening worlds; after that it is
// safe for concurrent use.
type Registry struct {
	factories map[string]Factory
}

// Register adds a reducer. It panics when name@version is taken: two reducers
// under one name are a programmer's error.
func (r *Registry) Register(name, version string, f Factory) {
	id := name + "@" + version
	if r.factories == nil {
		r.factories = make(map[string]Factory)
	}
	if _, taken := r.factories[id]; taken {
		panic("reducer: " + id + " is registered twice")
	}
	r.factories[id] = f
}

// New returns a new instance of the reducer, or an error that lists the
// reducers that there are. A nil Registry is empty.
func (r *Registry) New(name, version string) (Reducer, error) {
	var known []string
	if r != nil {
		if f, ok := r.factories[name+"@"+version]; ok {
			return f(), nil
		}
		for id := range r.factories { // order cannot show: sorted below
			known = append(known, id)
		}
		slices.Sort(known)
	}
	return nil, fmt.Errorf("reducer: this program has no Go reducer %s@%s (it has %q)", name, version, known)
}
