package world

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// rules are a manifest made ready to run: everything at run time comes from
// the rules in force.
type rules struct {
	manifest *manifest.Manifest
	hash     journal.Hash
	engines  journal.Engines // that run them
	table    *engineTable    // where these are
	gate     *governance.Gate
	reducers map[string]*reducerRule
	events   map[string]*eventRule
	effects  map[string]*effectRule
	schemas  journal.Data // of params, by kinds of effects; empty: there are none
	lacks    error        // a *reducer.MissingError; nil: all reducers are there
	guard    *guard       // of whoever runs them and has not put them in force; nil: nobody

	last struct { // see reducer
		name string
		rule *reducerRule
	}
}

// effectRule is one declared effect.
type effectRule struct {
	manifest.Effect
	compensation *governance.Transform // nil: nothing makes up for it
	params       *checkedSchema        // nil: any
}

// reducerRule is one reducer of the manifest, ready to run.
type reducerRule struct {
	name   string
	hash   journal.Hash    // of the code that runs: part of a cell's leaf in the state root
	impl   reducer.Reducer // nil: the program lacks it
	limits manifest.ReducerLimits
	params journal.Data
	halt   bool // on error
}

// eventRule is one declared event with the routes that match it.
type eventRule struct {
	name   string
	schema *checkedSchema // nil: any data
	routes []route
}

// compile makes a manifest ready. Contents are looked up in blobs. Where the error is a
// *reducer.MissingError there are rules all the same, for what needs none of these.
func compile(m *manifest.Manifest, hash journal.Hash, blobs journal.Blobs, registry reducer.Registry, g *guard) (*rules, error) {
	return programEngines().compileRules(m, hash, blobs, registry, g)
}

// compileRules is compile with the engines of a table.
func (t *engineTable) compileRules(m *manifest.Manifest, hash journal.Hash, blobs journal.Blobs, registry reducer.Registry, g *guard) (*rules, error) {
	if faults := m.Validate(); len(faults) > 0 {
		return nil, fmt.Errorf("world: manifest %s: %s: %s", hash, faults[0].Path, faults[0].Msg)
	}
	engines, err := t.enginesOf(m)
	if err != nil {
		return nil, err
	}
	g.beginRules()
	if err := g.keep(policyBytes*uint64(len(m.Policies)), "the policies"); err != nil {
		return nil, err
	}
	gate, err := governance.NewGate(m, g.stepEnded())
	if g.stop(err, "the policies", 0) {
		return nil, g.ended()
	}
	if err != nil {
		return nil, fmt.Errorf("world: manifest %s: %w", hash, err)
	}
	r := &rules{
		manifest: m, hash: hash, engines: engines, table: t, gate: gate, guard: g,
		reducers: make(map[string]*reducerRule), events: make(map[string]*eventRule), effects: make(map[string]*effectRule),
	}
	if err := r.compileEffects(blobs); err != nil { // before the reducers, which see their schemas
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Reducers)) {
		if r.reducers[name], err = r.compileReducer(name, m.Reducers[name], blobs, registry); err != nil && !isMissing(err) {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Events)) {
		if r.events[name], err = r.compileEvent(name, m.Events[name], blobs); err != nil {
			return nil, err
		}
	}
	if err := registry.Lacks(m); err != nil {
		r.lacks = fmt.Errorf("world: %w", err)
	}
	return r, r.lacks
}

// release has rules that were made ready under a guard run by their own limits, under that
// of the world: they are in force.
func (r *rules) release(to *guard) {
	if r.guard != to {
		r.guard.release(to)
		r.guard = to
	}
}

// compileEffects makes the effects of a manifest ready.
func (r *rules) compileEffects(blobs journal.Blobs) error {
	schemas := make(map[string]journal.Data)
	for _, kind := range slices.Sorted(maps.Keys(r.manifest.Effects)) {
		rule := &effectRule{Effect: r.manifest.Effects[kind]}
		var err error
		if rule.Compensate != nil {
			if rule.compensation, err = governance.NewTransform(rule.Compensate.Params); err != nil {
				return fmt.Errorf("world: effect %s: compensate: %w", kind, err)
			}
		}
		var source []byte
		if rule.params, source, err = r.compileParams(kind, &rule.Effect, blobs); err != nil {
			return err
		}
		if source != nil {
			if schemas[kind], err = canon.FromJSON(source); err != nil {
				return fmt.Errorf("world: effect %s: schema: %w", kind, err)
			}
		}
		r.effects[kind] = rule
	}
	if len(schemas) == 0 {
		return nil
	}
	var err error
	r.schemas, err = canon.Marshal(schemas)
	return err
}

