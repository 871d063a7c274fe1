package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Live names the kinds of effects that may be performed, for real, where a world is only
// tried: in a fork, a what-if, an experiment. A kind is named exactly, or by a pattern as in
// capabilities; one of ClassDestructive only exactly. Empty: nothing is performed.
type Live []string

// Has reports whether effects of a kind that is declared so may be performed.
func (l Live) Has(kind string, e *Effect) bool {
	return slices.ContainsFunc(l, func(name string) bool {
		return name == kind || e.Class != ClassDestructive && Match(name, kind)
	})
}

// In returns the kinds of a manifest that may be performed, by name. The error says which
// name names none.
func (l Live) In(m *Manifest) ([]string, error) {
	if len(l) == 0 {
		return nil, nil
	}
	kinds := slices.Sorted(maps.Keys(m.Effects))
	for _, name := range l {
		if err := checkLive(name, kinds, m); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(kinds, func(kind string) bool {
		e := m.Effects[kind]
		return !l.Has(kind, &e)
	}), nil
}

// checkLive refuses a name of no kind.
func checkLive(name string, kinds []string, m *Manifest) error {
	var named []string
	for _, kind := range kinds {
		if e := m.Effects[kind]; (Live{name}).Has(kind, &e) {
			return nil
		}
		if Match(name, kind) {
			named = append(named, kind)
		}
	}
	if len(named) > 0 {
		return fmt.Errorf("nothing can be live by the name %q: it covers only effects of class destructive, which are named exactly: %s", name, strings.Join(named, ", "))
	}
	if len(kinds) == 0 {
		return fmt.Errorf("nothing can be live by the name %q: the rules declare no effect", name)
	}
	return fmt.Errorf("nothing can be live by the name %q: the rules declare no such effect; they have %s", name, strings.Join(kinds, ", "))
}

// Means returns a hash of what decides about the answer to an effect beside its params: the
// adapter, its config with the files and the secrets that this names, and the schema of the
// params. What was answered under another one is no answer to what is asked now.
func (e *Effect) Means() Hash {
	b := canon.AppendText(nil, e.Adapter)
	b = canon.AppendBytes(canon.AppendBytes(b, e.Params[:]), e.Config)
	for _, key := range slices.Sorted(maps.Keys(e.Files)) {
		name := e.Files[key]
		b = canon.AppendBytes(canon.AppendText(b, key), name[:])
	}
	return canon.Sum(b)
}
