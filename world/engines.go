package world

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/engines"
)

// ErrEngine says that a journal was made by engines that this program does not carry.
var ErrEngine = errors.New("world: made by other engine versions")

// engine is one that runs part of the rules, in the versions that this program
// carries: oldest first. Which one runs a world, its manifest says.
type engine struct {
	name     string
	versions []string
}

// engineTable has the engines of a program.
type engineTable struct {
	all  []engine                  // by name
	code map[string]reducer.Engine // those of reducers
}

// programEngines returns the engines of this program. A version stays here as long as worlds of
// it are to be replayed.
func programEngines() *engineTable { return newEngineTable(engines.All()) }

func newEngineTable(code map[string]reducer.Engine) *engineTable {
	all := []engine{{manifest.EngineBudget, governance.BudgetVersions()}, {manifest.EngineCEL, governance.Versions()}}
	for name, e := range code { // order cannot show: sorted below
		all = append(all, engine{name, e.Versions()})
	}
	slices.SortFunc(all, func(a, b engine) int { return cmp.Compare(a.name, b.name) })
	return &engineTable{all, code}
}

// Carried returns the versions of each engine that this program carries, oldest
// first, by the engine's name. The last is that of new worlds.
func Carried() map[string][]string {
	out := make(map[string][]string)
	for _, e := range programEngines().all {
		out[e.name] = e.versions
	}
	return out
}

// NewestEngines returns what the manifest of a new world names: of each engine the
// last version, unless it is the first.
func NewestEngines() manifest.Engines { return programEngines().newest() }

func (t *engineTable) newest() manifest.Engines {
	var out manifest.Engines
	for _, e := range t.all {
		if len(e.versions) == 1 {
			continue
		}
		if out == nil {
			out = make(manifest.Engines)
		}
		out[e.name] = e.versions[len(e.versions)-1]
	}
	return out
}

// enginesOf returns the engines that run a manifest, as records name them.
func (t *engineTable) enginesOf(m *manifest.Manifest) (journal.Engines, error) {
	var out journal.Engines
	for _, e := range t.all {
		v, err := m.Engines.Version(e.name, e.versions)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrEngine, err)
		}
		out = append(out, journal.Engine{Name: e.name, Version: v})
	}
	return out, nil
}

// checkKernel refuses a journal of another kernel: there is one at a time.
func checkKernel(need string) error {
	if need != KernelVersion {
		return fmt.Errorf("%w: it needs %s, this program has %s", ErrEngine, need, KernelVersion)
	}
	return nil
}

// checkEngines refuses a record that names other engines than those of the rules
// that it puts in force. One that came later is not named.
func checkEngines(named, run journal.Engines) error {
	for _, e := range named {
		if is := run.Of(e.Name); is != e.Version {
			return fmt.Errorf("%w: the record names %s, and its manifest %s", ErrEngine, e.Version, cmp.Or(is, "no "+e.Name))
		}
	}
	return nil
}
