package governance

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/worldkernel/worldkernel/manifest"
)

// Version is the last one, for new worlds. A version names the language of policies
// and transforms, its library and what of it decides: decisions made under one need
// not be repeatable under another.
const Version = "cel/1+cel-go v0.33.2"

// Versions are the known versions, oldest first.
func Versions() []string { return []string{Version} }

// Limits of policies and transforms.
const (
	MaxPolicyLen  = 16 << 10 // characters of an expression
	MaxRegexSize  = 10_000   // instructions of a compiled regular expression
	maxErrorBytes = 256      // bytes of a value or message of the library in a Reason
)

// PolicyError says where an expression is not a valid policy or transform.
type PolicyError struct {
	Line   int // from 1
	Column int // in characters, from 1
	Msg    string
}

func (e *PolicyError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg) }

// CheckPolicy reports, as a *PolicyError, why when cannot be the condition of
// a policy: a CEL expression that gives a boolean and looks only at
//
//	intent.kind, .params, .class, .tag, .cap (as asked for), .step
//	effect.adapter, .idempotent
//	cell.reducer, .key, .id (reducer/key)
//	cap.name, .type, .expires (a tick; 0: never)
//	budget.calls, .tokens, .bytes, .micros (left in the tightest of the
//	budgets of cap, cell and world; the greatest integer where none bounds it)
//	world.name, .time (a tick)
//
// intent.params may be anything; what a rule expects of it shows only when the
// rule is evaluated. Maps are iterated in the order of their keys. Integers of any
// size are ints. CEL's timestamps and durations do not exist here: their time zones
// differ between machines. What takes more than StepLimit is an error.
func CheckPolicy(when string) error {
	c, err := newCompiler(ofPolicies())
	if err != nil {
		return err
	}
	_, err = c.condition(when)
	return err
}

// rule is a compiled policy.
type rule struct {
	name    string
	verdict Verdict
	program *program
}

// eval reports whether the rule matches.
func (r *rule) eval(vars *activation) (bool, error) {
	out, err := r.program.eval(vars)
	if err != nil {
		return false, err
	}
	matches, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("it gives a value of type %s, not a boolean", out.Type().TypeName())
	}
	return bool(matches), nil
}

// shortened keeps what the journal holds of foreign text within bounds, and
// what the journal can hold: UTF-8.
func shortened(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) <= maxErrorBytes {
		return s
	}
	n := maxErrorBytes
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// compiler turns expressions over vars into programs.
type compiler struct {
	env       *cel.Env
	vars      []variable
	mixed     bool                           // integers and floats may be computed with together
	functions map[string]*functions.Overload // of the library, by their names
}

func newCompiler(vars []variable) (*compiler, error) {
	return newCompilerOf(vars, nil, nil)
}

// newCompilerOf is newCompiler where functions of the library are left out, and others are there.
func newCompilerOf(vars []variable, without []*env.Function, with []cel.EnvOption) (*compiler, error) {
	opts := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(&env.LibrarySubset{ExcludeFunctions: append(without, []*env.Function{
			{Name: "timestamp"},
			{Name: "duration"},
			{Name: "getFullYear"},
			{Name: "getMonth"},
			{Name: "getDate"},
			{Name: "getDayOfMonth"},
			{Name: "getDayOfWeek"},
			{Name: "getDayOfYear"},
			{Name: "getHours"},
			{Name: "getMinutes"},
			{Name: "getSeconds"},
			{Name: "getMilliseconds"},
		}...)})),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(MaxPolicyLen),
		cel.RegexProgramSizeLimit(MaxRegexSize),
		cel.ASTValidators(cel.ValidateRegexLiterals()),
	}
	for _, v := range vars {
		opts = append(opts, cel.Variable(v.name, v.typ))
	}
	opts = append(opts, with...)
	e, err := cel.NewCustomEnv(opts...)
	if err != nil {
		return nil, fmt.Errorf("governance: policy language: %w", err)
	}
	c := &compiler{env: e, vars: vars, mixed: len(with) > 0, functions: make(map[string]*functions.Overload)}
	for name, f := range e.Functions() { // order cannot show: a map is built from a map
		all, err := f.Bindings()
		if err != nil {
			return nil, fmt.Errorf("governance: policy language: %s: %w", name, err)
		}
		for _, o := range all {
			if o.Operator == name {
				c.functions[name] = o
			}
		}
	}
	return c, nil
}

