package governance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"

	"github.com/worldkernel/worldkernel/manifest"
)

// Bounds of what CheckRules looks at for params: characters of schemas, of the names of
// variables and of expressions, the last as often as they are checked, and as many characters more
// each time. What comes after it is not checked.
const (
	maxParamsWork = 8 << 20
	ofEachCheck   = 256
)

// paramsName is what expressions call the params of an effect.
const paramsName = "intent.params"

// maxRuleFaults is how many faults are told: a manifest of some megabytes can have more.
const maxRuleFaults = 100

// RuleFault is a place of an expression that names what there is not, or looks for what
// no params can have.
//
//nolint:errname // a fault in a list, as manifest.Fault
type RuleFault struct {
	Path         string // of the expression in the manifest, or of another name, a JSON pointer
	*PolicyError        // Line 0: of no expression
}

// CheckRules holds the policies and transforms of a manifest without other faults against
// what it declares.
//
// A text that an expression compares with the kind, class, adapter, capability, reducer,
// cell or world of an intent, or with the status of a receipt, is a fault where none can
// be so: a guard with a slip guards nothing. So is what an expression reads of params, or
// compares with them, where they cannot have it, by the schemas of the effects' params,
// whose JSON text schema returns: for each effect that this part of the expression can be
// about. Where it asks for a kind, class or adapter, it is about no other. Without a
// schema params can have anything. Kinds, tools and models that capabilities name and no
// effect has are faults, too.
//
// Nothing that is decided depends on it: manifests that are in force may have such
// faults. Once ended reports that nobody waits, there are none; nil: somebody does.
func CheckRules(m *manifest.Manifest, schema func(manifest.Hash) ([]byte, error), ended func() bool) ([]RuleFault, error) {
	c := paramsChecker{left: maxParamsWork, ended: ended}
	kinds, err := c.kindsOf(m, schema)
	if err != nil {
		return nil, err
	}
	out := capFaults(m)
	check := func(path, expr string, kinds []*paramsKind) error {
		if len(out) >= maxRuleFaults || ended != nil && ended() {
			return nil
		}
		parsed, failed := c.compiler.env.Parse(expr)
		if failed.Err() != nil {
			return nil // which others report
		}
		faults := c.names.check(expr, parsed.NativeRep())
		if strings.Contains(expr, "params") {
			more, err := c.check(expr, parsed.NativeRep(), kinds)
			if err != nil {
				return err
			}
			faults = append(faults, more...)
		}
		for _, fault := range faults {
			out = append(out, RuleFault{path, fault})
		}
		return nil
	}
	if err := c.setVariables(m, ofPolicies()); err != nil {
		return nil, err
	}
	for i, p := range m.Policies {
		if err := check("/policies/"+strconv.Itoa(i)+"/when", p.When, kinds); err != nil {
			return nil, err
		}
	}
	if err := c.setVariables(m, ofTransforms()); err != nil {
		return nil, err
	}
	for i, kind := range slices.Sorted(maps.Keys(m.Effects)) {
		undo := m.Effects[kind].Compensate
		if undo == nil {
			continue
		}
		var of []*paramsKind
		if kinds != nil { // in the same order
			kinds[i].envs = nil // they were those of policies
			of = kinds[i : i+1]
		}
		if err := check(manifest.Pointer("effects", kind, "compensate", "params"), undo.Params, of); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// setVariables has expressions over variables checked from now on.
func (c *paramsChecker) setVariables(m *manifest.Manifest, vars []variable) (err error) {
	if c.compiler, err = newCompiler(vars); err != nil {
		return err
	}
	c.names = newNameChecker(vars, m)
	return nil
}

// paramsKind is a kind of effect as CheckRules sees it.
type paramsKind struct {
	kind   string
	known  map[string]*names // words of variables that are one for each intent
	flags  map[string]truth  // likewise, of booleans
	schema *paramsSchema     // nil: params can be anything
	envs   []*cel.Env        // with the types of the params, for each that numbers may have; nil: not made yet
}

func (c *paramsChecker) kindsOf(m *manifest.Manifest, schema func(manifest.Hash) ([]byte, error)) (out []*paramsKind, err error) {
	for _, kind := range slices.Sorted(maps.Keys(m.Effects)) {
		e := m.Effects[kind]
		k := &paramsKind{kind: kind, known: make(map[string]*names), flags: map[string]truth{"effect.idempotent": {e.Idempotent, !e.Idempotent}}}
		for name, is := range map[string]string{"intent.kind": kind, "intent.class": e.Class, "effect.adapter": e.Adapter} { // order cannot show: a map
			k.known[name] = newNames(name, wordsOf(is))
		}
		if !e.Params.IsZero() {
			text, err := schema(e.Params)
			if err != nil {
				return nil, fmt.Errorf("governance: params of %s: %w", kind, err)
			}
			if c.spend(len(text)) {
				return nil, nil
			}
			if k.schema, err = parseParams(text); err != nil {
				return nil, fmt.Errorf("governance: params of %s: %w", kind, err)
			}
		}
		out = append(out, k)
	}
	return out, nil
}

// paramsChecker checks expressions of one compiler.
type paramsChecker struct {
	compiler *compiler
	names    *nameChecker
	left     int // of maxParamsWork
	ended    func() bool
}

// spend reports that what comes now is not looked at any more.
func (c *paramsChecker) spend(work int) (over bool) {
	c.left -= work
	return c.left < 0 || c.ended != nil && c.ended()
}

// check returns the first fault of an expression, which a tree was made of; none: there is none.
func (c *paramsChecker) check(expr string, tree *ast.AST, kinds []*paramsKind) ([]*PolicyError, error) {
	about, wrong := make(map[int64]int), make(map[int64]int) // how many kinds a part is about, and is wrong for
	faults := make(map[int64]string)
	for _, k := range kinds {
		if c.spend(ofEachCheck + len(expr)) {
			return nil, nil
		}
		notes := c.names.reachOf(tree.Expr(), k, len(expr))
		if notes == nil {
			return nil, nil
		}
		found, err := c.types(k, expr)
		if err != nil {
			return nil, err
		}
		reached := make(map[int64]bool)
		for _, n := range notes {
			reached[n.id] = true
			if n.lacks != "" {
				found[n.id] = n.lacks
			}
		}
		for id := range reached { // order cannot show: they are counted
			about[id]++
			if found[id] != "" {
				wrong[id]++
				faults[id] = cmp.Or(faults[id], found[id])
			}
		}
	}
	maps.DeleteFunc(faults, func(id int64, _ string) bool { return wrong[id] < about[id] }) // others have it
	all := placed(tree, faults)
	return all[:min(1, len(all))], nil
}

// types returns the faults that the library finds, by the parts of an expression, once it knows what types params have.
// Numbers of JSON are of any of CEL's types: a fault is one where they are of none.
func (c *paramsChecker) types(k *paramsKind, expr string) (map[int64]string, error) {
	found, times := make(map[int64]string), make(map[int64]int)
	if k.schema == nil {
		return found, nil
	}
	if k.envs == nil {
		if err := c.declare(k); err != nil {
			return nil, err
		}
	}
	parsed, _ := c.compiler.env.Parse(expr) // anew: the checker writes the names of variables into it
	for _, env := range k.envs {
		_, issues := env.Check(parsed)
		for _, e := range issues.Errors() {
			times[e.ExprID]++
			found[e.ExprID] = cmp.Or(found[e.ExprID], fmt.Sprintf("params of %s: %s", k.kind, plainly(e.Message)))
		}
	}
	maps.DeleteFunc(found, func(id int64, _ string) bool { return times[id] < len(k.envs) })
	return found, nil
}

// declare makes the environments of a kind.
func (c *paramsChecker) declare(k *paramsKind) error {
	for _, number := range []*cel.Type{cel.IntType, cel.DoubleType, cel.UintType} {
		d := declarer{number: number, left: maxParamsVars}
		d.walk(paramsName, k.schema.root(), 0)
		for _, v := range d.vars {
			c.spend(len(v.Name()))
		}
		env, err := c.compiler.env.Extend(cel.VariableDecls(d.vars...))
		if err != nil {
			return fmt.Errorf("governance: params of %s: %w", k.kind, err)
		}
		k.envs = append(k.envs, env)
		if !d.numbers {
			return nil // they are all alike
		}
	}
	return nil
}
