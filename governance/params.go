package governance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"

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
		faults := c.names.check(expr)
		fault, err := c.check(expr, kinds)
		if fault != nil {
			faults = append(faults, fault)
		}
		for _, fault := range faults {
			out = append(out, RuleFault{path, fault})
		}
		return err
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
	c.names = newNameChecker(c.compiler, m)
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

// paramsIssue is what is wrong with a part of an expression, for kinds.
type paramsIssue struct {
	at    common.Location
	msg   string
	kinds int // how many
}

// check returns the first fault of an expression; nil: there is none.
func (c *paramsChecker) check(expr string, kinds []*paramsKind) (*PolicyError, error) {
	if !strings.Contains(expr, "params") {
		return nil, nil
	}
	parsed, failed := c.compiler.env.Parse(expr)
	if failed.Err() != nil {
		return nil, nil // which others report
	}
	tree := parsed.NativeRep()
	about := make(map[int64]int) // how many kinds a part is about
	issues := make(map[int64]*paramsIssue)
	for _, k := range kinds {
		if c.spend(ofEachCheck + len(expr)) {
			return nil, nil
		}
		notes := c.names.reachOf(tree.Expr(), k, len(expr))
		if notes == nil {
			return nil, nil
		}
		wrong, err := c.types(k, expr)
		if err != nil {
			return nil, err
		}
		reached := make(map[int64]bool)
		for _, n := range notes {
			reached[n.id] = true
			if n.lacks != "" {
				wrong[n.id] = &paramsIssue{at: tree.SourceInfo().GetStartLocation(n.id), msg: n.lacks}
			}
		}
		for id := range reached { // order cannot show: they are counted
			about[id]++
			if issue := wrong[id]; issue != nil {
				issues[id] = cmp.Or(issues[id], issue)
				issues[id].kinds++
			}
		}
	}
	var first *PolicyError
	for _, id := range slices.Sorted(maps.Keys(issues)) {
		issue := issues[id]
		if issue.kinds < about[id] {
			continue // others have it
		}
		fault := policyError(issue.at, issue.msg)
		if first == nil || fault.Line < first.Line || fault.Line == first.Line && fault.Column < first.Column {
			first = fault
		}
	}
	return first, nil
}

// types returns the faults that the library finds, by the parts of an expression, once it knows what types params have.
// Numbers of JSON are of any of CEL's types: a fault is one where they are of none.
func (c *paramsChecker) types(k *paramsKind, expr string) (map[int64]*paramsIssue, error) {
	found := make(map[int64]*paramsIssue)
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
			if found[e.ExprID] == nil {
				found[e.ExprID] = &paramsIssue{at: e.Location, msg: fmt.Sprintf("params of %s: %s", k.kind, plainly(e.Message))}
			}
			found[e.ExprID].kinds++
		}
	}
	maps.DeleteFunc(found, func(_ int64, issue *paramsIssue) bool { return issue.kinds < len(k.envs) })
	for _, issue := range found { // order cannot show: each by itself
		issue.kinds = 0 // of effects, from now on
	}
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