func (c *compiler) rule(p manifest.Policy) (rule, error) {
	r := rule{name: p.Name}
	switch p.Decide {
	case manifest.DecideAllow:
		r.verdict = Allow
	case manifest.DecideDeny:
		r.verdict = Deny
	case manifest.DecideRequireApproval:
		r.verdict = RequireApproval
	default:
		return rule{}, fmt.Errorf("unknown decision %q", p.Decide)
	}
	var err error
	r.program, err = c.condition(p.When)
	return r, err
}

// condition compiles an expression that gives a boolean.
func (c *compiler) condition(when string) (*program, error) {
	tree, err := c.check(when)
	if err != nil {
		return nil, err
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, policyError(common.NoLocation, fmt.Sprintf("the expression gives %s, not a boolean", t))
	}
	return c.program(tree)
}

func (c *compiler) check(expr string) (*cel.Ast, error) {
	parsed, issues := c.env.Parse(expr)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return nil, policyError(first.Location, plainly(first.Message)+slipOf(expr, first.Location.Line(), first.Location.Column()))
	}
	tree, issues := c.env.Check(parsed)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return nil, policyError(first.Location, c.explained(first, parsed.NativeRep()))
	}
	if err := noMessages(tree.NativeRep()); err != nil {
		return nil, err
	}
	return tree, nil
}

func (c *compiler) program(tree *cel.Ast) (*program, error) {
	if _, err := c.env.Program(tree, cel.CustomDecoratorV2(unfolded), cel.EvalOptions(cel.OptOptimize)); err != nil { // a constant part that cannot be evaluated
		var at common.Location = common.NoLocation
		if fault, ok := errors.AsType[*types.Err](err); ok {
			at = tree.NativeRep().SourceInfo().GetStartLocation(fault.NodeID())
		}
		return nil, policyError(at, err.Error())
	}
	return c.plan(tree)
}

// unfolded has the library make no map while it plans: it panics at keys that are lists.
func unfolded(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if c, ok := i.(interpreter.InterpretableConstructor); ok && c.Type() == types.MapType {
		return struct{ interpreter.InterpretableV2 }{i}, nil
	}
	return i, nil
}

// noMessages refuses expressions that build protobuf messages, which CEL knows
// but no rule needs: their maps are iterated in the order of Go maps.
func noMessages(tree *ast.AST) error {
	var fault error
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.StructKind && fault == nil {
			fault = policyError(tree.SourceInfo().GetStartLocation(e.ID()), "the expression builds a message")
		}
	}))
	return fault
}

// explained returns the message of a fault. The library has no object intent,
// only its fields, and so calls intent.amount an undeclared intent.
func (c *compiler) explained(fault *common.Error, tree *ast.AST) string {
	msg := plainly(fault.Message)
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.ID() != fault.ExprID {
			return
		}
		if e.Kind() == ast.CallKind {
			if meant := wordOf(e.AsCall().FunctionName()); meant != "" {
				msg += ": did you mean " + meant + "?"
			}
		}
		if e.Kind() != ast.IdentKind {
			return
		}
		if fields := fieldsBelow(e.AsIdent(), c.vars); len(fields) > 0 {
			msg = fmt.Sprintf("%s has no value but those of its fields: %s", e.AsIdent(), strings.Join(fields, ", "))
		} else if meant := wordOf(e.AsIdent()); meant != "" {
			msg += ": did you mean " + meant + "?"
		} else if !strings.Contains(msg, "did you mean") {
			msg += fmt.Sprintf("; a text is in quotes: %q", e.AsIdent())
		}
	}))
	return msg
}

// policyError places a message; the library counts columns from 0, and has no
// place for faults of the whole expression.
func policyError(at common.Location, msg string) *PolicyError {
	return &PolicyError{Line: max(at.Line(), 1), Column: max(at.Column()+1, 1), Msg: msg}
}