func isMissing(err error) bool {
	return errors.As(err, new(*reducer.MissingError))
}

func (r *rules) compileReducer(name string, def manifest.Reducer, blobs journal.Blobs, registry reducer.Registry) (*reducerRule, error) {
	rule := &reducerRule{name: name, limits: def.Limits, params: def.Params, halt: def.OnError == manifest.OnErrorHalt}
	if rule.hash = codeHash(def); def.Engine == manifest.EngineGo {
		var err error
		if rule.impl, err = registry.New(def.Name, def.Version); err != nil {
			err = fmt.Errorf("world: reducer %s: %w", name, err)
		}
		return rule, err
	}
	source, err := blobs.Blob(def.Source)
	if err != nil {
		return nil, fmt.Errorf("world: reducer %s: source %s: %w", name, def.Source, err)
	}
	if err := r.guard.keep(sourceShare*uint64(len(source)), "the code of reducer "+name); err != nil {
		return nil, err
	}
	code := reducer.Code{File: def.File, Source: source, Modules: make(map[string][]byte)}
	for _, module := range slices.Sorted(maps.Keys(def.Modules)) {
		if code.Modules[module], err = blobs.Blob(def.Modules[module]); err != nil {
			return nil, fmt.Errorf("world: reducer %s: module %s: %w", name, module, err)
		}
		if err := r.guard.keep(sourceShare*uint64(len(code.Modules[module])), "the code of reducer "+name); err != nil {
			return nil, err
		}
	}
	program, err := r.table.code[def.Engine].Compile(r.engines.Of(def.Engine), code)
	if err != nil {
		return nil, fmt.Errorf("world: reducer %s: %w", name, err)
	}
	impl, used, err := program.Start(reducer.Setting{Params: def.Params, Schemas: r.schemas, Limits: def.Limits}, r.guard.shareBounds())
	r.guard.use(used.Gas)
	if r.guard.stop(err, "the code of reducer "+name, 0) {
		return nil, r.guard.ended()
	}
	if err != nil {
		return nil, fmt.Errorf("world: reducer %s: %w", name, err)
	}
	rule.impl = impl
	return rule, r.guard.keep(used.Memory, "the code of reducer "+name)
}

// What compiled rules hold, roughly: a route that an event has, and a policy.
const (
	routeBytes  = 256
	policyBytes = 128 << 10
)

// sourceShare is how many bytes a program holds for each one of its source.
const sourceShare = 16

// codeHash stands for the code of a reducer.
func codeHash(def manifest.Reducer) journal.Hash {
	if def.Engine == manifest.EngineGo {
		return canon.Sum([]byte(def.Name + "@" + def.Version))
	}
	if len(def.Modules) == 0 {
		return def.Source
	}
	b := append([]byte("modules\x00"), def.Source[:]...)
	for _, name := range slices.Sorted(maps.Keys(def.Modules)) {
		hash := def.Modules[name]
		b = append(canon.AppendText(b, name), hash[:]...)
	}
	return canon.Sum(b)
}

// reducer returns the rule of a reducer, nil where there is none. Most cells that follow one
// another have the same.
func (r *rules) reducer(name string) *reducerRule {
	if r.last.name != name || r.last.rule == nil {
		r.last.name, r.last.rule = strings.Clone(name), r.reducers[name]
	}
	return r.last.rule
}

func (r *rules) compileEvent(name string, def manifest.Event, blobs journal.Blobs) (*eventRule, error) {
	rule := &eventRule{name: name}
	if !def.Schema.IsZero() {
		source, err := blobs.Blob(def.Schema)
		if err != nil {
			return nil, fmt.Errorf("world: event %s: schema %s: %w", name, def.Schema, err)
		}
		if rule.schema, err = compileSchema(def.File, source, r.guard); err != nil {
			return nil, fmt.Errorf("world: event %s: %w", name, err)
		}
	}
	for _, rt := range r.manifest.Routing {
		if !manifest.Match(rt.Event, name) {
			continue
		}
		if err := r.guard.keep(routeBytes, "routing"); err != nil {
			return nil, err
		}
		if rt.Each {
			rule.routes = append(rule.routes, route{reducer: rt.Reducer, each: everyone(rt.Reducer), random: rt.Order == manifest.OrderRandom})
			continue
		}
		key, err := manifest.ParseKeyExpr(rt.Key)
		if err != nil {
			return nil, fmt.Errorf("world: route of %s: %w", name, err)
		}
		rule.routes = append(rule.routes, route{reducer: rt.Reducer, key: key})
	}
	return rule, nil
}
